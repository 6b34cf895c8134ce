/** Pauses, which stop calls: the types, the set that finds the pause of a call, and the storage port. */
import type { CallerLabel } from '../auth/caller-label.ts';
import { compileGlob } from '../auth/patterns.ts';
import type { WithGaps } from '../completeness.ts';
import { BoundedMap } from '../collections.ts';
import { fail } from '../errors.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { ENDED_PAUSES } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** The kinds of callers that a pause may name: those of commands, and those of the programs that make calls. */
const PAUSED_KINDS = ['admin', 'user', 'grant', 'mcp'] as const;
type PausedKind = (typeof PAUSED_KINDS)[number];

/**
 * The calls that a pause covers: those that match every member that is not null. If all are null, it covers every call.
 * `userId`, `clientId`: the client that is called. `caller`, `action`, `label`: patterns with `*` for the names of the
 * caller, of the action, and of the program that makes the call.
 */
export type PauseCover = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly callerKind: PausedKind | null;
  readonly caller: string | null;
  readonly action: string | null;
  readonly label: string | null;
};

/** Covers every call. */
export const EVERYTHING: PauseCover = {
  ...{ userId: null, clientId: null, callerKind: null, caller: null, action: null, label: null },
};

/** Who set the pause: an administrator, the user whose clients it covers, or the client itself. */
export type PauseAuthor = { readonly kind: 'admin' | 'user' | 'client'; readonly name: string };

/** A pause: a row that stops the calls that it covers. Immutable. Times are epoch milliseconds. */
export type Pause = PauseCover & {
  readonly pauseId: string;
  readonly reason: string;
  readonly by: PauseAuthor;
  readonly since: number;
  /** When the pause ends by itself; null: never, so that someone must resume. */
  readonly until: number | null;
  /**
   * What happens to commands that were not dispatched. `keep`: they wait, and may expire. `cancel`: they are cancelled.
   */
  readonly queued: 'keep' | 'cancel';
  /** What happens to running commands. `leave`: nothing. `cancel`: their clients are asked to cancel them. */
  readonly running: 'leave' | 'cancel';
};

/** The members of a call by which it is decided whether a pause covers the call. */
export type PausedCall = ClientKey & {
  readonly action: string;
  readonly caller: {
    readonly kind: 'admin' | 'user' | 'grant';
    readonly name: string;
    readonly label?: CallerLabel | undefined;
  };
};

type Matches = (call: PausedCall) => boolean;

/** Compiles a cover to a function that says whether a call matches it. */
export function coverOf(cover: PauseCover): Matches {
  const { userId, clientId, callerKind } = cover;
  const [caller, action, label] = [cover.caller, cover.action, cover.label].map((one) =>
    one === null ? null : compileGlob(one),
  );
  return (call) =>
    (userId === null || call.userId === userId) &&
    (clientId === null || call.clientId === clientId) &&
    (callerKind === null || call.caller.kind === callerKind || call.caller.label?.kind === callerKind) &&
    (!action || action(call.action)) &&
    (!caller || caller(call.caller.name)) &&
    (!label || (call.caller.label !== undefined && label(call.caller.label.name)));
}

/** Whether a pause has not ended by itself at time `now`. */
export function holds({ until }: Pick<Pause, 'until'>, now: number): boolean {
  return until === null || now < until;
}

/** Returns the message for a caller whose call is stopped: who set the pause, why, and until when. */
export function pauseMessage(pause: Pause | undefined): string {
  if (!pause) return 'The call is paused.';
  const { by, reason, until } = pause;
  const end = until === null ? 'until somebody resumes' : `until ${new Date(until).toISOString()}`;
  return `Paused by ${by.kind} "${by.name}" ${end}: ${reason}${/[.!?]$/.test(reason) ? '' : '.'}`;
}

type Compiled = { readonly pause: Pause; readonly covers: Matches };

/**
 * The pauses of a store. They are grouped by user. Finding the pause of a call takes time only for the pauses of the
 * call's user and those of all users.
 */
export class PauseSet {
  /** The ids of pauses that have ended. With them the store refuses a pause that another relay tries to set again. */
  readonly #ended = new BoundedMap<string, true>({ most: ENDED_PAUSES });
  readonly #all = new Map<string, Compiled>();
  readonly #byUser = new Map<string | null, Compiled[]>();

  get size(): number {
    return this.#all.size;
  }

  get(pauseId: string): Pause | null {
    return this.#all.get(pauseId)?.pause ?? null;
  }

  /** Adds a pause, or replaces the pause with the same id. */
  put(pause: Pause): void {
    this.#remove(pause.pauseId);
    const compiled = { pause, covers: coverOf(pause) };
    this.#all.set(pause.pauseId, compiled);
    const same = this.#byUser.get(pause.userId);
    if (same) same.push(compiled);
    else this.#byUser.set(pause.userId, [compiled]);
  }

  /** Whether the pause has ended, as far as this set remembers. */
  hasEnded(pauseId: string): boolean {
    return this.#ended.get(pauseId) !== undefined;
  }

  /** Returns the ids of the pauses that ended most recently, oldest first. */
  ended(): Iterable<string> {
    return this.#ended.keys();
  }

