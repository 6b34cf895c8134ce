/** The API of pauses: who may set, see and end which, and how a pause reaches each part of the store and each node. */
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

/** Which calls a requester wants to pause: at least one member, or `all`. */
export type CoverRequest = { readonly [M in keyof PauseCover]?: PauseCover[M] | undefined } & {
  readonly all?: boolean | null | undefined;
};

export type PauseRequest = CoverRequest & {
  readonly reason: string;
  /** Epoch milliseconds; null: until somebody resumes. */
  readonly until?: number | null | undefined;
  readonly queued?: Pause['queued'] | null | undefined;
  readonly running?: Pause['running'] | null | undefined;
};

/** What a client says when it pauses itself. */
type ClientPauseRequest = Pick<PauseRequest, 'reason' | 'queued' | 'running'>;

/** A silent node makes nothing partial: the answer waited until the node could write nothing more. */
type PauseSpread = ReachedParts;

/** `cancelled`: commands that waited and were cancelled. `asked`: running ones whose clients were asked to cancel. */
export type PauseReceipt = PauseSpread & { readonly pause: Pause; readonly cancelled: number; readonly asked: number };
export type ResumeReceipt = PauseSpread & { readonly pause: Pause };

type PausesParts = {
  readonly deps: Deps;
  /** Cancels a command. */
  readonly settle: (
    key: CommandKey,
    cancel: { readonly kind: 'cancel'; readonly reason: string; readonly by: string },
  ) => Promise<{ readonly kind: string }>;
  /**
   * Makes every node ask again for what it has not written. Resolves, with the nodes that did not answer, once no node
   * can write what was dispatched before.
   */
  readonly renewPermits: (cover: PauseCover) => MaybePromise<readonly string[]>;
};

/** `ended`: the pauses that this node has ended last: nobody goes on to keep them. */
type Parts = PausesParts & { readonly ended: BoundedMap<string, true> };

const CLIENT_RATE = { perSecond: CLIENT_RESUMES_PER_SECOND, burst: CLIENT_RESUMES_AT_ONCE };
/** How many users' rates of pauses of their clients are remembered. */
const REMEMBERED_USERS = 10_000;
/** How many commands are cancelled in one turn of the event loop. */
const CANCEL_BATCH = 256;
const HOUR_MS = 3600_000;

