/** The audit of administrators' actions: lists the actions, checks the chain of rows, and writes the rows. */
import { readScope } from '../auth/sight.ts';
import { requireAdmin, subjectOf, type Principal, type Requester } from '../auth/principal.ts';
import { CallboardError, fail } from '../errors.ts';
import { within } from '../ids.ts';
import { PAGE_MAX } from '../limits.ts';
import type { Metrics } from '../metrics.ts';
import { listingOf, type Cursors, type PageArgs, type GivenFilter } from '../cursors.ts';
import { SCAN_BUDGET, type Page, type Scan } from '../page.ts';
import type { Clock, EventLoop, Log } from '../ports.ts';
import { ChainVerifier } from './audit-chain.ts';
import { logAct } from './audit-log.ts';
import type { AuditExtent, AuditHead, AuditRate, AuditStore, ListedAct } from './audit-store.ts';
import {
  keyIdOf,
  openRow,
  sealRow,
  type AuditEntry,
  type AuditSign,
  type AuditSubject,
  type OperatorAction,
} from './audit-rows.ts';

export type Audits = ReturnType<typeof createAudits>;

type AuditsOptions = {
  readonly store: AuditStore;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly loop: EventLoop;
  /** All keys with which rows may have been signed. */
  readonly keys: readonly AuditSign[];
};

/** How long the result of a check is reused for later requests, in milliseconds. */
const CHECKED_MS = 60_000;

export function createAudits({ store, cursors, clock, loop, keys }: AuditsOptions) {
  let latest: { readonly at: number; readonly check: Promise<AuditCheck> } | null = null;
  return {
    /**
     * Lists actions, newest first. An administrator sees all actions, and a user sees those that concern this user.
     * Throws `not_found` if a user names another user.
     */
    async events(requester: Requester, query: GivenFilter<Filter>, page: PageArgs): Promise<Page<AuditEvent>> {
      const { who = null, action = null, afterTime = null, beforeTime = null } = query;
      const filter: Filter = { userId: readScope(requester, query.userId), who, action, afterTime, beforeTime };
      const listing = listingOf('audit', requester, filter);
      const { first, after } = cursors.request(listing, page);
      const scan = await scanActs(store, filter, { first, before: after === null ? null : Number(after[0]) });
      return cursors.page(listing, scan, ['audit', clock.now()], (row) => row);
    },
    /** Returns at most `first` stored rows (1 to 1000) with numbers above `afterSeq`. For administrators only. */
    async chain(requester: Requester, afterSeq: number, first: number): Promise<AuditChain> {
      requireAdmin(requester);
      const most = within('first', first, { default: PAGE_MAX, min: 1, max: PAGE_MAX });
      const lines = await store.lines(Math.max(0, afterSeq), most);
      const last = lines.at(-1);
      return { lines, lastSeq: last === undefined ? null : (openRow(last)?.row.seq ?? null) };
    },
    /**
     * Checks all stored rows with the keys of this relay. For administrators only. A result that is younger than
     * CHECKED_MS is reused. Throws `store_unavailable` if the store does not answer.
     */
    async check(requester: Requester): Promise<AuditCheck> {
      requireAdmin(requester);
      if (latest === null || clock.now() - latest.at >= CHECKED_MS) {
        const check = checkChain(store, { clock, loop, keys });
        const begun = (latest = { at: clock.now(), check });
        check.catch(() => {
          if (latest === begun) latest = null;
        });
      }
      return latest.check;
    },
  };
}

/** Reads the chain in parts. After each part, other work in the event loop runs. */
async function checkChain(
  store: AuditStore,
  { clock, loop, keys }: Pick<AuditsOptions, 'clock' | 'loop' | 'keys'>,
): Promise<AuditCheck> {
  const asOf = clock.now();
  const verifier = new ChainVerifier(keys);
  for (let after = 0, isMore = true; isMore;) {
    const lines = await store.lines(after, PAGE_MAX);
    for (const line of lines) verifier.add(line);
    const last = lines.at(-1);
    after = (last === undefined ? null : openRow(last)?.row.seq) ?? Infinity;
    isMore = lines.length === PAGE_MAX && after < Infinity;
    if (isMore) await new Promise<void>((resolve) => loop.afterOthers(resolve));
  }
  const { rows, fault, unchecked } = verifier.report();
  return { rows, fault: fault?.message ?? null, unchecked: unchecked.reduce((sum, of) => sum + of.rows, 0), asOf };
}

/** The smallest number of rows that one read requests from the store. Few of them may match a filter. */
const PART = 200;

