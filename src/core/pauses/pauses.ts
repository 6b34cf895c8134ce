/**
 * The API of pauses: checks who may set, see and end them, and applies them to all parts of the store and all nodes.
 */
import type { RecordedAct } from '../audit/audit.ts';
import { requireScope, type CallingPrincipal, type Requester, type UserPrincipal } from '../auth/principal.ts';
import { knownUser, readScope, seenActions, withoutLimit } from '../auth/sight.ts';
import { BoundedMap } from '../collections.ts';
import { listingOf, type PageArgs } from '../cursors.ts';
import type { PauseEvent } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { collectInputErrors, fail, invalid, notFound } from '../errors.ts';
import { canonicalUser, hasAtMost, id, type ClientKey, type CommandKey } from '../ids.ts';
import {
  CLIENT_PAUSES_PER_HOUR,
  CLIENT_RESUMES_AT_ONCE,
  CLIENT_RESUMES_PER_SECOND,
  MAX_REASON,
  PAUSES_PER_HOUR,
  PAUSE_MS,
  PAUSE_PATTERN_CHARS,
} from '../limits.ts';
import { createFeed, type Subscription } from '../live.ts';
import { type MaybePromise } from '../maybe-promise.ts';
import { comparePositions, sortable, type Page, type Position, type Scan } from '../page.ts';
import { RateTable, TokenBucket } from '../rates.ts';
import { inEachPart, type PartsAct, type ReachedParts } from '../store-parts.ts';
import { EVERYTHING, holds, type Pause, type PauseAuthor, type PauseCover, type PauseReach } from './pause.ts';

export type Pauses = ReturnType<typeof createPauses>;

/** The calls that a requester wants to pause: at least one member, or `all`. */
export type CoverRequest = { readonly [M in keyof PauseCover]?: PauseCover[M] | undefined } & {
  readonly all?: boolean | null | undefined;
};

export type PauseRequest = CoverRequest & {
  readonly reason: string;
  /** The end of the pause, in epoch milliseconds; null or absent: until someone resumes. */
  readonly until?: number | null | undefined;
  readonly queued?: Pause['queued'] | null | undefined;
  readonly running?: Pause['running'] | null | undefined;
};

/** The request of a client that pauses itself. */
type ClientPauseRequest = Pick<PauseRequest, 'reason' | 'queued' | 'running'>;

/** A silent node does not make a change partial, because the answer waits until that node can write nothing more. */
type PauseSpread = ReachedParts;

/**
 * The result of a pause. `cancelled`: the number of waiting commands that were cancelled. `asked`: the number of
 * running commands whose clients were asked to cancel them.
 */
export type PauseReceipt = PauseSpread & { readonly pause: Pause; readonly cancelled: number; readonly asked: number };
export type ResumeReceipt = PauseSpread & { readonly pause: Pause };

type PausesDeps = {
  readonly deps: Deps;
  /** Cancels a command. */
  readonly settle: (
    key: CommandKey,
    cancel: { readonly kind: 'cancel'; readonly reason: string; readonly by: string },
  ) => Promise<{ readonly kind: string }>;
  /**
   * Makes every node dispatch again what it has not written yet. Resolves when no node can write a command that was
   * dispatched before, with the nodes that did not answer.
   */
  readonly renewPermits: (cover: PauseCover) => MaybePromise<readonly string[]>;
};

/**
 * `ended`: the pauses that this node ended most recently. They are not stored again by attempts that are still under
 * way.
 */
type PauseContext = PausesDeps & { readonly ended: BoundedMap<string, true> };

const CLIENT_RATE = { perSecond: CLIENT_RESUMES_PER_SECOND, burst: CLIENT_RESUMES_AT_ONCE };
/** The most users for whom the rate of pauses by their clients is remembered. */
const REMEMBERED_USERS = 10_000;
/** How many commands are cancelled in one turn of the event loop. */
const CANCEL_BATCH = 256;
const HOUR_MS = 3600_000;

