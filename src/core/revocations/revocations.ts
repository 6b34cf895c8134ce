/**
 * Revokes tokens: keeps the revocations of the deployment in the memory of this node, ends what a new one covers on
 * every node, and cancels what was queued with such tokens.
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

/** How often a node of a shared deployment reads new revocations, in milliseconds, in case it was not told of one. */
const REREAD_MS = 2_000;
/** How long a token waits for the first reading of the revocations, in milliseconds. */
const FIRST_READ_MS = 5_000;
/** The most commands of one part of the store that a revocation looks at, and how many in one turn of the event loop. */
const COVERED_MOST = 1_000_000;
const CANCEL_BATCH = 256;
/** How many of the last rows a node knows what they ended. */
const TAKEN_MAX = 100;
/** How often expired rows are removed from memory, in milliseconds. */
const EXPIRE_MS = 3600_000;

/** What a revocation has ended on one node: its links, and the sockets of requests and streams in progress. */
type RevokedEnds = { readonly links: number; readonly sockets: number };

/** What a revocation did. */
export type RevocationReceipt = RevokedEnds & {
  readonly revocation: Revocation;
  /** The number of queued commands of such tokens that are cancelled so far: each has an end, and none has run. */
  readonly cancelled: number;
  /**
   * The nodes that refuse what is revoked and have ended what it covers, and those that have not answered in time. Of
   * the latter, commands may be left that the relay goes on trying to cancel; `partition <n>`: a part of the store that
   * has no node now.
   */
  readonly nodes: readonly string[];
  readonly silent: readonly string[];
};

/** Members that are absent or null name nothing. */
type RevokeRequest = { readonly [M in keyof RevocationTarget]?: RevocationTarget[M] | undefined } & {
  readonly reason: string;
};

