/**
 * Core's Bus over processes that own partitions: each process tells the others which kinds of topics it listens to, and
 * receives the events of these topics.
 */
import type { Bus } from '../../core/backend.ts';
import { createListeners, type Listeners } from '../../core/live.ts';
import { isRecord, parsedJson } from '../../core/json.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { decode, encode } from './encoding.ts';
import type { Dependency } from './mail.ts';

/** The longest wait of `confirmed`, in milliseconds. */
const CONFIRM_MS = 1_000;

/**
 * A note about topics. `listens`: the kinds of topics that the sender listens to. `heard`: confirms such a note.
 * `number`: the number of the note; in `heard`, the number of the confirmed note. `isNew`: the sender does not know
 * which topics the receiver listens to, because it has just started or had treated the receiver as dead. `hasPublished`:
 * in `heard`, whether the sender has published events that it did not send to the receiver, because it did not know
 * until then which topics the receiver listens to.
 */
type BusNote = {
  readonly kind: 'listens' | 'heard';
  readonly kinds: readonly string[];
  readonly number: number;
  readonly isNew?: boolean;
  readonly hasPublished?: boolean;
};

type BusOptions = {
  readonly process: string;
  readonly alive: () => ReadonlyMap<string, unknown>;
  /** Sends an event or a note to a process. */
  readonly send: (process: string, text: string, after: Dependency) => void;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
};

/**
 * The bus. Listeners in this process receive an event before `publish` returns. Listeners in other processes receive
 * events in the order in which they were published.
 */
export class OwnedBus {
  readonly #options: BusOptions;
  readonly #listeners: Listeners;
  /** The number of topics of each kind that have listeners in this process. */
  readonly #own = new Map<string, number>();
  /** The kinds of topics that each other process listens to, by its newest note. */
  readonly #others = new Map<string, { readonly kinds: ReadonlySet<string>; readonly number: number }>();
  /** Whether this process has published any event. */
  #hasPublished = false;
  /** The number of the last note that each process has confirmed. */
  readonly #knowing = new Map<string, number>();
  #number = 0;
  /** The processes that had not confirmed the newest note at the last beat. */
  #silent: ReadonlySet<string> = new Set();
  /**
   * The processes to which the note was sent again. Until they confirm it, they may not send all events that this
   * process needs.
   */
  readonly #repeated = new Set<string>();
  /** Calls that wait until the other processes have confirmed the newest note. */
  readonly #waiting = new Set<() => void>();

  constructor(options: BusOptions) {
    this.#options = options;
    this.#listeners = createListeners(options.log, (topic) => this.#changed(topic));
  }

  get bus(): Bus {
    return {
      hasSubscribers: (kind) => this.#own.has(kind) || this.#others.values().some(({ kinds }) => kinds.has(kind)),
      publish: (topic, event) => this.#publish(topic, event),
      subscribe: (topic, listener, interrupted) => this.#listeners.add(topic, listener, interrupted),
      confirmed: () => this.#confirmed(),
    };
  }