export function createPauses(given: PausesDeps) {
  const parts: PauseContext = { ...given, ended: new BoundedMap({ most: 1_000 }) };
  const { deps } = parts;
  const { pauses } = deps.backend;
  const rates = new RateTable(REMEMBERED_USERS, () => new TokenBucket(deps.clock, CLIENT_RATE));
  /** Counts a pause or resume by a client. `mayWait`: whether it is refused if there were too many. */
  const countChange = ({ userId }: UserPrincipal, mayWait: boolean): void => {
    const rate = rates.of(userId);
    const retryAfterMs = mayWait ? rate.take() : 0;
    if (!mayWait) rate.charge(1);
    if (retryAfterMs > 0) fail('rate_limited', 'The clients of this user resume too often.', { retryAfterMs });
  };
  return {
    /**
     * Pauses calls. After this resolves, nothing that the pause covers is admitted, or written to a client by any node.
     * A user can cover its own clients only. Throws `invalid_argument`, `not_found` for another user,
     * `capacity_exceeded` if there are too many pauses, and `not_supported` if the store has none. An administrator's
     * pause takes effect even if its audit row cannot be written; the pause itself says who set it.
     */
    async pause(requester: Requester, request: PauseRequest, requestId: string | null = null): Promise<PauseReceipt> {
      const caller = requirePauser(requester);
      const pause = checked(deps, caller, request);
      const recording = recordAct(deps, caller, { action: 'pause', pause, requestId });
      // A user's pause waits for its audit row, because the rows limit how often a user may pause. An administrator's
      // pause does not wait, because it may have to stop something quickly.
      const recorded = caller.kind === 'user' ? await recording : recording.catch(() => null);
      const receipt = await begin(parts, pause);
      await (await recorded)?.end(receipt.partial ? 'partial' : 'paused');
      return receipt;
    },
    /**
     * Pauses all calls of a client in the client's own name, because the person at the client wants to stop. A second
     * pause of the client replaces the first. Takes effect even if the audit row cannot be written. Throws
     * `rate_limited` if it would replace a pause and the user's clients have done this too often.
     */
    async pauseClient(requester: UserPrincipal, clientId: string, request: ClientPauseRequest): Promise<PauseReceipt> {
      const reason = checkReason(request.reason);
      const client: ClientKey = { userId: requester.userId, clientId };
      const known = await ofClient(parts, client);
      // A client without a pause can always pause, however often its user's clients have paused.
      countChange(requester, known.length > 0);
      const by: PauseAuthor = { kind: 'client', name: clientId };
      const pause: Pause = {
        ...EVERYTHING,
        ...client,
        pauseId: known[0]?.pauseId ?? deps.crypto.randomId(),
        reason,
        by,
        since: deps.clock.now(),
        until: null,
        queued: request.queued ?? 'keep',
        running: request.running ?? 'leave',
      };
      const audited = recordClientAct(deps, requester, 'pause', pause);
      const receipt = await begin(parts, pause);
      await (await audited)?.end(receipt.partial ? 'partial' : 'paused');
      return receipt;
    },
    /**
     * Ends the pause that `pauseClient` set, and returns the number of ended pauses, which may be 0. Throws
     * `rate_limited` if the user's clients have resumed too often.
     */
    async resumeClient(requester: UserPrincipal, clientId: string): Promise<number> {
      const known = await ofClient(parts, { userId: requester.userId, clientId });
      if (known.length > 0) countChange(requester, true);
      for (const pause of known) {
        const audited = recordClientAct(deps, requester, 'resume', pause);
        const spread = await end(parts, pause);
        await (await audited)?.end(spread.partial ? 'partial' : 'resumed');
      }
      return known.length;
    },
    /**
     * Ends a pause. Null if there is none, or if it belongs to another user. Throws `forbidden` if a user names a pause
     * that an administrator set.
     */
    async resume(
      requester: Requester,
      pauseId: string,
      requestId: string | null = null,
    ): Promise<ResumeReceipt | null> {
      const caller = requirePauser(requester);
      const pause = await find(parts, caller, id('pause_id', pauseId));
      if (!pause) return null;
      if (caller.kind === 'user' && pause.by.kind === 'admin')
        fail('forbidden', 'An administrator set this pause, and ends it.');
      const act = await recordAct(deps, caller, { action: 'resume', pause, requestId });
      const spread = await end(parts, pause);
      await act.end(spread.partial ? 'partial' : 'resumed');
      return { ...spread, pause };
    },
    /**
     * Lists pauses, newest first. An administrator sees all, and a user sees those that cover only clients of this
     * user.
     */
    async list(requester: Requester, query: { readonly userId?: string | null | undefined }, args: PageArgs) {
      const userId = readScope(requester, query.userId);
      const listing = listingOf('pauses', requester, { userId });
      const request = deps.cursors.request(listing, args);
      const { rows, gaps = [] } = await pauses.list(userId);
      const scan = pageOf(rows, request, gaps);
      const page: Page<Pause> = deps.cursors.page(listing, scan, ['delivery', deps.clock.now()], (row) => row);
      return page;
    },
    /** Returns one pause. Null if there is none, or if the requester may not see it. */
    async get(requester: Requester, pauseId: string): Promise<Pause | null> {
      return find(parts, requirePauser(requester), id('pause_id', pauseId));
    },
    /**
     * Subscribes to the beginning and end of pauses. An administrator gets those of all users or of one user. A user
     * gets those that cover only its own clients.
     */
    events(requester: Requester, userId: string | null): Subscription<PauseEvent> {
      const of = readScope(requester, userId);
      const feed = createFeed<PauseEvent>(() => cancel());
      // In shared mode each owner publishes the end of a pause of all users, so repeated events are dropped.
      const over = new BoundedMap<string, true>({ most: 100 });
      let lost = 0;
      const cancel = deps.backend.bus.subscribe(
        'pauses',
        (event) => {
          const { pauseId, userId: paused } = event.pause;
          if ((of !== null && paused !== of) || (event.change === 'lapsed' && over.get(pauseId))) return;
          if (event.change === 'lapsed') over.set(pauseId, true);
          feed.push(event, lost);
          lost = 0;
        },
        () => (lost = 1),
      );
      return feed.subscription;
    },
    /** Counts what a pause would affect now. Changes nothing. */
    async reach(requester: Requester, request: CoverRequest): Promise<PauseReach> {
      const cover = coverOfRequest(requirePauser(requester), request);
      const found = await Promise.all(pauses.parts(cover.userId).map((part) => pauses.reach(part, cover)));
      const sum = (of: (reach: PauseReach) => number): number => found.reduce((total, reach) => total + of(reach), 0);
      return {
        clients: sum((one) => one.clients),
        queued: sum((one) => one.queued),
        running: sum((one) => one.running),
      };
    },
  };
}