/**
 * Ends what a row covers, and returns how many links or sockets it ended. `by`: the requester, whose own request is
 * still to be answered; null on other nodes.
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
  const first = Promise.withResolvers<void>();
  /** What the last rows have ended here. */
  const taken = new BoundedMap<string, RevokedEnds>({ most: TAKEN_MAX });
  let isLoaded = false;
  let lastSeq = 0;

  /** Refuses from now on what the row covers, and ends it. */
  const take = (row: Revocation, by: Requester = null): RevokedEnds => {
    // This node may have read the row before another one told it: what it ended then counts in its answer.
    if (!index.add(row)) return taken.get(row.revocationId) ?? { links: 0, sockets: 0 };
    const isCovered = (principal: Principal, clientId: string | null): boolean => covers(row, principal, clientId);
    const ended = { links: ends.links(isCovered, by), sockets: ends.sockets(isCovered, by) };
    taken.set(row.revocationId, ended);
    return ended;
  };
  /** Does the same, and waits for what such tokens have asked of the store before: it may be queued then. */
  const takeWhole = async (row: Revocation, by: Requester = null): Promise<RevokedEnds> => {
    const ended = take(row, by);
    await admissions.ended((principal) => covers(row, principal, null));
    return ended;
  };
  /** A store in this process answers at once, so the rows are known before the first token. */
  const read = (): MaybePromise<void> =>
    thenDo(backend.revocations.after(lastSeq, PAGE_MAX), (rows) => {
      for (const row of rows) take(row);
      lastSeq = rows.at(-1)?.seq ?? lastSeq;
      if (rows.length === PAGE_MAX) return read();
      isLoaded = true;
      first.resolve();
      return undefined;
    });
  let isReading = false;
  const readAgain = (): void => {
    if (isReading) return;
    isReading = true;
    promised(read)
      .catch((error: unknown) => {
        if (!isStoreUnavailable(error)) log.warn({ err: error }, 'revocations could not be read');
      })
      .finally(() => (isReading = false));
  };
  // What is in this process needs no start.
  if (!backend.capabilities.shared) readAgain();
  questions.answerWith('revoked', async (text) => JSON.stringify(await takeWhole(JSON.parse(text) as Revocation)));

  /** Tells all other nodes. */
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
    /** Sets what ends links, and what ends sockets, that a revocation covers. */
    endWith: (part: keyof RevokedEnds, end: EndCovered): void => void (ends[part] = end),
    /** Whether `find` knows all revocations of the store. */
    get isLoaded(): boolean {
      return isLoaded;
    },
    /** Resolves when `isLoaded`. Throws `store_unavailable` after FIRST_READ_MS. */
    async loaded(): Promise<void> {
      if (isLoaded) return;
      const late = Promise.withResolvers<never>();
      const cancel = clock.after(FIRST_READ_MS, () => {
        const retry = { retryAfterMs: 1_000, reason: 'The revocations cannot be read.' };
        late.reject(new CallboardError('store_unavailable', 'The revocations cannot be read yet.', retry));
      });
      await Promise.race([first.promise, late.promise]).finally(cancel);
    },
    /** Returns the revocation that covers a token; null if none does. `clientId`: as for `covers`. */
    find: (principal: Principal, clientId: string | null = null): Revocation | null => index.find(principal, clientId),
    /** Reads the revocations, and again from time to time if other nodes may add some. */
    start(): Cancel {
      readAgain();
      const cancels = [clock.every(EXPIRE_MS, () => index.expire(clock.now()))];
      if (backend.capabilities.shared) cancels.push(clock.every(REREAD_MS, readAgain));
      return () => cancels.forEach((cancel) => cancel());
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
     * Revokes. An administrator may revoke any tokens, a user those of its own. Throws `invalid_argument` if the request
     * names nothing, `not_found` for another user, and `capacity_exceeded` if too many are kept.
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
      const [here, told] = await Promise.all([takeWhole(revocation, revoker), tell(revocation)]);
      const { cancelled, silent: late } = await cancelUnacknowledged({ deps, recorder }, revocation);
      await act?.end('revoked');
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

/** Checks a request and makes its row. Tokens that are issued later are not covered, unless the row names the token. */
function rowOf({ crypto, clock }: Deps, revoker: CallingPrincipal, given: RevokeRequest): NewRevocation {
  const { userId, clientId, tokenId, issuedBefore, reason } = given;
  const now = clock.now();
  const target: RevocationTarget = {
    userId: userId === undefined || userId === null ? null : canonicalUser(userId),
    clientId: clientId === undefined || clientId === null ? null : id('client_id', clientId),
    tokenId: tokenId ?? null,
    // Tokens that are issued later are not covered.
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

/** A user revokes tokens of its own; a token that is limited to some actions revokes no other token. */
function withinRights(revoker: CallingPrincipal, target: RevocationTarget): RevocationTarget {
  if (revoker.kind === 'admin') return target;
  if (target.userId !== null && target.userId !== revoker.userId) notFound();
  if (target.tokenId === null || target.tokenId !== revoker.token?.id) withoutLimit(seenActions(revoker));
  return { ...target, userId: revoker.userId };
}

/**
 * Cancels the commands that were invoked with tokens that a row covers: those that have not been dispatched, whose number
 * it returns, and those that their clients have not acknowledged. Of the latter the client is asked to stop, and one that
 * never arrived is not written again. A row that names a client covers links alone, and cancels none. Commands that have
 * ended are not looked through: a store remembers very many. A part of the store that does not answer is tried again as
 * long as commands of before may live.
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

/** A user invokes actions of its own clients, and an administrator with a token for this name those of all users. */
function coversOf(userId: string | null): readonly PauseCover[] {
  if (userId === null) return [EVERYTHING];
  const asAdmin: PauseCover = { ...EVERYTHING, callerKind: 'admin' };
  return isCanonicalUser(userId) ? [{ ...EVERYTHING, userId }, asAdmin] : [asAdmin];
}
