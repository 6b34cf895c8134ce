/**
 * Mail between the processes of a deployment: messages arrive in the order in which they were sent, each once, although
 * Redis may lose them. What is lost for good is told to its receiver.
 */
import type { Cancel, Clock, Log } from '../../core/ports.ts';
import type { OutgoingMail } from './turns.ts';

/** The most envelopes to one process that are kept, in case one is lost, and the most characters of them. */
const KEPT = 4_096;
const KEPT_CHARS = 4 * 1024 * 1024;
/** The most characters of envelopes that are held because an earlier one is missing; later ones are asked for again. */
const HELD_CHARS = 16 * 1024 * 1024;
/** How often an envelope that is missing is asked for, in milliseconds. */
const ASK_MS = 250;

/** What mail depends on: what was decided so far in one partition, in all of this process, or nothing. */
export type Dependency = number | 'all' | null;

type MailOptions = {
  /** The id of this process. */
  readonly process: string;
  /** Has the mail of this turn taken at its end. */
  readonly plan: () => void;
  /** Calls `run` once everything that was decided so far is recorded. */
  readonly onRecord: (run: () => void) => void;
  readonly publish: (process: string, text: string) => void;
  readonly receive: (from: string, message: MailMessage) => void;
  /** Whether a process is known and alive. Mail of others is dropped: what a living one sent is asked for later. */
  readonly isAlive: (process: string) => boolean;
  /** Called when messages from a process are lost for good. */
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
 * What was sent to a process. `last`: the number of the last envelope; `lastUnasked`: that of the last one with more than
 * requests and answers, which their senders repeat; `beaten`: what `last` was at the last beat; `has`: up to which number
 * the process has all of this series; `chars`: of the envelopes that are kept.
 */
type Destination = {
  series: number;
  unsent: Unsent;
  last: number;
  lastUnasked: number;
  beaten: number;
  has: number;
  kept: KeptEnvelope[];
  chars: number;
};
/** What is known of a process that has not said that it knows the series. */
const NOTHING = -1;
/** What came from a process. `next`: the number of the next envelope to deliver; `known`: the last that was sent. */
type Source = {
  series: number;
  next: number;
  known: number;
  readonly held: Map<number, HeldEnvelope>;
  heldChars: number;
};
/** The series of a process from which nothing has come. */
const UNKNOWN = 0;
type HeldEnvelope = { readonly envelope: MailEnvelope; readonly chars: number };

export class Mail {
  readonly #options: MailOptions;
  readonly #destinations = new Map<string, Destination>();
  readonly #sources = new Map<string, Source>();
  /** The number of the last series that was begun: to a process that was forgotten by mistake, another one begins. */
  #series = 0;
  #stopAsking: Cancel | null = null;

  constructor(options: MailOptions) {
    this.#options = options;
  }

  /** Sends a message. With a dependency it arrives in order; without one in any order, or not at all. */
  send(process: string, message: MailMessage, after: Dependency): void {
    const { unsent } = this.#destinationOf(process);
    (after === null ? unsent.free : unsent.ordered).push(message);
    if (after === 'all') unsent.isAfterAll = true;
    else if (after !== null) unsent.after.add(after);
    this.#options.plan();
  }

  /** Returns what this turn sends. */
  take(): readonly OutgoingMail[] {
    return [...this.#destinations].flatMap(([process, destination]) => this.#takeFor(process, destination));
  }

  /**
   * Tells processes how much was sent to them, so that they notice if the last of it is lost: each one that has not said
   * that it has all, and to which nothing was sent since the last beat. Any later envelope shows a gap too, so a busy or
   * an idle pair of processes needs no beats, nor does one that exchanges only requests and answers, which are repeated.
   */
  beat(): void {
    for (const [process, destination] of this.#destinations) {
      const { series, last, lastUnasked, beaten, has } = destination;
      destination.beaten = last;
      if (last === beaten && has < lastUnasked) this.#tell(process, 'last', series, last);
    }
  }

  /**
   * Begins a new series: a part of what was sent may never leave, because it depends on what this process has lost. The
   * receivers take note.
   */
  restart(): void {
    for (const destination of this.#destinations.values()) {
      const unsent = { ...newUnsent(), free: destination.unsent.free };
      Object.assign(destination, { ...newSeries(++this.#series), unsent });
    }
    this.beat();
  }

  /**
   * Forgets a process that has ended. The number of the next envelope from it is kept: if it was forgotten by mistake,
   * what it has sent before is not delivered again.
   */
  forget(process: string): void {
    this.#destinations.delete(process);
    const source = this.#sources.get(process);
    if (!source) return;
    source.held.clear();
    Object.assign(source, { known: source.next - 1, heldChars: 0 });
  }

  /** Takes a text that has arrived on the channel of this process. */
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
      if (ordered.some(({ kind }) => kind !== 'request')) destination.lastUnasked = number;
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

  /** Sends envelopes again from this number on. */
  #repeat(process: string, series: number, from: number): void {
    const destination = this.#destinations.get(process);
    if (destination?.series !== series) return;
    const first = destination.kept[0]?.number ?? destination.last + 1;
    if (from < first) this.#tell(process, 'begin', series, first);
    const again = destination.kept.filter(({ number }) => number >= from);
    // Some of it may wait for what it depends on.
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

  /** Asks for what is missing now, and again until it is here. */
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
  return { series, last: 0, lastUnasked: 0, beaten: 0, has: NOTHING, kept: [], chars: 0 };
}

function newUnsent(): Unsent {
  return { free: [], ordered: [], after: new Set(), isAfterAll: false };
}

function keep(destination: Destination, envelope: KeptEnvelope): void {
  destination.kept.push(envelope);
  destination.chars += envelope.text.length;
  if (destination.kept.length <= KEPT && destination.chars <= KEPT_CHARS) return;
  // Half of them at once, because the front of an array is expensive to remove.
  const forgotten = destination.kept.splice(0, Math.floor(destination.kept.length / 2));
  destination.chars -= forgotten.reduce((sum, { text }) => sum + text.length, 0);
}

// The form of mail: an envelope says who sent it, and has messages of several kinds.

/**
 * `request`: of a port, or its answer. `row`: of a node's mailbox. `event`: of the bus. `note`: about the owner of a
 * partition.
 */
type MailKind = 'request' | 'row' | 'event' | 'note';
export type MailMessage = { readonly kind: MailKind; readonly text: string };

/**
 * `mail`: messages in the order of numbers. `free`: messages that may come in any order, or not at all; they have no
 * number. `last`: the number of the last envelope that was sent. `has`: the answer if all up to it have arrived. `ask`: asks
 * for the envelopes from this number on. `begin`: no envelope before this number is kept.
 */
type EnvelopeKind = 'mail' | 'free' | 'last' | 'has' | 'ask' | 'begin';

/**
 * `series`: numbers begin again with each series of the sender, and so does what it has sent. In an `ask` and a `has` it is
 * the series of the other process.
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
  // A length in front of each message: its text may contain anything.
  const frames = messages.map((message) => `${LETTERS[message.kind]}${message.text.length}\n${message.text}`);
  return `${from} ${kind} ${series} ${number}\n${frames.join('')}`;
}

/** Reads an envelope; null if the text is none. */
export function readEnvelope(text: string): MailEnvelope | null {
  const head = HEAD.exec(text);
  if (!head) return null;
  const [whole, from = '', kind, series, number] = head;
  const messages = readMessages(text, whole.length);
  // The pattern names the kinds.
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
