/** Virtual time: all events of a simulation in one queue, in an order that only the seed decides. */
import { createHash } from 'node:crypto';
import type { Cancel } from '../../src/core/ports.ts';
import { seeded } from '../lib/random.ts';

/** The most events at one time: with more of them, something is repeated without end. */
const MOST_AT_ONCE = 100_000;

type Event = { readonly at: number; readonly order: number; readonly name: string; run: (() => void) | null };

/**
 * Runs events one after the other. Each has the process for itself until all promises that it settled have been
 * followed, so nothing depends on how fast the machine is.
 */
export class Simulation {
  readonly random: () => number;
  readonly #digest = createHash('sha256');
  readonly #queue = new EventQueue();
  #now = 0;
  #order = 0;
  #atOnce = 0;
  /** The number of events that have run. */
  handled = 0;

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  /** The virtual time, in milliseconds since the simulation began. */
  get now(): number {
    return this.#now;
  }

  /** A text that two runs share if they ran the same events at the same times. */
  get digest(): string {
    return this.#digest.copy().digest('hex');
  }

  /** Calls `run` after this many milliseconds, after all events that were added for the same time before. */
  after(ms: number, name: string, run: () => void): Cancel {
    const event: Event = { at: this.#now + Math.max(0, ms), order: this.#order++, name, run };
    this.#queue.add(event);
    return () => {
      event.run = null;
    };
  }

  /** Notes something that happened in the digest. */
  note(text: string): void {
    this.#digest.update(`${this.#now} ${text}\n`);
  }

  /**
   * Runs the events of this many milliseconds, or until `until` is true. Resolves with whether it was. Rejects if events
   * of one time have no end.
   */
  async run(ms: number, until: () => boolean = () => false): Promise<boolean> {
    const end = this.#now + ms;
    await settled();
    for (;;) {
      if (until()) return true;
      const event = this.#queue.first;
      if (!event || event.at > end) break;
      this.#queue.take();
      if (!event.run) continue;
      this.#atOnce = event.at > this.#now ? 0 : this.#atOnce + 1;
      if (this.#atOnce > MOST_AT_ONCE) throw new Error(`time does not go on: ${event.name}`);
      this.#now = Math.max(this.#now, event.at);
      this.note(event.name);
      this.handled++;
      event.run();
      await settled();
    }
    this.#now = end;
    return until();
  }
}

/** Resolves once all promises that are settled now have been followed. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A binary heap of events, the next one first. */
class EventQueue {
  readonly #events: Event[] = [];

  get first(): Event | undefined {
    return this.#events[0];
  }

  add(event: Event): void {
    const events = this.#events;
    let at = events.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = events[above];
      if (!parent || isBefore(parent, event)) break;
      events[at] = parent;
      at = above;
    }
    events[at] = event;
  }

  take(): void {
    const events = this.#events;
    const last = events.pop();
    if (!last || events.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const [left, right] = [events[below], events[below + 1]];
      if (!left) break;
      if (right && isBefore(right, left)) below++;
      const child = events[below];
      if (!child || isBefore(last, child)) break;
      events[at] = child;
      at = below;
    }
    events[at] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}
