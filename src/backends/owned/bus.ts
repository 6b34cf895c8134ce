/** Core's Bus over processes that own partitions: each says which kinds of topics it listens to, and gets their events. */
import type { Bus } from '../../core/backend.ts';
import { createListeners, type Listeners } from '../../core/live.ts';
import { isRecord, parsedJson } from '../../core/json.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { decode, encode } from './encoding.ts';
import type { Dependency } from './mail.ts';

/** How long `confirmed` waits at most, in milliseconds. */
const CONFIRM_MS = 1_000;

/**
 * What processes say to each other about topics. `kinds`: what the sender listens to. `number`: of its notes; an answer
 * has that of the note that it confirms. `isNew`: the sender does not know what the receiver listens to: it has started,
 * or had taken the receiver for dead.
 */
type BusNote = {
  readonly kind: 'listens' | 'heard';
  readonly kinds: readonly string[];
  readonly number: number;
  readonly isNew?: boolean;
};

type BusOptions = {
  readonly process: string;
  readonly alive: () => ReadonlyMap<string, unknown>;
  /** Sends an event, or a note about topics. */
  readonly send: (process: string, text: string, after: Dependency) => void;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
};

/** Listeners of this process get an event before `publish` returns; those of others get it in the order published. */
export class OwnedBus {
  readonly #options: BusOptions;
  readonly #listeners: Listeners;
  /** How many topics of each kind have listeners here. */
  readonly #own = new Map<string, number>();
  /** The kinds of topics that other processes listen to, by their newest notes. */
  readonly #others = new Map<string, { readonly kinds: ReadonlySet<string>; readonly number: number }>();
  /** The processes that know what this one listens to. */
  readonly #knowing = new Map<string, number>();
  #number = 0;
  /** The processes that had not confirmed the newest note at the last beat. */
  #silent: ReadonlySet<string> = new Set();
  /** Those to which the note went again since: they may not have sent what this process listens to. */
  readonly #repeated = new Set<string>();
  /** Who waits until the others know what this process listens to. */
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

  /** A process is there that was not before. */
  joined(process: string): void {
    this.#tell(process);
  }

  /** Tells those again who have not confirmed what this process listens to: notes may be lost. Called once in a while. */
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

  /** Events of other processes may be lost. */
  interrupted(): void {
    for (const process of this.#options.alive().keys()) this.#tell(process);
    this.#listeners.interrupted();
  }

  #publish(topic: string, event: unknown): void {
    this.#listeners.deliver(topic, event);
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
      if (note.number === this.#number && this.#repeated.delete(from)) this.#listeners.interrupted();
      return this.#settle();
    }
    // Notes may arrive in another order.
    if (note.number >= (this.#others.get(from)?.number ?? 0))
      this.#others.set(from, { kinds: new Set(note.kinds), number: note.number });
    const { kinds, number } = note;
    this.#options.send(from, JSON.stringify({ kind: 'heard', kinds, number } satisfies BusNote), null);
    if (note.isNew === true) this.#introduce(from);
  }

  /** Tells a process that does not know it what this one listens to. If it had known, it may not have sent some of it. */
  #introduce(process: string): void {
    const hadHeard = (this.#knowing.get(process) ?? 0) > 0;
    this.#knowing.delete(process);
    this.#tell(process);
    if (hadHeard) this.#listeners.interrupted();
  }

  /** Resolves when all others know what this process listens to, or after a while. */
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

  /** The other processes that do not know what this one listens to, as far as this one knows. */
  #unknowing(): readonly string[] {
    const { alive, process } = this.#options;
    const others = alive().keys();
    return [...others].filter((other) => other !== process && (this.#knowing.get(other) ?? 0) < this.#number);
  }

  #settle(): void {
    if (this.#isKnown()) for (const end of this.#waiting) end();
  }
}

/** The part of a topic that says what its events are. */
function kindOf(topic: string): string {
  const end = topic.indexOf(':');
  return end < 0 ? topic : topic.slice(0, end);
}

function readNote(text: string): BusNote | null {
  const note = parsedJson(text);
  if (!isRecord(note) || (note['kind'] !== 'listens' && note['kind'] !== 'heard')) return null;
  if (!Array.isArray(note['kinds']) || !Number.isSafeInteger(note['number'])) return null;
  if (note['isNew'] !== undefined && typeof note['isNew'] !== 'boolean') return null;
  // Each member was checked.
  return note as BusNote;
}
