/** What owners of sites gave to viewers, and ended again: judges whether viewers saw and did only what they were given. */
import type { SiteRun } from './site-host.ts';

/** How far the clocks of relays, which decide when a grant expires, may be apart, in milliseconds. */
const CLOCKS_MS = 20_000;

/** A grant whose token somebody holds. Times are in milliseconds of the simulation. */
export type Given = {
  readonly sessionId: string;
  readonly userId: string;
  readonly grantId: string;
  readonly token: string;
  /** The names of the events, and the actions; null: those that the site has. */
  readonly events: readonly string[] | null;
  readonly actions: readonly string[];
  readonly share: boolean;
  readonly parentId: string | null;
  /** When it was asked for, and when it was told. */
  readonly askedAt: number;
  readonly toldAt: number;
  /** How long it lasts from then on, in milliseconds. */
  readonly ttlMs: number;
  /** When its end was told: the grant, one that it derives from, or its session is over. Infinity: it was not. */
  endedAt: number;
  /** When its end was asked for first: from then on it may be over. Infinity: it was not. */
  endingFrom: number;
};

/** An invocation by the holder of a grant. `status`: of the last answer; null: none. */
export type SiteInvoke = {
  readonly commandId: string;
  readonly action: string;
  readonly given: Given;
  readonly sentAt: number;
  answer: { readonly status: number; readonly code: string | null; readonly outcome: unknown } | null;
};

/** Whether a grant is certainly over at a time. */
export function isOver({ toldAt, ttlMs, endedAt }: Given, at: number): boolean {
  return at > endedAt || at > toldAt + ttlMs + CLOCKS_MS;
}

/** Whether a grant certainly lasts until a time. */
export function isLasting({ askedAt, ttlMs, endingFrom }: Given, until: number): boolean {
  return endingFrom === Infinity && askedAt + ttlMs - CLOCKS_MS > until;
}

/** Returns what is wrong with an invocation, and with what the host ran for it. */
export function invokeFaults(invoke: SiteInvoke, ran: readonly SiteRun[]): readonly string[] {
  const { commandId, action, given, sentAt, answer } = invoke;
  const what = `${commandId} (${action}, grant ${given.grantId})`;
  const faults: string[] = [];
  if (ran.length > 1) faults.push(`${what} ran ${ran.length} times`);
  const mayNot = !given.actions.includes(action)
    ? 'is not granted'
    : isOver(given, sentAt)
      ? 'came after the end'
      : null;
  if (mayNot !== null && ran.length > 0) faults.push(`${what} ${mayNot}, and ran`);
  if (mayNot !== null && answer && answer.status < 400) faults.push(`${what} ${mayNot}, and was answered`);
  for (const run of ran) {
    if (run.action !== action) faults.push(`${what} ran as ${run.action}`);
    if (run.sessionId !== given.sessionId) faults.push(`${what} ran for the session ${run.sessionId}`);
  }
  if (answer?.outcome === 'completed' && ran.length === 0) faults.push(`${what} is completed, and never ran`);
  return faults;
}