async function scanActs(
  store: AuditStore,
  filter: Filter,
  page: { readonly first: number; readonly before: number | null },
): Promise<Scan<AuditEvent>> {
  const rows: { row: AuditEvent; position: readonly string[] }[] = [];
  let { before } = page;
  for (let seen = 0; seen < SCAN_BUDGET;) {
    const found = await store.list(filter.userId, { before, first: Math.max(PART, page.first + 1) });
    for (const listed of found) {
      if (rows.length === page.first) return { rows, next: [String(before)], gaps: [] };
      before = listed.seq;
      const row = eventOf(listed);
      if (row && matches(filter, row)) rows.push({ row, position: [String(listed.seq)] });
    }
    if (found.length < Math.max(PART, page.first + 1)) return { rows, next: null, gaps: [] };
    seen += found.length;
  }
  return { rows, next: [String(before)], gaps: [], cut: true };
}

function matches({ who, action, afterTime, beforeTime }: Filter, event: AuditEvent): boolean {
  return (
    (who === null || event.who === who) &&
    (action === null || event.action === action) &&
    (afterTime === null || event.at > afterTime) &&
    (beforeTime === null || event.at < beforeTime)
  );
}

/** Parses the stored rows of an action and its outcome. Null if a row is damaged; `check` reports such rows. */
function eventOf({ act, outcome }: ListedAct): AuditEvent | null {
  const row = openRow(act)?.row;
  if (row?.kind !== 'act') return null;
  const end = outcome === null ? null : openRow(outcome)?.row;
  const { seq, at, who, action, subject, reason, node, requestId } = row;
  const recorded = end?.kind === 'outcome' && end.of === seq ? end.outcome : null;
  return { seq, at, who, action, subject, reason, node, requestId, outcome: recorded };
}

/** An action of an administrator. `outcome`: how the action ended; null until this is recorded. */
export type AuditEvent = {
  readonly seq: number;
  readonly at: number;
  readonly who: string;
  readonly action: OperatorAction;
  readonly subject: AuditSubject;
  readonly reason: string | null;
  readonly node: string;
  readonly requestId: string | null;
  readonly outcome: string | null;
};

/** A filter for actions. An action must match every member that is not null. */
type Filter = {
  readonly userId: string | null;
  readonly who: string | null;
  readonly action: OperatorAction | null;
  /** The time of an action must lie between these bounds (exclusive, epoch milliseconds). */
  readonly afterTime: number | null;
  readonly beforeTime: number | null;
};

/** A part of the chain of audit rows, oldest first. `lines`: the rows as they are stored. */
export type AuditChain = {
  readonly lines: readonly string[];
  /** The number of the last row of this part; null if the part is empty because no rows follow. */
  readonly lastSeq: number | null;
};

/** The result of a check of the whole chain. */
export type AuditCheck = {
  /** The number of rows that were checked. */
  readonly rows: number;
  /** A sentence about the first row that was changed, moved or removed; null if there is none. */
  readonly fault: string | null;
  /** The number of rows whose key the relay does not have. Only their place in the chain was checked. */
  readonly unchecked: number;
  /** When the check began, in epoch milliseconds. */
  readonly asOf: number;
};

// Writes two audit rows for each action: one before it, and one with its outcome after it. If the first row cannot be
// written, the action is refused.

type AuditedAct = {
  readonly action: OperatorAction;
  readonly subject: AuditSubject;
  readonly reason?: string | null | undefined;
  /** The id of the request, which the access log has too. */
  readonly requestId?: string | null | undefined;
  readonly rate?: AuditRate | undefined;
};

/** An action whose first row is written. */
export type RecordedAct = {
  /**
   * Writes the outcome of the action. If this fails, the failure is only logged, because the action is already done.
   */
  end(outcome: string): Promise<void>;
};

export type AuditBounds = {
  /** The most rows that are stored. Beyond this, the oldest rows are removed. */
  readonly maxRows: number;
  /** How long a row is stored, in milliseconds. */
  readonly keepMs: number;
};

type AuditTrailOptions = AuditBounds & {
  readonly store: AuditStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'count'>;
  readonly nodeId: string;
  readonly sign: AuditSign;
};

/**
 * The most attempts to append one row. If another relay appends a row at the same time, this row is signed again for
 * the new end of the chain. In each round of competing relays, one succeeds.
 */
const ATTEMPTS = 100;
/**
 * How many rows beyond `maxRows` the chain may have before rows are removed: this fraction of `maxRows`, but at most
 * TRIM_ROWS. So rows are removed in batches of at most TRIM_ROWS.
 */
const TRIM_SHARE = 0.1;
const TRIM_ROWS = 1000;
/** How often the age of the oldest row is checked, in milliseconds. */
const TRIM_AGE_MS = 3600_000;

export type AuditTrail = ReturnType<typeof createAuditTrail>;

