/**
 * Reliable mail between the processes of a deployment: each message arrives once and in order, although Redis may lose
 * messages; a receiver is told when messages are lost for good.
 */
import type { Cancel, Clock, Log } from '../../core/ports.ts';
import type { OutgoingMail } from './turns.ts';

/**
 * The most envelopes, and the most characters of envelopes, that are kept for each receiver in case one has to be sent
 * again.
 */
const KEPT = 4_096;
const KEPT_CHARS = 4 * 1024 * 1024;
/**
 * The most characters of envelopes that wait for a missing earlier one. Beyond this, envelopes are dropped and
 * requested again later.
 */
const HELD_CHARS = 16 * 1024 * 1024;
/** How often a missing envelope is requested, in milliseconds. */
const ASK_MS = 250;

/**
 * The decisions that a message depends on: all so far in one partition (its number), all so far in this process, or
 * none (null).
 */
export type Dependency = number | 'all' | null;

type MailOptions = {
  /** The id of this process. */
  readonly process: string;
  /** Makes `take` be called at the end of this turn. */
  readonly plan: () => void;
  /** Calls `run` once everything decided so far is recorded. */
  readonly onRecord: (run: () => void) => void;
  readonly publish: (process: string, text: string) => void;
  readonly receive: (from: string, message: MailMessage) => void;
  /**
   * Whether a process is known and alive. Mail from other processes is dropped; if such a process is alive after all,
   * its mail is requested again later.
   */
  readonly isAlive: (process: string) => boolean;
  /** Called when messages from a process were lost for good. */
  readonly onLoss: (from: string) => void;
  readonly clock: Clock;
  readonly log: Log;
};

type Unsent = {
  readonly free: MailMessage[];
  readonly ordered: MailMessage[];
  readonly after: Set<number>;
  isAfterAll: boolean;
};
type KeptEnvelope = { readonly number: number; readonly text: string };
/**
 * The mail to a process. `last`: the number of the last envelope. `lastUnrepeated`: the number of the last envelope that
 * has more than requests and answers, which their senders repeat. `beaten`: the value of `last` at the last beat. `has`:
 * the number up to which the process has confirmed all envelopes of this series. `kept`, `chars`: the envelopes that are
 * kept, and their characters.
 */
type Destination = {
  series: number;
  unsent: Unsent;
  last: number;
  lastUnrepeated: number;
  beaten: number;
  has: number;
  kept: KeptEnvelope[];
  chars: number;
};
/** The value of `has` until the process has confirmed that it knows the series. */
const NOTHING = -1;
/**
 * The mail from a process. `next`: the number of the next envelope to deliver. `known`: the highest number known to
 * have been sent. `held`: envelopes that wait for an earlier one.
 */
type Source = {
  series: number;
  next: number;
  known: number;
  readonly held: Map<number, HeldEnvelope>;
  heldChars: number;
};
/** The series of a process that has not sent anything yet. */
const UNKNOWN = 0;
type HeldEnvelope = { readonly envelope: MailEnvelope; readonly chars: number };

export class Mail {
  readonly #options: MailOptions;
  readonly #destinations = new Map<string, Destination>();
  readonly #sources = new Map<string, Source>();
  /** The number of the last series that was begun. A process that was forgotten by mistake gets a new series. */
  #series = 0;
  #stopAsking: Cancel | null = null;

  constructor(options: MailOptions) {
    this.#options = options;
  }

  /**
   * Sends a message. A message with a dependency arrives in order. A message without one may arrive in any order, or be
   * lost.
   */
  send(process: string, message: MailMessage, after: Dependency): void {
    const { unsent } = this.#destinationOf(process);
    (after === null ? unsent.free : unsent.ordered).push(message);
    if (after === 'all') unsent.isAfterAll = true;
    else if (after !== null) unsent.after.add(after);
    this.#options.plan();
  }

