/** A simulated process: its clocks, its event loop and its random numbers. It can be paused, and it can die. */
import { createHash } from 'node:crypto';
import type { Cancel, Clock, Crypto, EventLoop } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import type { Simulation } from './virtual.ts';

/** The wall time at which each simulation begins, in epoch milliseconds. */
export const START = Date.UTC(2026, 0, 1);

type Drift = {
  /** How much the wall clock of the process is ahead, in milliseconds. */
  readonly aheadMs: number;
  /** How fast the clocks of the process go: 1.01 is one percent too fast. */
  readonly rate: number;
};

export class SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly crypto: Crypto;
  readonly #simulation: Simulation;
  #aheadMs: number;
  #isDead = false;
  /** Called when the process dies. */
  onDeath = (): void => {};
  /** What has happened while the process is paused or blocked, in order; null while it runs. */
  #held: (() => void)[] | null = null;
  #isPaused = false;
  /** Until when a call of the system holds the event loop up. */
  #blockedUntil = 0;

  constructor(simulation: Simulation, name: string, { aheadMs, rate }: Drift = { aheadMs: 0, rate: 1 }) {
    this.#simulation = simulation;
    this.name = name;
    this.#aheadMs = aheadMs;
    this.clock = {
      now: () => Math.floor(START + simulation.now * rate + this.#aheadMs),
      monotonic: () => simulation.now * rate,
      after: (ms, run) => this.after(ms / rate, 'timer', run),
      every: (ms, run) => this.#every(ms / rate, run),
    };
    this.loop = {
      atTurnEnd: (run) => void this.after(0, 'turn end', run),
      afterOthers: (run) => void this.after(0, 'after others', run),
    };
    this.crypto = randomOf(simulation, this.clock);
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Calls `run` in this process after a while: later if it is paused then, never if it is dead. */
  after(ms: number, what: string, run: () => void): Cancel {
    let isCancelled = false;
    const guarded = (): void => {
      if (this.#isDead || isCancelled) return;
      if (this.#held) this.#held.push(guarded);
      else this.#run(run);
    };
    const cancel = this.#simulation.after(ms, `${this.name}: ${what}`, guarded);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** Runs something. What it throws after the process has died within it is of no importance. */
  #run(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!this.#isDead) throw error;
    }
  }

  /** Nothing runs from now on until `resume`: a machine that sleeps, or a long pause for garbage collection. */
  pause(): void {
    this.#isPaused = true;
    this.#held ??= [];
  }

  resume(): void {
    this.#isPaused = false;
    this.#goOn();
  }

  /** Nothing runs for this long after what runs now, and after earlier blocks: a call of the system takes its time. */
  block(ms: number): void {
    if (ms <= 0 || this.#isDead) return;
    this.#held ??= [];
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#simulation.now) + ms;
    this.#simulation.after(this.#blockedUntil - this.#simulation.now, `${this.name}: unblocked`, () => this.#goOn());
  }

  #goOn(): void {
    if (this.#isPaused || this.#blockedUntil > this.#simulation.now) return;
    const held = this.#held ?? [];
    this.#held = null;
    for (const run of held) this.after(0, 'resumed', run);
  }

  /** Nothing runs any more. */
  die(): void {
    if (this.#isDead) return;
    this.#isDead = true;
    this.#held = null;
    this.onDeath();
  }

  /** Sets the wall clock of the process forward, or back. */
  stepClock(ms: number): void {
    this.#aheadMs += ms;
  }

  #every(ms: number, run: () => void): Cancel {
    let cancel = (): void => {};
    const next = (): void => {
      cancel = this.after(ms, 'interval', () => {
        next();
        run();
      });
    };
    next();
    return () => cancel();
  }
}

/** Digests as they are, and random numbers from the seed. */
function randomOf(simulation: Simulation, clock: Clock): Crypto {
  const plain = createCrypto('simulation');
  const bytes = (): Buffer => {
    const drawn = Array.from({ length: 4 }, () => simulation.random());
    return createHash('sha256').update(drawn.join(' ')).digest();
  };
  return {
    ...plain,
    randomToken: () => bytes().toString('base64url'),
    randomInt: (below) => Math.floor(simulation.random() * below),
    randomId() {
      const at = clock.now().toString(16).padStart(12, '0');
      const hex = bytes().toString('hex');
      return `${at.slice(0, 8)}-${at.slice(8)}-7${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
    },
  };
}
