/** Defines what one input of the cost mode is, what it may cost, and how costs are compared. */
import type { Draw } from '../../lib/random.ts';

/** Who sends an input. An administrator's request may hold the event loop for longer. */
export type Sender = 'user' | 'admin';

/** What one input cost. All times are in milliseconds. */
export type Cost = {
  /** The most expensive turn of the relay's event loop, in CPU time of its main thread. */
  readonly turnMs: number;
  /** The CPU time of the relay's main thread from the request until it is idle. */
  readonly cpuMs: number;
  /** The longest script or command of Redis; 0 in direct mode. */
  readonly scriptMs: number;
  /** The time of all scripts and commands of Redis; 0 in direct mode. */
  readonly redisMs: number;
  /** The name of the longest script or command of Redis. */
  readonly script: string;
  /** How the relay answered, in a few characters, such as a status. */
  readonly answer: string;
};

/** One input, which can be sent any number of times and can grow. */
export type CostInput = {
  /** Prepares what the input needs and resolves with the act that is measured, which resolves with the answer. */
  prepare(): Promise<() => Promise<string>>;
  /** Releases what `prepare` opened. */
  finish(): Promise<void>;
  /** Returns a similar input, usually a larger one. */
  mutate(draw: Draw): CostInput;
  /** Returns the input in at most a line, for the table. */
  show(): string;
};

/** What `prepare` of an input rejects with if the relay does not let it be sent now. */
export class NotPrepared extends Error {}

/** Inputs that the relay handles in the same way: one route, one type of frame, or one root field. */
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

/** The limits of what one input may cost, by its sender. */
export const BOUNDS: Readonly<Record<Sender, Bounds>> = {
  user: { turnMs: 50, cpuMs: 200, scriptMs: 20 },
  admin: { turnMs: 100, cpuMs: 200, scriptMs: 20 },
};

/** Returns how near a cost is to the nearest bound: above 1 it breaks a bound. */
export function dearness(cost: Cost, sender: Sender): number {
  const bounds = BOUNDS[sender];
  return Math.max(cost.turnMs / bounds.turnMs, cost.cpuMs / bounds.cpuMs, cost.scriptMs / bounds.scriptMs);
}

/** Returns the medians of several measurements of one input, each figure by itself. */
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
