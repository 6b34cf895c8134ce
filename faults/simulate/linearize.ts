/**
 * The sequential model of a command, and the search for an order of what happened to one that explains what everybody
 * was told: each act and each answer at one time between its request and its arrival.
 */

import type { WireStage } from '../../src/protocol/codes.ts';

/** The end of a command, as an answer or a record has it. `value`: the text of a result; null if there is none. */
export type End = {
  readonly outcome: string;
  readonly execution: string;
  readonly code: string | null;
  readonly value: string | null;
};

/** A record, as a reader got it. */
export type View = {
  readonly stage: 'waiting' | 'dispatched' | 'acknowledged' | 'ended';
  /** Null until the command has ended. */
  readonly end: End | null;
  readonly isCancelRequested: boolean;
  readonly late: number;
  readonly version: number;
  /** When its time is over, in milliseconds of the simulation, by the clock of its relays. */
  readonly deadline: number;
};

/** What a request may do to a command, once or again if it is repeated. `end`: the client reports this end. */
export type Effect =
  { readonly kind: 'admit' } | { readonly kind: 'cancel' } | { readonly kind: 'end'; readonly end: End };

/** What somebody learned of a command. */
export type Claim =
  /** A caller was told the end. */
  | { readonly kind: 'told'; readonly end: End }
  /** A caller was told that the command is in this stage. */
  | { readonly kind: 'stage'; readonly stage: Stage }
  /** The call was refused: there is no such command. */
  | { readonly kind: 'refused' }
  /** What became of a cancel. */
  | { readonly kind: 'receipt'; readonly state: 'cancelled' | 'requested' | 'too_late' | 'not_found' }
  /** A reader got the record; null: there is none. */
  | { readonly kind: 'read'; readonly view: View | null }
  /** A handler began: the command has arrived at its client. */
  | { readonly kind: 'begun' };

/**
 * A request, or what a client did. `from` and `to`: when it was made, and when its answer was there; Infinity: never.
 * `may`: what it may do, at any time from `from` on; until `to` if it was answered. `claim`: what its answer says.
 */
export type Operation = {
  readonly from: number;
  to: number;
  may: Effect | null;
  claim: Claim | null;
};

/** Returns the stage of the model that a stage of a record is. */
export function stageOf(stage: WireStage): View['stage'] {
  if (stage === 'admitted' || stage === 'queued') return 'waiting';
  return stage === 'terminal' ? 'ended' : stage;
}

/** Returns a request that was not answered yet. */
export function requestAt(from: number, may: Effect | null): Operation {
  return { from, to: Infinity, may, claim: null };
}

/** Notes the answer to a request, which has done what it says, or nothing. */
export function noteAnswer(operation: Operation, to: number, claim: Claim): void {
  Object.assign(operation, { to, claim });
}

/** Notes that a request was refused. It has changed nothing. */
export function noteRefusal(operation: Operation, to: number): void {
  Object.assign(operation, { to, claim: { kind: 'refused' }, may: null });
}

type Stage = View['stage'] | 'absent';

/** A command between two steps. */
type State = {
  readonly stage: Stage;
  readonly end: End | null;
  readonly isCancelRequested: boolean;
  readonly hasBegun: boolean;
  /** What the reader of the newest version so far got. */
  readonly read: View | null;
};

const ABSENT: State = { stage: 'absent', end: null, isCancelRequested: false, hasBegun: false, read: null };
const CANCELLED: End = { outcome: 'cancelled', execution: 'not_written', code: null, value: null };
/** The ends that a command may have if nobody was told of its end. */
const UNTOLD: readonly End[] = [
  { outcome: 'expired', execution: 'not_written', code: null, value: null },
  { outcome: 'outcome_unknown', execution: 'may_have_run', code: null, value: null },
  { outcome: 'failed', execution: 'refused_by_client', code: null, value: null },
];
/** The code of ends that are given up because the store has lost something. */
const LOST = 'store_lost';

// The model: what may follow a state.

function isRunning({ stage }: State): boolean {
  return stage === 'dispatched' || stage === 'acknowledged';
}

/**
 * Whether the relay may end a command so without a report that is known of: at a deadline, because a link or an
 * instance is gone, because the client refused it, or gave up what its handler had made.
 */
function mayEnd(state: State, { outcome, execution, code }: End): boolean {
  const { stage, hasBegun } = state;
  switch (execution) {
    case 'not_written':
      return stage === 'waiting' && outcome === 'expired';
    case 'may_have_run':
      return isRunning(state) || (stage === 'waiting' && code === LOST);
    case 'refused_by_client':
      return !hasBegun && (stage === 'dispatched' || (stage === 'acknowledged' && code !== 'not_received'));
    default:
      return isRunning(state) && hasBegun && outcome === 'failed' && code !== 'handler_failed';
  }
}

/** Returns the states that may follow without a request. `ends`: the ends that the command may have. */
function following(state: State, ends: readonly End[]): readonly State[] {
  const next: State[] = [];
  if (state.stage === 'waiting') next.push({ ...state, stage: 'dispatched' });
  if (state.stage === 'dispatched') next.push({ ...state, stage: 'acknowledged' });
  for (const end of ends) if (mayEnd(state, end)) next.push({ ...state, stage: 'ended', end });
  return next;
}

/** Returns the state after a request was handled; null if that changes nothing. */
function after(state: State, effect: Effect): State | null {
  switch (effect.kind) {
    case 'admit':
      return state.stage === 'absent' ? { ...state, stage: 'waiting' } : null;
    case 'cancel':
      if (state.stage === 'waiting') return { ...state, stage: 'ended', end: CANCELLED, isCancelRequested: true };
      return isRunning(state) && !state.isCancelRequested ? { ...state, isCancelRequested: true } : null;
    case 'end':
      return isRunning(state) ? { ...state, stage: 'ended', end: effect.end } : null;
  }
}