/** Returns the requester if it may pause: a token with the scope `invoke` that is not limited to some actions. */
function requirePauser(requester: Requester): CallingPrincipal {
  const caller = requireScope(requester, 'invoke');
  withoutLimit(seenActions(caller));
  return caller;
}

// Checks requests.

function checkReason(reason: string): string {
  const isText = reason.trim() !== '' && hasAtMost(reason, MAX_REASON);
  return isText ? reason : invalid('reason', `expected 1 to ${MAX_REASON} characters`);
}

function checked({ clock, crypto }: Deps, caller: CallingPrincipal, request: PauseRequest): Pause {
  const now = clock.now();
  const errors = collectInputErrors();
  const cover = errors.check(() => coverOfRequest(caller, request)) ?? EVERYTHING;
  const reason = errors.check(() => checkReason(request.reason)) ?? '';
  const until = errors.check(() => checkUntil(request.until ?? null, now)) ?? null;
  errors.throwIfAny();
  const by: PauseAuthor =
    caller.kind === 'admin' ? { kind: 'admin', name: caller.name } : { kind: 'user', name: caller.userId };
  const { queued, running } = request;
  const rest = { queued: queued ?? 'keep', running: running ?? 'leave' } as const;
  return { ...cover, pauseId: crypto.randomId(), reason, by, since: now, until, ...rest };
}