  receive(from: string, text: string): void {
    const end = text.indexOf('\n');
    if (end < 0) return this.#note(from, text);
    const topic = text.slice(0, end);
    if (this.#listeners.has(topic)) this.#listeners.deliver(topic, decode(text.slice(end + 1)));
  }

  /** Called when a new process was seen. */
  joined(process: string): void {
    this.#tell(process);
  }

  /**
   * Repeats the newest note for the processes that have not confirmed it since the last beat, because notes may be
   * lost. Must be called periodically.
   */
  beat(): void {
    const silent = this.#unknowing();
    for (const process of silent) {
      if (!this.#silent.has(process)) continue;
      this.#repeated.add(process);
      this.#tell(process);
    }
    this.#silent = new Set(silent);
  }

  gone(process: string): void {
    this.#others.delete(process);
    this.#repeated.delete(process);
    this.#knowing.delete(process);
    this.#settle();
  }

  /** Called when events of other processes may have been lost. */
  interrupted(): void {
    for (const process of this.#options.alive().keys()) this.#tell(process);
    this.#listeners.interrupted();
  }

  #publish(topic: string, event: unknown): void {
    this.#listeners.deliver(topic, event);
    this.#hasPublished = true;
    const kind = kindOf(topic);
    let text: string | null = null;
    for (const [process, { kinds }] of this.#others)
      if (kinds.has(kind)) this.#options.send(process, (text ??= `${topic}\n${encode(event)}`), 'all');
  }

  #changed(topic: string): void {
    const kind = kindOf(topic);
    const before = this.#own.get(kind) ?? 0;
    const now = before + (this.#listeners.has(topic) ? 1 : -1);
    if (now > 0) this.#own.set(kind, now);
    else this.#own.delete(kind);
    if (before > 0 && now > 0) return;
    this.#number++;
    for (const process of this.#options.alive().keys()) this.#tell(process);
  }

  #tell(process: string): void {
    if (process === this.#options.process) return;
    const isNew = !this.#others.has(process);
    const note: BusNote = {
      kind: 'listens',
      kinds: [...this.#own.keys()],
      number: this.#number,
      ...(isNew && { isNew }),
    };
    this.#options.send(process, JSON.stringify(note), null);
  }

  #note(from: string, text: string): void {
    const note = readNote(text);
    if (!note) return this.#options.log.warn({ from }, 'a note about topics cannot be read');
    if (note.kind === 'heard') {
      this.#knowing.set(from, Math.max(note.number, this.#knowing.get(from) ?? 0));
      const wasIncomplete = note.number === this.#number && this.#repeated.delete(from);
      if (wasIncomplete || note.hasPublished === true) this.#listeners.interrupted();
      return this.#settle();
    }
    const hasPublished = this.#hasPublished && !this.#others.has(from);
    // Notes may arrive out of order, so an older one is ignored.
    if (note.number >= (this.#others.get(from)?.number ?? 0))
      this.#others.set(from, { kinds: new Set(note.kinds), number: note.number });
    const { kinds, number } = note;
    const heard: BusNote = { kind: 'heard', kinds, number, ...(hasPublished && { hasPublished }) };
    this.#options.send(from, JSON.stringify(heard), null);
    if (note.isNew === true) this.#introduce(from);
  }

  /** Tells a process which topics this one listens to, because that process does not know. */
  #introduce(process: string): void {
    this.#knowing.delete(process);
    this.#tell(process);
  }

  /** Resolves when all other processes have confirmed the newest note, at the latest after CONFIRM_MS. */
  #confirmed(): Promise<void> | void {
    if (this.#isKnown()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => {
      cancel();
      this.#waiting.delete(end);
      resolve();
    };
    const cancel = this.#options.clock.after(CONFIRM_MS, end);
    this.#waiting.add(end);
    return promise;
  }

  #isKnown(): boolean {
    return this.#unknowing().length === 0;
  }

  /** Returns the other processes that have not confirmed the newest note. */
  #unknowing(): readonly string[] {
    const { alive, process } = this.#options;
    const others = alive().keys();
    return [...others].filter((other) => other !== process && (this.#knowing.get(other) ?? 0) < this.#number);
  }

  #settle(): void {
    if (this.#isKnown()) for (const end of this.#waiting) end();
  }
}

/** Returns the kind of a topic: the text before the first colon. */
function kindOf(topic: string): string {
  const end = topic.indexOf(':');
  return end < 0 ? topic : topic.slice(0, end);
}

function readNote(text: string): BusNote | null {
  const note = parsedJson(text);
  if (!isRecord(note) || (note['kind'] !== 'listens' && note['kind'] !== 'heard')) return null;
  if (!Array.isArray(note['kinds']) || !Number.isSafeInteger(note['number'])) return null;
  const flags = [note['isNew'], note['hasPublished']];
  if (!flags.every((flag) => flag === undefined || typeof flag === 'boolean')) return null;
  // Every member was checked above.
  return note as BusNote;
}