  /** Returns the mail of this turn. */
  take(): readonly OutgoingMail[] {
    return [...this.#destinations].flatMap(([process, destination]) => this.#takeFor(process, destination));
  }

  /**
   * Tells processes the number of the last envelope, so that they notice if the last ones were lost. Only those
   * processes are told that have not confirmed all envelopes and were sent nothing since the last beat: any later
   * envelope would show the gap as well. Nor is a process told that got only requests and answers, which are repeated.
   */
  beat(): void {
    for (const [process, destination] of this.#destinations) {
      const { series, last, lastUnrepeated, beaten, has } = destination;
      destination.beaten = last;
      if (last === beaten && has < lastUnrepeated) this.#tell(process, 'last', series, last);
    }
  }

  /**
   * Begins a new series for each receiver, because a part of the mail may never be sent: it depends on decisions that
   * this process has lost. Receivers treat the old series as lost.
   */
  restart(): void {
    for (const destination of this.#destinations.values()) {
      const unsent = { ...newUnsent(), free: destination.unsent.free };
      Object.assign(destination, { ...newSeries(++this.#series), unsent });
    }
    this.beat();
  }

  /**
   * Forgets a process that has ended. The number of its next envelope is kept: if it was forgotten by mistake, its
   * earlier messages are not delivered again.
   */
  forget(process: string): void {
    this.#destinations.delete(process);
    const source = this.#sources.get(process);
    if (!source) return;
    source.held.clear();
    Object.assign(source, { known: source.next - 1, heldChars: 0 });
  }

  /** Handles a text that arrived on the channel of this process. */
  receive(text: string): void {
    const envelope = readEnvelope(text);
    if (!envelope) return this.#options.log.warn({ characters: text.length }, 'mail of another relay cannot be read');
    const { from, kind, series, number } = envelope;
    if (!this.#options.isAlive(from)) return;
    if (kind === 'ask') return this.#repeat(from, series, number);
    if (kind === 'has') return this.#noteHas(from, series, number);
    if (kind === 'free') return this.#deliver(envelope);
    const source = this.#sourceOf(from);
    if (series < source.series) return;
    if (series > source.series) this.#beginSeries(from, source, series);
    if (kind === 'begin') this.#skipTo(from, source, number);
    else if (kind === 'last') source.known = Math.max(source.known, number);
    else this.#hold(source, envelope, text.length);
    this.#next(source);
    if (source.next <= source.known) this.#ask(from, source);
    else if (kind === 'last') this.#tell(from, 'has', series, source.next - 1);
  }

  close(): void {
    this.#stopAsking?.();
    this.#stopAsking = null;
  }

  #takeFor(process: string, destination: Destination): readonly OutgoingMail[] {
    const { free, ordered, after, isAfterAll } = destination.unsent;
    if (free.length === 0 && ordered.length === 0) return [];
    destination.unsent = newUnsent();
    const mail: OutgoingMail[] = [];
    if (free.length > 0) mail.push({ process, text: this.#write('free', 0, free, 0), after: new Set() });
    if (ordered.length > 0) {
      const number = ++destination.last;
      if (ordered.some(({ kind }) => kind !== 'request')) destination.lastUnrepeated = number;
      const text = this.#write('mail', number, ordered, destination.series);
      keep(destination, { number, text });
      mail.push({ process, text, after: isAfterAll ? 'all' : after });
    }
    return mail;
  }

  #write(kind: EnvelopeKind, number: number, messages: readonly MailMessage[], series: number): string {
    return writeEnvelope({ from: this.#options.process, kind, series, number, messages });
  }

  #tell(process: string, kind: EnvelopeKind, series: number, number: number): void {
    this.#options.publish(process, this.#write(kind, number, [], series));
  }

  #noteHas(process: string, series: number, number: number): void {
    const destination = this.#destinations.get(process);
    if (destination?.series === series) destination.has = Math.max(destination.has, number);
  }

  /** Sends the kept envelopes again, beginning with the number `from`. */
  #repeat(process: string, series: number, from: number): void {
    const destination = this.#destinations.get(process);
    if (destination?.series !== series) return;
    const first = destination.kept[0]?.number ?? destination.last + 1;
    if (from < first) this.#tell(process, 'begin', series, first);
    const again = destination.kept.filter(({ number }) => number >= from);
    // The envelopes may depend on decisions that are not recorded yet.
    this.#options.onRecord(() => again.forEach(({ text }) => this.#options.publish(process, text)));
  }

  #destinationOf(process: string): Destination {
    const known = this.#destinations.get(process);
    if (known) return known;
    const made: Destination = { ...newSeries(++this.#series), unsent: newUnsent() };
    this.#destinations.set(process, made);
    return made;
  }

  #sourceOf(process: string): Source {
    const known = this.#sources.get(process);
    if (known) return known;
    const made: Source = { series: UNKNOWN, next: 1, known: 0, held: new Map(), heldChars: 0 };
    this.#sources.set(process, made);
    return made;
  }

  #beginSeries(from: string, source: Source, series: number): void {
    const isFirst = source.series === UNKNOWN;
    source.held.clear();
    Object.assign(source, { series, next: 1, known: 0, heldChars: 0 });
    if (!isFirst) this.#options.onLoss(from);
  }

  #skipTo(from: string, source: Source, number: number): void {
    if (number <= source.next) return;
    for (const known of [...source.held.keys()]) if (known < number) this.#takeHeld(source, known);
    source.next = number;
    this.#options.onLoss(from);
  }

  #hold(source: Source, envelope: MailEnvelope, chars: number): void {
    const { number } = envelope;
    source.known = Math.max(source.known, number);
    if (number < source.next || source.held.has(number)) return;
    if (number > source.next && source.heldChars + chars > HELD_CHARS) return;
    source.held.set(number, { envelope, chars });
    source.heldChars += chars;
  }

  #takeHeld(source: Source, number: number): MailEnvelope | undefined {
    const held = source.held.get(number);
    if (held && source.held.delete(number)) source.heldChars -= held.chars;
    return held?.envelope;
  }

