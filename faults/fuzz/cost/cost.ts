/** Defines an input of the cost mode, the limits of its cost, and the comparison of costs. */
import type { Draw } from '../../lib/random.ts';

/** The sender of an input. A request of an administrator may block the event loop for longer. */
export type Sender = 'user' | 'admin';

/** The cost of one input. All times are in milliseconds. */
export type Cost = {
  /** The CPU time of the main thread in the most expensive turn of the relay's event loop. */
  readonly turnMs: number;
  /** The CPU time of the relay's main thread, from the request until the relay is idle. */
  readonly cpuMs: number;
  /** The duration of the longest script or command of Redis; 0 in direct mode. */
  readonly scriptMs: number;
  /** The duration of all scripts and commands of Redis together; 0 in direct mode. */
  readonly redisMs: number;
  /** The name of the longest script or command of Redis. */
  readonly script: string;
  /** A short form of the relay's answer, such as a status. */
  readonly answer: string;
};

/** One input, which can be sent any number of times and can grow. */
export type CostInput = {
  /**
   * Prepares everything that the input needs, and resolves with the function that sends the input. That function is
   * measured, and resolves with the answer.
   */
  prepare(): Promise<() => Promise<string>>;
  /** Releases what `prepare` opened. */
  finish(): Promise<void>;
  /** Returns a similar input, usually a larger one. */
  mutate(draw: Draw): CostInput;
  /** Returns a description of the input of at most one line, for the table. */
  show(): string;
};

/** `prepare` rejects with this if the relay does not accept the input at present. */
export class NotPrepared extends Error {}

/** Inputs that the relay handles in the same way: those of one route, one frame type, or one root field. */
export type CostKind = {
  readonly family: Family;
  /** The name of the route, frame or root field. */
  readonly name: string;
  readonly sender: Sender;
  /** Draws a small input of this kind. */
  draw(draw: Draw): CostInput;
};

const FAMILIES = ['requests', 'frames', 'documents'] as const;
export type Family = (typeof FAMILIES)[number];

export type Bounds = { readonly turnMs: number; readonly cpuMs: number; readonly scriptMs: number };

/** The limits on the cost of one input, by its sender. */
export const BOUNDS: Readonly<Record<Sender, Bounds>> = {
  user: { turnMs: 50, cpuMs: 200, scriptMs: 20 },
  admin: { turnMs: 100, cpuMs: 200, scriptMs: 20 },
};

/** Returns the ratio of a cost to the nearest limit; above 1 the cost exceeds a limit. */
export function dearness(cost: Cost, sender: Sender): number {
  const bounds = BOUNDS[sender];
  return Math.max(cost.turnMs / bounds.turnMs, cost.cpuMs / bounds.cpuMs, cost.scriptMs / bounds.scriptMs);
}

/** Returns the medians of several measurements of one input, separately for each figure. */
export function medianOf(costs: readonly Cost[]): Cost {
  const middle = (figure: (cost: Cost) => number): number =>
    costs.map(figure).toSorted((a, b) => a - b)[Math.floor((costs.length - 1) / 2)] ?? 0;
  const scriptMs = middle((cost) => cost.scriptMs);
  const shown = costs.find((cost) => cost.scriptMs === scriptMs) ?? costs[0];
  return {
    turnMs: middle((cost) => cost.turnMs),
    cpuMs: middle((cost) => cost.cpuMs),
    scriptMs,
    redisMs: middle((cost) => cost.redisMs),
    script: shown?.script ?? '',
    answer: shown?.answer ?? '',
  };
}