/** Returns the state after somebody was told this of the state; null if it is not true of it. */
function afterClaim(state: State, claim: Claim): State | null {
  const { stage, end } = state;
  switch (claim.kind) {
    case 'told':
      return end && isSameEnd(end, claim.end) ? state : null;
    case 'stage':
      return claim.stage === stage ? state : null;
    case 'refused':
      return stage === 'absent' ? state : null;
    case 'receipt':
      return afterReceipt(state, claim.state);
    case 'read':
      return afterRead(state, claim.view);
    case 'begun': {
      const mayBegin = !state.hasBegun && (isRunning(state) || end?.execution === 'may_have_run');
      return mayBegin ? { ...state, hasBegun: true } : null;
    }
  }
}

function afterReceipt(state: State, receipt: 'cancelled' | 'requested' | 'too_late' | 'not_found'): State | null {
  const { stage } = state;
  if (receipt === 'not_found') return stage === 'absent' ? state : null;
  if (receipt === 'too_late') return stage === 'ended' ? state : null;
  if (receipt === 'cancelled') return stage === 'waiting' ? after(state, { kind: 'cancel' }) : null;
  return isRunning(state) ? { ...state, isCancelRequested: true } : null;
}

/** A record is as its command is, and no reader gets an older one than a reader before. */
function afterRead(state: State, view: View | null): State | null {
  if (!view) return state.stage === 'absent' ? state : null;
  const { stage, end, isCancelRequested, read } = state;
  if (view.stage !== stage || view.isCancelRequested !== isCancelRequested) return null;
  if (view.end && !(end && isSameEnd(end, view.end))) return null;
  if (view.late > 0 && (stage === 'waiting' || end?.execution === 'not_written')) return null;
  if (read && (view.version < read.version || view.late < read.late)) return null;
  if (read && view.version === read.version && JSON.stringify(view) !== JSON.stringify(read)) return null;
  return { ...state, read: view };
}

/** A result that is no longer retained is no other end, and a record has no result. */
function isSameEnd(one: End, other: End): boolean {
  if (one.outcome !== other.outcome || one.execution !== other.execution) return false;
  if (one.code === 'result_expired' || other.code === 'result_expired') return true;
  return one.code === other.code && (one.value === null || other.value === null || one.value === other.value);
}

// The search.

/** How many states of one search are looked at, at most: histories are short. */
const MOST = 200_000;

/**
 * Returns what no order of the operations explains, as a text for people; null if an order does. Looks at all orders
 * in which no operation comes before its request or after its answer.
 */
export function unexplained(operations: readonly Operation[]): string | null {
  const search = new Search(operations);
  return search.isExplained() ? null : search.says();
}

class Search {
  readonly #claims: readonly (Operation & { readonly claim: Claim })[];
  readonly #requests: readonly (Operation & { readonly may: Effect })[];
  readonly #ends: readonly End[];
  readonly #seen = new Set<string>();
  /** The claims that were explained together with the most others. */
  #best: ReadonlySet<number> = new Set();

  constructor(operations: readonly Operation[]) {
    this.#claims = operations.filter((one): one is Operation & { claim: Claim } => one.claim !== null);
    this.#requests = operations.filter((one): one is Operation & { may: Effect } => one.may !== null);
    const told = this.#claims.flatMap(({ claim }) => endOf(claim) ?? []);
    this.#ends = told.length > 0 ? told : UNTOLD;
  }

  isExplained(): boolean {
    return this.#from(ABSENT, new Set(), -Infinity);
  }

  /** Says what was explained, and what could not follow. */
  says(): string {
    const line = ({ from, to, claim }: Operation): string => `${JSON.stringify(claim)} from ${from} to ${to}`;
    const left = this.#claims.filter((_, i) => !this.#best.has(i)).map(line);
    const found = this.#claims.filter((_, i) => this.#best.has(i)).map(line);
    return `no order explains ${left.join(', ')}; after ${found.join(', ') || 'nothing'}`;
  }

  /** `at`: the earliest time of the next step. `explained`: the claims before it. */
  #from(state: State, explained: ReadonlySet<number>, at: number): boolean {
    if (explained.size === this.#claims.length) return true;
    const key = JSON.stringify([state, [...explained].toSorted((a, b) => a - b), at]);
    if (this.#seen.has(key)) return false;
    if (this.#seen.size >= MOST) throw new Error('a history of a command is too long to be judged');
    this.#seen.add(key);
    if (explained.size > this.#best.size) this.#best = explained;
    // What is not explained yet comes later, and before its answer.
    const until = Math.min(...this.#claims.map(({ to }, i) => (explained.has(i) ? Infinity : to)));
    for (const [i, { from, claim }] of this.#claims.entries()) {
      if (explained.has(i) || from > until) continue;
      const next = afterClaim(state, claim);
      if (next && this.#from(next, new Set(explained).add(i), Math.max(at, from))) return true;
    }
    for (const { from, to, may } of this.#requests) {
      const time = Math.max(at, from);
      const next = time <= Math.min(until, to) ? after(state, may) : null;
      if (next && this.#from(next, explained, time)) return true;
    }
    return following(state, this.#ends).some((next) => this.#from(next, explained, at));
  }
}

/** Returns the end that a claim names. */
function endOf(claim: Claim): End | null {
  if (claim.kind === 'told') return claim.end;
  return claim.kind === 'read' ? (claim.view?.end ?? null) : null;
}
