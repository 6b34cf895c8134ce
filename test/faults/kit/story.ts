/** Writes the logs of invented fault runs, correct or with one change, for tests of the checker. */
import { canaryOf, type FaultEvent, type Key, type Logged } from '../../../faults/outages/log/events.ts';

export type Change = (events: readonly Logged[]) => readonly Logged[];

export const ANN: Key = { user: 'ann', client: 'desk', command: 'c1' };
export const BEN: Key = { user: 'ben', client: 'desk', command: 'c2' };
export const INSTANCE = 'i1';
const BUDGET_MS = 30_000;

/** Stamps events that a test wrote by hand with times that are `gapMs` apart. */
export function tell(events: readonly FaultEvent[], gapMs = 1): readonly Logged[] {
  return events.map((event, index) => ({
    proc: 'p',
    boot: 'b',
    seq: index + 1,
    at: (index + 1) * gapMs * 1e6,
    ...event,
  }));
}

/** Returns the log of a correct run of two commands. */
export function goodRun(): readonly Logged[] {
  return tell([
    { event: 'link', user: 'ann', client: 'desk', instance: INSTANCE, up: true },
    { event: 'link', user: 'ben', client: 'desk', instance: INSTANCE, up: true },
    { event: 'phase', phase: 'load' },
    ...completed(ANN, 'w1'),
    ...completed(BEN, 'w2'),
    { event: 'cap', name: 'summary sample', value: 1000, max: 1000 },
    { event: 'memory', of: 'a', resident: 100_000_000, live: 40_000_000, keepsRecords: false },
    { event: 'seen', user: 'ann', on: 'history', canary: canaryOf(ANN) },
    { event: 'phase', phase: 'quiet' },
    { event: 'phase', phase: 'read' },
    record(ANN),
    record(BEN),
    { event: 'ends', ...ANN, rows: 1 },
    { event: 'ends', ...BEN, rows: 1 },
    { event: 'reservations-read', scopes: 0 },
    { event: 'process', of: 'a.1', by: 'nobody', code: null, signal: null },
    { event: 'idle', of: 'a', waiters: 0, unfinished: 0, sockets: 3, baseline: 3 },
  ]);
}

export function attempt(key: Key, wait: string): FaultEvent {
  return { event: 'attempt', ...key, wait, relay: 'a', how: 'invoke', budgetMs: BUDGET_MS };
}

export function answer(key: Key, wait: string, outcome = 'completed'): FaultEvent {
  const done = outcome === 'completed';
  const execution = done ? 'reported_by_client' : 'may_have_run';
  return {
    event: 'answer',
    ...key,
    wait,
    outcome,
    execution,
    canary: done ? canaryOf(key) : null,
    by: done ? INSTANCE : null,
  };
}

export function run(key: Key, instance = INSTANCE): FaultEvent {
  return { event: 'run-begin', ...key, instance, canary: canaryOf(key), leftMs: BUDGET_MS };
}

export function record(key: Key, outcome: string | null = 'completed'): FaultEvent {
  const written = outcome !== 'expired' && outcome !== null;
  return {
    event: 'record',
    ...key,
    scope: key.user,
    stage: outcome === null ? 'dispatched' : 'terminal',
    outcome,
    execution: outcome === 'completed' ? 'reported_by_client' : written ? 'may_have_run' : 'not_written',
    dispatched: written,
    bound: written ? INSTANCE : null,
    late: 0,
  };
}

function completed(key: Key, wait: string): readonly FaultEvent[] {
  const end = { event: 'run-end', ...key, instance: INSTANCE } as const;
  return [attempt(key, wait), run(key), end, answer(key, wait)];
}

type Match = Partial<Record<string, unknown>>;

function isLike(event: Logged, match: Match): boolean {
  return Object.entries(match).every(([name, value]) => Reflect.get(event, name) === value);
}

/**
 * Returns the events that match. Throws when there is none, because a change that changes nothing would prove nothing.
 */
function found(events: readonly Logged[], match: Match): readonly Logged[] {
  if (!events.some((event) => isLike(event, match))) throw new Error(`nothing is like ${JSON.stringify(match)}`);
  return events;
}

export function without(match: Match): Change {
  return (events) => found(events, match).filter((event) => !isLike(event, match));
}

export function changed(match: Match, change: Match): Change {
  return (events) => found(events, match).map((event) => (isLike(event, match) ? { ...event, ...change } : event));
}

/** Returns a change that inserts events right after the first event that matches. */
export function after(match: Match, ...more: readonly FaultEvent[]): Change {
  return (events) => {
    const index = found(events, match).findIndex((event) => isLike(event, match));
    const at = events[index]?.at ?? 0;
    const stamped = more.map((event, n) => ({ proc: 'q', boot: 'b', seq: n + 1, at: at + n + 1, ...event }));
    return [...events.slice(0, index + 1), ...stamped, ...events.slice(index + 1)];
  };
}

/** Returns a change that delays everything from the first match by `ms`. */
export function later(match: Match, ms: number): Change {
  return (events) => {
    const index = found(events, match).findIndex((event) => isLike(event, match));
    return events.map((event, n) => (n < index ? event : { ...event, at: event.at + ms * 1e6 }));
  };
}

export function storyWith(...changes: readonly Change[]): readonly Logged[] {
  return changes.reduce((events, change) => change(events), goodRun());
}