function checkUntil(until: number | null, now: number): number | null {
  if (until === null || (until > now && until <= now + PAUSE_MS)) return until;
  return invalid('until', 'expected a time to come, within 400 days');
}

/**
 * Returns the cover for a request. Throws `not_found` if a user names another user, so that it does not learn whether
 * that user exists.
 */
function coverOfRequest(caller: CallingPrincipal, request: CoverRequest): PauseCover {
  const { userId = null, clientId = null, callerKind = null, all = null } = request;
  const given = [userId, clientId, callerKind, request.caller, request.action, request.label];
  const isNamed = given.some((member) => member != null);
  if (isNamed === (all === true)) invalid('all', 'expected either true, or at least one other member of what to pause');
  const user = userId === null ? null : canonicalUser(userId);
  if (caller.kind === 'user' && user !== null && user !== caller.userId) notFound();
  const owner = caller.kind === 'user' ? caller.userId : user;
  if (clientId !== null && owner === null) invalid('client_id', 'expected together with user_id');
  return {
    userId: owner,
    clientId: clientId === null ? null : id('client_id', clientId),
    callerKind,
    caller: pattern('caller', request.caller),
    action: pattern('action', request.action),
    label: pattern('label', request.label),
  };
}

function pattern(name: string, text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null;
  const isPattern = text !== '' && hasAtMost(text, PAUSE_PATTERN_CHARS) && !/\p{Cc}/u.test(text);
  return isPattern ? text : invalid(name, `expected 1 to ${PAUSE_PATTERN_CHARS} characters without control characters`);
}

async function find({ deps }: PausesDeps, caller: CallingPrincipal, pauseId: string): Promise<Pause | null> {
  const userId = caller.kind === 'admin' ? null : knownUser(caller, caller.userId);
  const { rows } = await deps.backend.pauses.list(userId);
  return rows.find((pause) => pause.pauseId === pauseId) ?? null;
}

async function ofClient({ deps }: PausesDeps, { userId, clientId }: ClientKey): Promise<readonly Pause[]> {
  const { rows } = await deps.backend.pauses.list(userId);
  return rows.filter(({ by, ...pause }) => by.kind === 'client' && pause.clientId === clientId);
}

function positionOf({ since, pauseId }: Pause): Position {
  return [sortable(since), pauseId];
}

function pageOf(
  rows: readonly Pause[],
  { first, after }: { readonly first: number; readonly after: Position | null },
  gaps: Scan<Pause>['gaps'],
): Scan<Pause> {
  const rest = rows
    .map((row) => ({ row, position: positionOf(row) }))
    .filter(({ position }) => after === null || comparePositions(position, after) < 0)
    .sort((a, b) => comparePositions(b.position, a.position));
  const page = rest.slice(0, first);
  return { rows: page, next: rest.length > page.length ? (page.at(-1)?.position ?? null) : null, gaps };
}

// Stores and ends pauses, and writes their audit rows.

type Act = {
  readonly action: 'pause' | 'resume';
  readonly pause: Pause;
  readonly requestId: string | null;
  /** The most audit rows for one user within an hour. */
  readonly perHour?: number;
};

function recordAct(
  { audit }: Deps,
  caller: CallingPrincipal,
  { action, pause, requestId, perHour = PAUSES_PER_HOUR }: Act,
): Promise<RecordedAct> {
  const { pauseId, userId, clientId, reason } = pause;
  const subject = { pauseId, ...(userId !== null && { userId }), ...(clientId !== null && { clientId }) };
  const rate = caller.kind === 'user' ? { rate: { limit: perHour, windowMs: HOUR_MS } } : {};
  return audit.record(caller, { action, subject, reason: action === 'pause' ? reason : null, requestId, ...rate });
}

