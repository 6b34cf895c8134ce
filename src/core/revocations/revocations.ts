/**
 * Revokes tokens: keeps all revocations in this node's memory, ends the links and sockets that a new one covers on
 * every node, and cancels the commands that were queued with such tokens.
 */
import {
  requireAdmin,
  requireScope,
  subjectOf,
  type CallingPrincipal,
  type Principal,
  type Requester,
} from '../auth/principal.ts';
import { withoutLimit, seenActions } from '../auth/sight.ts';
import type { CommandRecorder } from '../commands/command-recorder.ts';
import { isTerminal } from '../commands/command.ts';
import { BoundedMap } from '../collections.ts';
import { nodesWithLinks } from '../commands/other-nodes.ts';
import type { NodeQuestions } from '../commands/node-questions.ts';
import { checkReason } from '../commands/operator-actions.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, fail, invalid, isStoreUnavailable, notFound } from '../errors.ts';
import { canonicalUser, hasAtMost, id, isCanonicalUser } from '../ids.ts';
import {
  CONNECT_WITHIN_MS,
  PAGE_MAX,
  REVOCATIONS_MAX,
  REVOCATIONS_PER_USER,
  REVOCATION_KEEP_MS,
  RESPOND_WITHIN_MS,
  REVOKE_WITHIN_MS,
  TOKEN_ID_CHARS,
} from '../limits.ts';
import { promised, thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { Page } from '../page.ts';
import { listingOf, type PageArgs } from '../cursors.ts';
import { EVERYTHING, type PauseCover } from '../pauses/pause.ts';
import type { Cancel } from '../ports.ts';
import { inEachPart } from '../store-parts.ts';
import { covers, coversCaller, type NewRevocation, type Revocation, type RevocationTarget } from './revocation.ts';

/**
 * How often a node in shared mode reads new revocations, in milliseconds, in case another node could not tell it of
 * one.
 */
const REREAD_MS = 2_000;
/** How long a request waits until the revocations are read, in milliseconds. */
const LOAD_MS = 5_000;
/**
 * The most commands that a revocation examines in one part of the store, and how many of them in one turn of the event
 * loop.
 */
const COVERED_MOST = 1_000_000;
const CANCEL_BATCH = 256;
/** For how many of the latest revocations a node remembers what they ended. */
const TAKEN_MAX = 100;
/** How often expired rows are removed from memory, in milliseconds. */
const EXPIRE_MS = 3600_000;

/**
 * What a revocation ended on one node: the number of links, and the number of sockets with requests or streams in
 * progress.
 */
type RevokedEnds = { readonly links: number; readonly sockets: number };

/** The result of a revocation. */
export type RevocationReceipt = RevokedEnds & {
  readonly revocation: Revocation;
  /** The number of queued commands with such tokens that are cancelled so far. Each has ended, and none has run. */
  readonly cancelled: number;
  /**
   * `nodes`: the nodes that now refuse the tokens and have ended their links and sockets. `silent`: the nodes that did
   * not answer in time, also about queued commands, which the relay goes on trying to cancel; `partition <n>`: a part of
   * the store that has no node now.
   */
  readonly nodes: readonly string[];
  readonly silent: readonly string[];
};

/** The tokens to revoke. Members that are absent or null select nothing. */
type RevokeRequest = { readonly [M in keyof RevocationTarget]?: RevocationTarget[M] | undefined } & {
  readonly reason: string;
};

/**
 * Ends the links, or the sockets, that a revocation covers, and returns their number. `by`: the requester whose own
 * request must still be answered; null on other nodes.
 */
type EndCovered = (isCovered: (principal: Principal, clientId: string | null) => boolean, by: Requester) => number;

type RevocationDeps = {
  readonly deps: Deps;
  readonly recorder: CommandRecorder;
  readonly questions: NodeQuestions;
};

export type Revocations = ReturnType<typeof createRevocations>;

export function createRevocations({ deps, recorder, questions }: RevocationDeps) {
  const { backend, clock, cursors, log, nodeId, revoked: index, admissions } = deps;
  const ends: Record<keyof RevokedEnds, EndCovered> = { links: () => 0, sockets: () => 0 };
  let loaded = Promise.withResolvers<void>();
  /** What the latest revocations ended on this node. */
  const taken = new BoundedMap<string, RevokedEnds>({ most: TAKEN_MAX });
  /** How often reading began anew. */
  let readings = 0;
  let isLoaded = false;
  let lastSeq = 0;

  /** Adds a revocation: from now on its tokens are refused. Ends the links and sockets that it covers. */
  const take = (row: Revocation, by: Requester = null): RevokedEnds => {
    // This node may have read the revocation from the store before another node told it. The answer to that node must
    // include what was ended then.
    if (!index.add(row)) return taken.get(row.revocationId) ?? { links: 0, sockets: 0 };
    const isCovered = (principal: Principal, clientId: string | null): boolean => covers(row, principal, clientId);
    const ended = { links: ends.links(isCovered, by), sockets: ends.sockets(isCovered, by) };
    taken.set(row.revocationId, ended);
    return ended;
  };
  /**
   * Adds a revocation, and waits for admissions with its tokens that are under way, because they may still queue
   * commands.
   */
  const takeWhole = async (row: Revocation, by: Requester = null): Promise<RevokedEnds> => {
    const ended = take(row, by);
    await admissions.ended((principal) => covers(row, principal, null));
    return ended;
  };
  /**
   * Reads new revocations. A store in this process answers in the same tick, so they are known before the first token
   * is checked. A reading that began before `readAnew` does not say that this node knows all.
   */
  const read = (asOf: number): MaybePromise<void> =>
    thenDo(backend.revocations.after(lastSeq, PAGE_MAX), (rows) => {
      for (const row of rows) take(row);
      lastSeq = Math.max(lastSeq, rows.at(-1)?.seq ?? 0);
      if (asOf !== readings) return undefined;
      if (rows.length === PAGE_MAX) return read(asOf);
      isLoaded = true;
      loaded.resolve();
      return undefined;
    });
  let isReading = false;
  const readAgain = (): void => {
    if (isReading) return;
    isReading = true;
    const asOf = readings;
    promised(() => read(asOf))
      .catch((error: unknown) => {
        if (!isStoreUnavailable(error)) log.warn({ err: error }, 'revocations could not be read');
      })
      .finally(() => {
        if (asOf === readings) isReading = false;
      });
  };

  // A store in this process can be read before `start`.
  if (!backend.capabilities.shared) readAgain();
  questions.answerWith('revoked', async (text) => JSON.stringify(await takeWhole(JSON.parse(text) as Revocation)));

  /** Tells all other nodes of a revocation, and collects their answers. */
  const tell = async (row: Revocation) => {
    const { others, silent } = await nodesWithLinks(deps);
    const text = JSON.stringify(row);
    return Promise.all(
      others.map(async (other) => {
        const question = { topic: 'revoked' as const, text, withinMs: REVOKE_WITHIN_MS };
        const answer = silent.has(other) ? null : await questions.ask(other, question);
        return { other, ended: answer === null ? null : (JSON.parse(answer) as RevokedEnds) };
      }),
    );
  };

  return {
    /** Sets the function that ends the links, or the sockets, that a revocation covers. */
    endWith: (part: keyof RevokedEnds, end: EndCovered): void => void (ends[part] = end),
    /** Whether all revocations of the store have been read. */
    get isLoaded(): boolean {
      return isLoaded;
    },
    /** Resolves when all revocations have been read. Throws `store_unavailable` after LOAD_MS. */
    async loaded(): Promise<void> {
      if (isLoaded) return;
      const late = Promise.withResolvers<never>();
      const cancel = clock.after(LOAD_MS, () => {
        const retry = { retryAfterMs: 1_000, reason: 'The revocations cannot be read.' };
        late.reject(new CallboardError('store_unavailable', 'The revocations cannot be read yet.', retry));
      });
      await Promise.race([loaded.promise, late.promise]).finally(cancel);
    },
    /** Returns the revocation that covers a token; null if none does. `clientId`: as for `covers`. */
    find: (principal: Principal, clientId: string | null = null): Revocation | null => index.find(principal, clientId),
    /** Reads the revocations and, in shared mode, reads new ones at intervals. */
    start(): Cancel {
      readAgain();
      const cancels = [clock.every(EXPIRE_MS, () => index.expire(clock.now()))];
      if (backend.capabilities.shared) cancels.push(clock.every(REREAD_MS, readAgain));
      return () => cancels.forEach((cancel) => cancel());
    },
    /**
     * Reads the revocations now, because nobody may have told this node of the latest ones. Until they are read, tokens
     * wait.
     */
    readAnew(): void {
      readings++;
      if (isLoaded) loaded = Promise.withResolvers<void>();
      isLoaded = false;
      isReading = false;
      readAgain();
    },
    /** Lists revocations, newest first. For administrators only. */
    list(requester: Requester, args: PageArgs): Page<Revocation> {
      const listing = listingOf('revocations', requireAdmin(requester), null);
      const { first: most, after } = cursors.request(listing, args);
      index.expire(clock.now());
      const before = after === null ? Infinity : Number(after[0]);
      const rows = index.newest().filter(({ seq }) => seq < before);
      const page = rows.slice(0, most).map((row) => ({ row, position: [String(row.seq)] }));
      const next = rows.length > most ? (page.at(-1)?.position ?? null) : null;
      return cursors.page(listing, { rows: page, next, gaps: [] }, ['revocations', clock.now()], (row) => row);
    },
    /**
     * Revokes tokens. An administrator may revoke any tokens, and a user its own. Throws `invalid_argument` if the
     * request selects nothing, `not_found` for another user, and `capacity_exceeded` if there are too many revocations.
     */
    async revoke(requester: Requester, given: RevokeRequest, requestId?: string | null): Promise<RevocationReceipt> {
      const revoker = requireScope(requester, 'invoke');
      const row = rowOf(deps, revoker, given);
      const { userId, clientId, tokenId, reason } = row;
      const subject = {
        ...(userId !== null && { userId }),
        ...(clientId !== null && { clientId }),
        ...(tokenId !== null && { tokenId }),
      };
      const act =
        revoker.kind === 'admin'
          ? await deps.audit.record(revoker, { action: 'revoke', subject, reason, requestId })
          : null;
      const revocation = await backend.revocations.add(row);
      if (revocation === null) {
        await act?.end('full');
        const most =
          revoker.kind === 'user' ? `${REVOCATIONS_PER_USER} revocations of a user` : `${REVOCATIONS_MAX} revocations`;
        return fail('capacity_exceeded', `${most} are kept. Use issued_before, which covers many tokens at once.`);
      }
      const telling = tell(revocation);
      const [here] = await Promise.all([takeWhole(revocation, revoker), telling.catch(() => undefined)]);
      // If the nodes could not be told, this request fails below. The revocation is in force, so it cancels all the same.
      const { cancelled, silent: late } = await cancelUnacknowledged({ deps, recorder }, revocation);
      await act?.end('revoked');
      const told = await telling;
      const ended = [here, ...told.flatMap((node) => node.ended ?? [])];
      const silent = new Set([...told.flatMap(({ other, ended: answer }) => (answer ? [] : [other])), ...late]);
      const answered = told.map(({ other }) => other).filter((other) => !silent.has(other));
      return {
        ...{ revocation, cancelled },
        links: ended.reduce((sum, { links }) => sum + links, 0),
        sockets: ended.reduce((sum, { sockets }) => sum + sockets, 0),
        nodes: [nodeId, ...answered].sort(),
        silent: [...silent],
      };
    },
  };
}

/**
 * Checks a request and makes its revocation. Unless the request names a token, tokens that are issued later are not
 * covered.
 */
function rowOf({ crypto, clock }: Deps, revoker: CallingPrincipal, given: RevokeRequest): NewRevocation {
  const { userId, clientId, tokenId, issuedBefore, reason } = given;
  const now = clock.now();
  const target: RevocationTarget = {
    userId: userId === undefined || userId === null ? null : canonicalUser(userId),
    clientId: clientId === undefined || clientId === null ? null : id('client_id', clientId),
    tokenId: tokenId ?? null,
    // At most the present time, so that tokens that are issued later are not covered.
    issuedBefore: issuedBefore === undefined || issuedBefore === null ? null : Math.min(issuedBefore, now + 1),
  };
  if (target.tokenId !== null && (target.tokenId === '' || !hasAtMost(target.tokenId, TOKEN_ID_CHARS)))
    invalid('token_id', `expected 1 to ${TOKEN_ID_CHARS} characters`);
  if (reason === '') invalid('reason', 'expected a reason');
  checkReason(reason);
  if (Object.values(target).every((member) => member === null))
    fail('ambiguous', 'Name at least one of user_id, client_id, token_id and issued_before.');
  const allowed = withinRights(revoker, target);
  if (allowed.clientId !== null && allowed.userId === null) fail('ambiguous', 'Name the user_id of the client.');
  return {
    ...allowed,
    issuedBefore: target.tokenId === null ? (target.issuedBefore ?? now + 1) : target.issuedBefore,
    ...{ revocationId: crypto.randomId(), reason, who: subjectOf(revoker), at: now },
    expiresAt: now + REVOCATION_KEEP_MS,
  };
}

/**
 * Limits the target to what the requester may revoke: a user its own tokens, and a token that is limited to some
 * actions only itself.
 */
function withinRights(revoker: CallingPrincipal, target: RevocationTarget): RevocationTarget {
  if (revoker.kind === 'admin') return target;
  if (target.userId !== null && target.userId !== revoker.userId) notFound();
  if (target.tokenId === null || target.tokenId !== revoker.token?.id) withoutLimit(seenActions(revoker));
  return { ...target, userId: revoker.userId };
}

/**
 * Cancels the commands that were invoked with covered tokens and that their clients have not acknowledged. Commands
 * that were not dispatched end; their number is returned. For commands that were dispatched, the client is asked to
 * cancel, and a command that never arrived is not written again. A revocation with a client covers links only, so it
 * cancels nothing. Ended commands are not examined, because a store remembers very many. A part of the store that does
 * not answer is tried again as long as commands from before the revocation may live.
 */
async function cancelUnacknowledged(
  { deps, recorder }: Pick<RevocationDeps, 'deps' | 'recorder'>,
  revocation: Revocation,
): Promise<Pick<RevocationReceipt, 'cancelled' | 'silent'>> {
  const { userId, clientId, reason, who, at } = revocation;
  if (clientId !== null) return { cancelled: 0, silent: [] };
  const { commands, pauses } = deps.backend;
  let cancelled = 0;
  const cancelIn = async (part: number, cover: PauseCover): Promise<void> => {
    const keys = [
      ...(await pauses.covered(part, cover, 'queued', COVERED_MOST)),
      ...(await pauses.covered(part, cover, 'running', COVERED_MOST)),
    ];
    for (let from = 0; from < keys.length; from += CANCEL_BATCH) {
      if (from > 0) await new Promise<void>((next) => deps.loop.afterOthers(next));
      for (const command of await commands.get(keys.slice(from, from + CANCEL_BATCH))) {
        if (!command || isTerminal(command) || command.stage === 'acknowledged') continue;
        if (!coversCaller(revocation, command.caller)) continue;
        const cancel = { kind: 'cancel', reason: `Revoked: ${reason}`.slice(0, 200), by: who } as const;
        const settled = await recorder.settle(command, cancel);
        if (settled.kind === 'settled') cancelled++;
      }
    }
  };
  const isOver = (): boolean => deps.clock.now() - at > CONNECT_WITHIN_MS.max + RESPOND_WITHIN_MS.max;
  const failure = 'some revoked commands were not cancelled';
  const reached = await Promise.all(
    coversOf(userId).map((cover) =>
      inEachPart(deps, { userId: cover.userId, isOver, failure, act: (part) => cancelIn(part, cover) }),
    ),
  );
  return { cancelled, silent: reached.flatMap(({ silent }) => silent) };
}

/**
 * Returns the covers that contain all commands invoked in this name: those of the user's own clients and, because an
 * administrator's token may have the same name, those that administrators invoked.
 */
function coversOf(userId: string | null): readonly PauseCover[] {
  if (userId === null) return [EVERYTHING];
  const asAdmin: PauseCover = { ...EVERYTHING, callerKind: 'admin' };
  return isCanonicalUser(userId) ? [{ ...EVERYTHING, userId }, asAdmin] : [asAdmin];
}