  #next(source: Source): void {
    for (let envelope; (envelope = this.#takeHeld(source, source.next));) {
      source.next++;
      this.#deliver(envelope);
    }
  }

  #deliver({ from, messages }: MailEnvelope): void {
    for (const message of messages) this.#options.receive(from, message);
  }

  /** Requests the missing envelopes now, and repeats the request until they have arrived. */
  #ask(from: string, { series, next }: Source): void {
    if (this.#stopAsking) return;
    this.#tell(from, 'ask', series, next);
    this.#stopAsking = this.#options.clock.every(ASK_MS, () => this.#askAgain());
  }

  #askAgain(): void {
    const behind = [...this.#sources].filter(([, { next, known }]) => next <= known);
    for (const [from, { series, next }] of behind) this.#tell(from, 'ask', series, next);
    if (behind.length === 0) this.close();
  }
}

function newSeries(series: number): Omit<Destination, 'unsent'> {
  return { series, last: 0, lastUnrepeated: 0, beaten: 0, has: NOTHING, kept: [], chars: 0 };
}

function newUnsent(): Unsent {
  return { free: [], ordered: [], after: new Set(), isAfterAll: false };
}

function keep(destination: Destination, envelope: KeptEnvelope): void {
  destination.kept.push(envelope);
  destination.chars += envelope.text.length;
  if (destination.kept.length <= KEPT && destination.chars <= KEPT_CHARS) return;
  // Removes half of them at once, because removing from the front of an array is expensive.
  const forgotten = destination.kept.splice(0, Math.floor(destination.kept.length / 2));
  destination.chars -= forgotten.reduce((sum, { text }) => sum + text.length, 0);
}

// The format of mail: an envelope names its sender, and contains messages of several kinds.

/**
 * `request`: a request of a port method, or its response. `row`: a mailbox row of a node. `event`: an event of the bus.
 * `note`: a note about the owner of a partition.
 */
type MailKind = 'request' | 'row' | 'event' | 'note';
export type MailMessage = { readonly kind: MailKind; readonly text: string };

/**
 * `mail`: numbered messages, delivered in order. `free`: messages without a number, which may be lost or reordered.
 * `last`: tells the number of the last envelope that was sent. `has`: confirms that all envelopes up to this number
 * have arrived. `ask`: requests the envelopes from this number on. `begin`: tells that earlier envelopes are no longer
 * kept.
 */
type EnvelopeKind = 'mail' | 'free' | 'last' | 'has' | 'ask' | 'begin';

/**
 * `series`: envelope numbers begin again with each series of the sender. In an `ask` and a `has`, it is the series of
 * the process that receives this envelope.
 */
export type MailEnvelope = {
  readonly from: string;
  readonly kind: EnvelopeKind;
  readonly series: number;
  readonly number: number;
  readonly messages: readonly MailMessage[];
};

const LETTERS = { request: 'r', row: 'b', event: 'e', note: 'n' } as const satisfies Record<MailKind, string>;
const KINDS = new Map(Object.entries(LETTERS).map(([kind, letter]) => [letter as string, kind as MailKind]));
const HEAD = /^(\S+) (mail|free|last|has|ask|begin) (\d+) (\d+)\n/;
const FRAME = /([a-z])(\d+)\n/y;

export function writeEnvelope({ from, kind, series, number, messages }: MailEnvelope): string {
  // Each message has its length before it, because its text may contain any character.
  const frames = messages.map((message) => `${LETTERS[message.kind]}${message.text.length}\n${message.text}`);
  return `${from} ${kind} ${series} ${number}\n${frames.join('')}`;
}

/** Reads an envelope; null if the text is not an envelope. */
export function readEnvelope(text: string): MailEnvelope | null {
  const head = HEAD.exec(text);
  if (!head) return null;
  const [whole, from = '', kind, series, number] = head;
  const messages = readMessages(text, whole.length);
  // The pattern HEAD matches only valid kinds.
  return messages && { from, kind: kind as EnvelopeKind, series: Number(series), number: Number(number), messages };
}

function readMessages(text: string, start: number): readonly MailMessage[] | null {
  const messages: MailMessage[] = [];
  for (let at = start; at < text.length;) {
    FRAME.lastIndex = at;
    const [whole = '', letter = '', length] = FRAME.exec(text) ?? [];
    const kind = KINDS.get(letter);
    const end = at + whole.length + Number(length);
    if (!kind || end > text.length) return null;
    messages.push({ kind, text: text.slice(at + whole.length, end) });
    at = end;
  }
  return messages;
}