export function createAuditTrail(parts: AuditTrailOptions) {
  const chain = new Chain(parts);
  const { log, metrics, store } = parts;
  // Records that the store removed an unfinished row when it was opened. If this row cannot be written, the next action
  // reports the failure.
  if (store.torn) chain.append({ kind: 'torn', ...store.torn }).catch(() => {});
  return {
    /**
     * Writes the first row of an action. The action may begin when this resolves. Throws `audit_unavailable` if the row
     * may not have been written, and `rate_limited` if the principal exceeds `rate`.
     */
    async record(requester: Principal, act: AuditedAct): Promise<RecordedAct> {
      const { action, subject, reason = null, requestId = null, rate } = act;
      logAct(log, requester, { action, subject, reason });
      const who = subjectOf(requester);
      const seq = await chain
        .append({ kind: 'act', who, action, subject, reason, requestId }, rate ?? null)
        .catch((error: unknown) => refuse(parts, error));
      return {
        end: (outcome) =>
          chain.append({ kind: 'outcome', of: seq, outcome }).then(
            () => {},
            (error: unknown) => {
              metrics.count('audit_failures');
              log.error({ err: error, audit: action, row: seq }, 'could not record the outcome of an act');
            },
          ),
      };
    },
  };
}

function refuse({ log, metrics }: Pick<AuditTrailOptions, 'log' | 'metrics'>, error: unknown): never {
  if (error instanceof CallboardError && error.code === 'rate_limited') throw error;
  metrics.count('audit_failures');
  log.error({ err: error }, 'could not write an audit row: the act is refused');
  throw new CallboardError('audit_unavailable', 'The audit cannot be written, so this was not done.', { cause: error });
}

/**
 * Appends the rows of this process to the chain, one after another. Remembers the newest row that this process knows.
 */
class Chain {
  readonly #parts: AuditTrailOptions;
  readonly #key: string;
  #head: AuditHead | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #trimmedAt = -Infinity;

  constructor(parts: AuditTrailOptions) {
    this.#parts = parts;
    this.#key = keyIdOf(parts.sign);
  }

  /** Appends a row and returns its number. */
  append(entry: AuditEntry, rate: AuditRate | null = null): Promise<number> {
    const turn = this.#last.then(() => this.#append(entry, { rate, dropThrough: null }));
    this.#last = turn.catch(() => {});
    return turn.then(async ({ seq, extent }) => {
      this.#last = this.#last.then(() => this.#trim(seq, extent)).catch((error: unknown) => this.#noteTrim(error));
      return seq;
    });
  }

  async #append(
    entry: AuditEntry,
    { rate, dropThrough }: { readonly rate: AuditRate | null; readonly dropThrough: number | null },
  ): Promise<{ readonly seq: number; readonly extent: AuditExtent }> {
    const { store, clock, nodeId, sign } = this.#parts;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const head: AuditHead = this.#head ?? (await store.head());
      const chained = { seq: head.seq + 1, prev: head.mac, key: this.#key, at: clock.now(), node: nodeId };
      const sealed = sealRow({ ...chained, ...entry }, sign);
      // Until the store answers, it is unknown whether the row was written. If the store does not answer, the next
      // append reads the newest row again.
      this.#head = null;
      const result = await store.append({ sealed, dropThrough, rate });
      if (result.kind === 'appended') {
        this.#head = { seq: chained.seq, mac: sealed.mac };
        return { seq: chained.seq, extent: result.extent };
      }
      if (result.kind === 'limited')
        fail('rate_limited', 'Too many such acts within an hour.', { retryAfterMs: result.retryAfterMs });
      this.#head = result.head;
    }
    throw new Error(`other relays were faster ${ATTEMPTS} times`);
  }

  /** Removes rows beyond the bounds, and appends a row of kind `trim` that records which rows were removed. */
  async #trim(seq: number, extent: AuditExtent): Promise<void> {
    const through = await this.#trimThrough(seq, extent);
    const [line] = through === null ? [] : await this.#parts.store.lines(through - 1, 1);
    const last = line === undefined ? null : openRow(line);
    if (through === null || last?.row.seq !== through) return;
    await this.#append({ kind: 'trim', through, throughMac: last.mac }, { rate: null, dropThrough: through });
  }

  async #trimThrough(seq: number, { count, firstSeq, firstAt }: AuditExtent): Promise<number | null> {
    const { maxRows, keepMs, clock, store } = this.#parts;
    if (firstSeq === null || firstAt === null) return null;
    if (count >= maxRows + Math.min(TRIM_ROWS, Math.ceil(maxRows * TRIM_SHARE)))
      return Math.min(seq - maxRows, firstSeq + TRIM_ROWS - 1);
    const now = clock.now();
    if (firstAt + keepMs > now || now - this.#trimmedAt < TRIM_AGE_MS) return null;
    this.#trimmedAt = now;
    const oldest = await store.lines(firstSeq - 1, TRIM_ROWS);
    const past = oldest.map((line) => openRow(line)?.row).filter((row) => row && row.at + keepMs <= now);
    // The newest row is never removed, however old it is.
    return Math.min(past.at(-1)?.seq ?? 0, seq - 1) || null;
  }

  #noteTrim(error: unknown): void {
    this.#parts.log.warn({ err: error }, 'could not trim the audit; a later row will');
  }
}