  /**
   * Ends a pause and remembers its end, even if the pause was never added. Returns the pause; null if it was not in the
   * set.
   */
  end(pauseId: string): Pause | null {
    this.#ended.set(pauseId, true);
    return this.#remove(pauseId);
  }

  #remove(pauseId: string): Pause | null {
    const compiled = this.#all.get(pauseId);
    if (!compiled) return null;
    this.#all.delete(pauseId);
    const { userId } = compiled.pause;
    const others = (this.#byUser.get(userId) ?? []).filter((one) => one !== compiled);
    if (others.length > 0) this.#byUser.set(userId, others);
    else this.#byUser.delete(userId);
    return compiled.pause;
  }

  /** Returns a pause that covers the call at time `now`; null if there is none. */
  of(call: PausedCall, now: number): Pause | null {
    if (this.#all.size === 0) return null;
    return this.#first(null, call, now) ?? this.#first(call.userId, call, now);
  }

  #first(userId: string | null, call: PausedCall, now: number): Pause | null {
    const found = this.#byUser.get(userId)?.find(({ pause, covers }) => holds(pause, now) && covers(call));
    return found?.pause ?? null;
  }

  /** Returns all pauses in the order in which they were added. */
  values(): readonly Pause[] {
    return [...this.#all.values()].map(({ pause }) => pause);
  }

  /** Returns the pauses that name this user; null: those that name no user. */
  ofUser(userId: string | null): readonly Pause[] {
    return (this.#byUser.get(userId) ?? []).map(({ pause }) => pause);
  }
}

/** What a pause would affect now: the number of connected clients, and of live commands. */
export type PauseReach = {
  readonly clients: number;
  /** The number of commands that were not dispatched. */
  readonly queued: number;
  /** The number of commands that were dispatched and have not ended. */
  readonly running: number;
};

/** The pauses of the store. `gaps`: the parts of the store that did not answer. */
export type ListedPauses = WithGaps & { readonly rows: readonly Pause[] };

/**
 * Stores pauses, and applies them to every admission and every dispatch: after `keep` has returned, the store admits
 * and dispatches nothing that the pause covers, until `lift` or the end of the pause. A store may consist of parts that
 * decide independently. A pause is stored in each part that has commands of the clients that it covers. All methods are
 * idempotent. A store without pauses lists none, and throws `not_supported` if it should set one.
 */
export interface PauseStore {
  /**
   * How long a dispatch permits the write of its command, in milliseconds from the request for the dispatch. After
   * that, the node must ask again. Infinity if the store is in this process: this process learns of a pause before
   * `keep` returns.
   */
  readonly permitMs: number;
  /**
   * How many milliseconds after `keep` it is certain that a node which cannot be asked writes nothing that was
   * dispatched before. 0 if no other node writes what this store dispatches.
   */
  readonly quietMs: number;
  /**
   * Returns the parts of the store in which a pause of this user's clients must be stored; null: a pause of all users.
   */
  parts(userId: string | null): readonly number[];
  /** Returns the node that decides in a part; null if it is this one, or if none does now. */
  deciderOf(part: number): string | null;
  /**
   * Stores a pause in one part, until its end or `lift`. `full`: there is no room, and nothing was stored. `over`: the
   * pause was lifted before, and nothing was stored. When this returns, the pause is as durable as the store. Works
   * even if the disk is full.
   */
  keep(part: number, pause: Pause): MaybePromise<'kept' | 'full' | 'over'>;
  /**
   * Ends a pause in one part, and offers the waiting commands to their links. Null if the part has no such pause. The
   * part remembers the last ENDED_PAUSES ids, so that a relay that is still trying to store the pause cannot.
   */
  lift(part: number, pauseId: string): MaybePromise<Pause | null>;
  /**
   * Ends the pauses whose time is over, as `lift` does, in the parts in which this process decides. Returns them.
   * Called about once a second, so waiting commands are offered up to a second late.
   */
  lapse(): MaybePromise<readonly Pause[]>;
  /** Returns the pauses of one user's clients, or all pauses (null), each once, in no particular order. */
  list(userId: string | null): MaybePromise<ListedPauses>;
  /** Counts the clients and commands that a cover matches in one part. */
  reach(part: number, cover: PauseCover): MaybePromise<PauseReach>;
  /**
   * Returns at most `most` commands in one part that a cover matches. `queued`: commands that were not dispatched.
   * `running`: commands that were dispatched, have not ended, and for which no cancel was requested.
   */
  covered(
    part: number,
    cover: PauseCover,
    which: 'queued' | 'running',
    most: number,
  ): MaybePromise<readonly CommandKey[]>;
}

/** The storage port of a store without pauses. */
export const NO_PAUSES: PauseStore = {
  ...{ permitMs: Infinity, quietMs: 0 },
  parts: () => [0],
  deciderOf: () => null,
  keep: () =>
    fail('not_supported', 'The store of this deployment has no pauses. A relay alone, and owners, have them.'),
  lift: () => null,
  lapse: () => [],
  list: () => ({ rows: [] }),
  reach: () => ({ clients: 0, queued: 0, running: 0 }),
  covered: () => [],
};
