/** A pause: which calls it stops, who set it and until when; the set that finds the pause of a call; and its port. */
import type { CallerLabel } from '../auth/caller-label.ts';
import { compileGlob } from '../auth/patterns.ts';
import type { WithGaps } from '../completeness.ts';
import { BoundedMap } from '../collections.ts';
import { fail } from '../errors.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { ENDED_PAUSES } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** The kinds of callers that a pause may name: those of commands, and those of their programs. */
const PAUSED_KINDS = ['admin', 'user', 'grant', 'mcp'] as const;
type PausedKind = (typeof PAUSED_KINDS)[number];

/**
 * Which calls a pause covers: those that match every member that is not null. Without any it covers every call.
 * `userId` and `clientId` name the client that is called. `caller`, `action` and `label` are patterns with `*`: of the
 * name of the caller, of the action, and of the program that calls.
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

/** Who set a pause: an administrator, the user whose clients it covers, or the client itself. */
export type PauseAuthor = { readonly kind: 'admin' | 'user' | 'client'; readonly name: string };

/** A pause. Immutable. Times are epoch milliseconds. */
export type Pause = PauseCover & {
  readonly pauseId: string;
  readonly reason: string;
  readonly by: PauseAuthor;
  readonly since: number;
  /** When it ends by itself; null: it stays until somebody resumes. */
  readonly until: number | null;
  /** What happens to commands that were not dispatched: they wait, and may expire, or they are cancelled. */
  readonly queued: 'keep' | 'cancel';
  /** What happens to commands that run: nothing, or their clients are asked to cancel them. */
  readonly running: 'leave' | 'cancel';
};

/** What a pause compares of a call. */
export type PausedCall = ClientKey & {
  readonly action: string;
  readonly caller: {
    readonly kind: 'admin' | 'user' | 'grant';
    readonly name: string;
    readonly label?: CallerLabel | undefined;
  };
};

type Matches = (call: PausedCall) => boolean;

/** Compiles what a pause covers. */
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

/** Whether a pause still holds at this time. */
export function holds({ until }: Pick<Pause, 'until'>, now: number): boolean {
  return until === null || now < until;
}

/** Returns the message for a caller whom a pause refuses: who set it, why and until when. */
export function pauseMessage(pause: Pause | undefined): string {
  if (!pause) return 'The call is paused.';
  const { by, reason, until } = pause;
  const end = until === null ? 'until somebody resumes' : `until ${new Date(until).toISOString()}`;
  return `Paused by ${by.kind} "${by.name}" ${end}: ${reason}${/[.!?]$/.test(reason) ? '' : '.'}`;
}

type Compiled = { readonly pause: Pause; readonly covers: Matches };

/**
 * The pauses of a store. Those of one user are found by the user, so the pauses of many users cost a call no more than
 * those of its own user and of all users.
 */
export class PauseSet {
  /** The ids of pauses that have ended: a relay may go on to keep one that another relay has ended. */
  readonly #ended = new BoundedMap<string, true>({ most: ENDED_PAUSES });
  readonly #all = new Map<string, Compiled>();
  readonly #byUser = new Map<string | null, Compiled[]>();

  get size(): number {
    return this.#all.size;
  }

  get(pauseId: string): Pause | null {
    return this.#all.get(pauseId)?.pause ?? null;
  }

  /** Adds a pause; one with the same id is replaced. */
  put(pause: Pause): void {
    this.#remove(pause.pauseId);
    const compiled = { pause, covers: coverOf(pause) };
    this.#all.set(pause.pauseId, compiled);
    const same = this.#byUser.get(pause.userId);
    if (same) same.push(compiled);
    else this.#byUser.set(pause.userId, [compiled]);
  }

  /** Whether the pause has ended, as far as this is remembered. */
  hasEnded(pauseId: string): boolean {
    return this.#ended.get(pauseId) !== undefined;
  }

  /** The ids of the pauses that ended last, the oldest first. */
  ended(): Iterable<string> {
    return this.#ended.keys();
  }