export function createPauses(given: PausesParts) {
  const parts: Parts = { ...given, ended: new BoundedMap({ most: 1_000 }) };
  const { deps } = parts;
  const { pauses } = deps.backend;
  const rates = new RateTable(REMEMBERED_USERS, () => new TokenBucket(deps.clock, CLIENT_RATE));
  /** Counts a pause or resume of a client. `mayWait`: it is refused if there were too many. */
  const countChange = ({ userId }: UserPrincipal, mayWait: boolean): void => {
    const rate = rates.of(userId);
    const retryAfterMs = mayWait ? rate.take() : 0;
    if (!mayWait) rate.charge(1);
    if (retryAfterMs > 0) fail('rate_limited', 'The clients of this user resume too often.', { retryAfterMs });
  };
  return {
    /**
     * Pauses calls: from the answer on, nothing that the pause covers is admitted, or written to a client by any node.
     * A user covers its own clients alone. Throws `invalid_argument`, `not_found` for another user, `capacity_exceeded`
     * if there are too many pauses, and `not_supported` if the store has none. A pause of an administrator takes effect
     * although the audit cannot be written; its row says who set it.
     */
    async pause(requester: Requester, request: PauseRequest, requestId: string | null = null): Promise<PauseReceipt> {
      const caller = requirePauser(requester);
      const pause = checked(deps, caller, request);
      const recording = recordAct(deps, caller, { action: 'pause', pause, requestId });
      // A user waits for the row, which bounds how often it may do so; nobody waits for it to stop something.
      const recorded = caller.kind === 'user' ? await recording : recording.catch(() => null);
      const receipt = await begin(parts, pause);
      await (await recorded)?.end(receipt.partial ? 'partial' : 'paused');
      return receipt;
    },
    /**
     * Pauses a client, in its own name: the person at it says stop. A second pause of the client replaces the first one.
     * It takes effect although the audit cannot be written. Throws `rate_limited` if it would replace one, and the clients
     * of the user did so too often.
     */
    async pauseClient(requester: UserPrincipal, clientId: string, request: ClientPauseRequest): Promise<PauseReceipt> {
      const reason = checkReason(request.reason);
      const client: ClientKey = { userId: requester.userId, clientId };
      const known = await ofClient(parts, client);
      // Nothing may keep a client that runs from being stopped.
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
     * Ends what `pauseClient` began. Returns how many pauses ended: none if there was none. Throws `rate_limited` if the
     * clients of the user resumed too often.
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
     * Ends a pause. Null: there is none, or it is not the requester's. Throws `forbidden` if a user names a pause that an
     * administrator set.
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
    /** Lists pauses, newest first: an administrator sees all, a user those that cover clients of this user alone. */
    async list(requester: Requester, query: { readonly userId?: string | null | undefined }, args: PageArgs) {
      const userId = readScope(requester, query.userId);
      const listing = listingOf('pauses', requester, { userId });
      const request = deps.cursors.request(listing, args);
      const { rows, gaps = [] } = await pauses.list(userId);
      const scan = pageOf(rows, request, gaps);
      const page: Page<Pause> = deps.cursors.page(listing, scan, ['delivery', deps.clock.now()], (row) => row);
      return page;
    },
    /** Returns one pause. Null: there is none, or the requester does not see it. */
    async get(requester: Requester, pauseId: string): Promise<Pause | null> {
      return find(parts, requirePauser(requester), id('pause_id', pauseId));
    },
    /**
     * Subscribes to pauses that begin and end from now on: an administrator to all, or those of one user; a user to those
     * that cover its own clients alone.
     */
    events(requester: Requester, userId: string | null): Subscription<PauseEvent> {
      const of = readScope(requester, userId);
      const feed = createFeed<PauseEvent>(() => cancel());
      // Each owner says that a pause of all users has ended.
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
    /** Counts what a pause would touch now. Changes nothing. */
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

/** A person, or a program of theirs, that may pause: no token that is limited to some actions. */
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

/** Throws `not_found` if a user names another user, whose existence it must not learn. */
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

async function find({ deps }: PausesParts, caller: CallingPrincipal, pauseId: string): Promise<Pause | null> {
  const userId = caller.kind === 'admin' ? null : knownUser(caller, caller.userId);
  const { rows } = await deps.backend.pauses.list(userId);
  return rows.find((pause) => pause.pauseId === pauseId) ?? null;
}

async function ofClient({ deps }: PausesParts, { userId, clientId }: ClientKey): Promise<readonly Pause[]> {
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

// Carries out what was requested.

type Act = {
  readonly action: 'pause' | 'resume';
  readonly pause: Pause;
  readonly requestId: string | null;
  /** How many rows of a user an hour may have. */
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

/** Does the same for a client. Null: there is no row, because the client paused very often, or the audit has no room. */
function recordClientAct(
  deps: Deps,
  requester: UserPrincipal,
  action: Act['action'],
  pause: Pause,
): Promise<RecordedAct | null> {
  const act = { action, pause, requestId: null, perHour: CLIENT_PAUSES_PER_HOUR };
  return recordAct(deps, requester, act).catch(() => null);
}

async function begin(parts: Parts, pause: Pause): Promise<PauseReceipt> {
  const { deps, renewPermits, ended } = parts;
  const { pauses } = deps.backend;
  const isOver = (): boolean => !holds(pause, deps.clock.now()) || ended.get(pause.pauseId) !== undefined;
  let isFull = false;
  const spread = await everywhere(parts, pause, isOver, async (part) => {
    if ((await pauses.keep(part, pause)) === 'full') isFull = true;
  });
  if (isFull) {
    await everywhere(parts, pause, isOver, async (part) => void (await pauses.lift(part, pause.pauseId)));
    fail('capacity_exceeded', 'There are too many pauses: resume some of them.');
  }
  const silent = await renewPermits(pause);
  const cancel = { parts, pause, isOver };
  const cancelled = pause.queued === 'cancel' ? await cancelCovered(cancel, 'queued') : 0;
  const asked = pause.running === 'cancel' ? await cancelCovered(cancel, 'running') : 0;
  deps.backend.bus.publish('pauses', { change: 'paused', pause, at: deps.clock.now() });
  return { pause, cancelled, asked, ...spread, silent: [...new Set([...spread.silent, ...silent])] };
}

async function end(parts: Parts, pause: Pause): Promise<PauseSpread> {
  parts.ended.set(pause.pauseId, true);
  const { pauses, bus } = parts.deps.backend;
  const spread = await everywhere(
    parts,
    pause,
    () => false,
    async (part) => void (await pauses.lift(part, pause.pauseId)),
  );
  bus.publish('pauses', { change: 'resumed', pause, at: parts.deps.clock.now() });
  return spread;
}

/** Runs an act in all parts of the store that a pause concerns. */
function everywhere({ deps }: PausesParts, { userId }: Pause, isOver: () => boolean, act: PartsAct['act']) {
  return inEachPart(deps, { userId, isOver, act, failure: 'a pause did not reach a part of the store' });
}

type CancelCovered = { readonly parts: PausesParts; readonly pause: Pause; readonly isOver: () => boolean };

/** Returns how many commands it cancelled by the time at which each part of the store has answered or is late. */
async function cancelCovered({ parts, pause, isOver }: CancelCovered, which: 'queued' | 'running'): Promise<number> {
  const { deps, settle } = parts;
  const { pauses } = deps.backend;
  const cancel = { kind: 'cancel', reason: pause.reason, by: `a pause of ${pause.by.kind} ${pause.by.name}` } as const;
  let total = 0;
  await everywhere(parts, pause, isOver, async (part) => {
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
