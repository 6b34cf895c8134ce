/**
 * A network between processes of a test: messages arrive late and out of order, are doubled and lost, as a seed says.
 */
import type { Transport } from '../../../src/backends/owned/transport.ts';
import { between, seeded } from '../../../faults/lib/random.ts';

/** The parts of messages, 0 to 1, that are lost or arrive twice, and by how many turns one is late at most. */
export type Faults = { readonly lost: number; readonly doubled: number; readonly lateTurns: number };

const LATE: Faults = { lost: 0, doubled: 0.2, lateTurns: 4 };

type Pending = { turns: number; readonly run: () => void };

/** A message as it was sent. */
export type Sent = { readonly from: string; readonly to: string; readonly text: string; readonly after: unknown };

export class Network {
  readonly #faults: Faults;
  readonly #random: () => number;
  readonly #onLoss = new Map<string, () => void>();
  readonly #receivers = new Map<string, (from: string, text: string) => void>();
  readonly #cut = new Set<string>();
  readonly #lastTurns = new Map<string, Pending>();
  #pending: Pending[] = [];
  #pumping = false;
  /** The messages that were sent, whether they arrived or not. */
  readonly sent: Sent[] = [];

  constructor(seed: number, faults: Partial<Faults> = {}) {
    this.#faults = { ...LATE, ...faults };
    this.#random = seeded(seed);
  }

  /** Returns the transport of a process. */
  join(process: string): Transport {
    return {
      send: (to, text, after) => {
        this.sent.push({ from: process, to, text, after });
        // As bytes: what UTF-8 cannot hold would be lost.
        const arrives = Buffer.from(text).toString();
        const deliver = (): void => this.#receivers.get(to)?.(process, arrives);
        if (this.#cut.has(to) || this.#cut.has(process) || this.#random() < this.#faults.lost) return;
        this.#later(deliver);
        if (this.#random() < this.#faults.doubled) this.#later(deliver);
      },
      onLoss: (run) => void this.#onLoss.set(process, run),
      onText: (receive) => void this.#receivers.set(process, receive),
    };
  }

  /** Tells a process that messages may be lost. Without it, only repeats find that. */
  tellLoss(process: string): void {
    this.#onLoss.get(process)?.();
  }

  /** Loses all messages from and to a process from now on, or no longer. */
  cut(process: string, isCut = true): void {
    if (isCut) this.#cut.add(process);
    else this.#cut.delete(process);
  }

  /** Runs something late, after all that was given before with the same name. */
  inOrder(name: string, run: () => void): void {
    const before = this.#lastTurns.get(name);
    const made = this.#later(run);
    if (before) made.turns = Math.max(made.turns, before.turns);
    this.#lastTurns.set(name, made);
  }

  /** Resolves when no message is on its way. */
  async quiet(): Promise<void> {
    do await new Promise((done) => setImmediate(done));
    while (this.#pending.length > 0);
  }

  #later(run: () => void): Pending {
    const made = { turns: between(this.#random, 0, this.#faults.lateTurns), run };
    this.#pending.push(made);
    if (!this.#pumping) setImmediate(() => this.#pump());
    this.#pumping = true;
    return made;
  }

  #pump(): void {
    const due = this.#pending.filter(({ turns }) => turns <= 0);
    this.#pending = this.#pending.filter(({ turns }) => turns > 0);
    for (const waits of this.#pending) waits.turns--;
    for (const { run } of due) run();
    this.#pumping = this.#pending.length > 0;
    if (this.#pumping) setImmediate(() => this.#pump());
  }
}