  /** Ends a pause, and remembers that it has ended, even if it was never added. */
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

  /** Returns a pause that covers the call at this time; null if none does. */
  of(call: PausedCall, now: number): Pause | null {
    if (this.#all.size === 0) return null;
    return this.#first(null, call, now) ?? this.#first(call.userId, call, now);
  }

  #first(userId: string | null, call: PausedCall, now: number): Pause | null {
    const found = this.#byUser.get(userId)?.find(({ pause, covers }) => holds(pause, now) && covers(call));
    return found?.pause ?? null;
  }

  /** Returns all pauses, in the order in which they were added. */
  values(): readonly Pause[] {
    return [...this.#all.values()].map(({ pause }) => pause);
  }

  /** Returns the pauses of one user, without those of all users; null: those of all users. */
  ofUser(userId: string | null): readonly Pause[] {
    return (this.#byUser.get(userId) ?? []).map(({ pause }) => pause);
  }
}

/** What a pause would touch now: connected clients, and commands that have not ended. */
export type PauseReach = {
  readonly clients: number;
  /** Commands that were not dispatched. */
  readonly queued: number;
  /** Commands that were dispatched and have not ended. */
  readonly running: number;
};

/** The pauses of the store. `gaps`: parts of the store that did not answer. */
export type ListedPauses = WithGaps & { readonly rows: readonly Pause[] };

/**
 * Stores pauses, and asks them in each admission and each dispatch of its commands: from the answer of `keep` on it
 * admits and dispatches nothing that the pause covers, until `lift` or the pause's end. A store may consist of parts
 * that decide apart from each other. A pause is kept in each part that has commands of the clients that it covers. All
 * methods are idempotent. A store without pauses throws `not_supported` where it should keep one, and has none.
 */
export interface PauseStore {
  /**
   * For how many milliseconds after it was asked for a dispatch may be written; later it is asked for again. Infinity:
   * the store is in this process, which learns of each pause before its answer.
   */
  readonly permitMs: number;
  /**
   * How many milliseconds after `keep` a node that cannot be asked writes nothing more that was dispatched before. 0: no
   * other node writes what this store dispatches.
   */
  readonly quietMs: number;
  /** Returns the parts of the store in which a pause of this user's clients, or of all users (null), must be kept. */
  parts(userId: string | null): readonly number[];
  /** Names the process that decides in a part; null if it is this one, or if none does now. */
  deciderOf(part: number): string | null;
  /**
   * Keeps a pause in one part, until its end or `lift`. `full`: there is no room for it; nothing was kept. `over`: it has
   * been lifted before; nothing was kept. It is durable when this answers, as far as the store is. Needs no room of the
   * disk.
   */
  keep(part: number, pause: Pause): MaybePromise<'kept' | 'full' | 'over'>;
  /**
   * Ends a pause in one part, and offers the commands that waited for its end to their links. Null: the part has no such
   * pause. The part remembers the last ENDED_PAUSES ids, so that a relay which still tries to keep one cannot.
   */
  lift(part: number, pauseId: string): MaybePromise<Pause | null>;
  /**
   * Ends the pauses whose time is over, in the parts in which this process decides, as `lift` does. Returns them. Called
   * about once a second: a command that waited is offered that much later.
   */
  lapse(): MaybePromise<readonly Pause[]>;
  /** Returns the pauses of one user's clients, or all (null), each once, in no particular order. */
  list(userId: string | null): MaybePromise<ListedPauses>;
  /** Counts what a cover has in one part. */
  reach(part: number, cover: PauseCover): MaybePromise<PauseReach>;
  /**
   * Returns at most `most` commands in one part that a cover has: those that were not dispatched, or those that were,
   * have not ended, and were not asked to cancel.
   */
  covered(
    part: number,
    cover: PauseCover,
    which: 'queued' | 'running',
    most: number,
  ): MaybePromise<readonly CommandKey[]>;
}

/** The port of a store that has no pauses. */
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