/**
 * Writes the audit row of a client's pause or resume. Null if there is no row, because the client paused too often or
 * the audit could not write it.
 */
function recordClientAct(
  deps: Deps,
  requester: UserPrincipal,
  action: Act['action'],
  pause: Pause,
): Promise<RecordedAct | null> {
  const act = { action, pause, requestId: null, perHour: CLIENT_PAUSES_PER_HOUR };
  return recordAct(deps, requester, act).catch(() => null);
}

async function begin(parts: PauseContext, pause: Pause): Promise<PauseReceipt> {
  const { deps, renewPermits, ended } = parts;
  const { pauses } = deps.backend;
  const isOver = (): boolean => !holds(pause, deps.clock.now()) || ended.get(pause.pauseId) !== undefined;
  const within = { isOver, missing: new Set<number>() };
  let isFull = false;
  const spread = await everywhere(parts, pause, within, async (part) => {
    if ((await pauses.keep(part, pause)) === 'full') isFull = true;
  });
  if (isFull) {
    await lift(parts, pause);
    fail('capacity_exceeded', 'There are too many pauses: resume some of them.');
  }
  const silent = await renewPermits(pause);
  const cancel = { parts, pause, within };
  const cancelled = pause.queued === 'cancel' ? await cancelCovered(cancel, 'queued') : 0;
  const asked = pause.running === 'cancel' ? await cancelCovered(cancel, 'running') : 0;
  deps.backend.bus.publish('pauses', { change: 'paused', pause, at: deps.clock.now() });
  return { pause, cancelled, asked, ...spread, silent: [...new Set([...spread.silent, ...silent])] };
}

async function end(parts: PauseContext, pause: Pause): Promise<PauseSpread> {
  const { bus } = parts.deps.backend;
  const spread = await lift(parts, pause);
  bus.publish('pauses', { change: 'resumed', pause, at: parts.deps.clock.now() });
  return spread;
}

/** Takes a pause back everywhere. From now on it is not kept in a part that has not answered yet. */
function lift(parts: PauseContext, pause: Pause): Promise<PauseSpread> {
  parts.ended.set(pause.pauseId, true);
  const { pauses } = parts.deps.backend;
  const isOver = (): boolean => false;
  return everywhere(parts, pause, { isOver }, async (part) => void (await pauses.lift(part, pause.pauseId)));
}

/** Runs an act in all parts of the store that a pause concerns. */
function everywhere({ deps }: PausesDeps, { userId }: Pause, within: Within, act: PartsAct['act']) {
  return inEachPart(deps, { userId, ...within, act, failure: 'a pause did not reach a part of the store' });
}

type Within = Pick<PartsAct, 'isOver' | 'missing'>;
type CancelCovered = { readonly parts: PausesDeps; readonly pause: Pause; readonly within: Within };

/** Returns how many commands it cancelled by the time at which each part of the store has answered or is late. */
async function cancelCovered({ parts, pause, within }: CancelCovered, which: 'queued' | 'running'): Promise<number> {
  const { deps, settle } = parts;
  const { pauses } = deps.backend;
  const cancel = { kind: 'cancel', reason: pause.reason, by: `a pause of ${pause.by.kind} ${pause.by.name}` } as const;
  let total = 0;
  await everywhere(parts, pause, within, async (part) => {
    for (;;) {
      const keys = await pauses.covered(part, pause, which, CANCEL_BATCH);
      const results = await Promise.all(keys.map((key) => settle(key, cancel)));
      const settled = results.filter(({ kind }) => kind === 'settled' || kind === 'requested').length;
      total += settled;
      if (keys.length < CANCEL_BATCH || settled === 0) return;
      await new Promise<void>((next) => deps.loop.afterOthers(next));
    }
  });
  return total;
}
