/**
 * The audit of administrators' acts: the interface that lists acts, reads the chain and checks it, and the trail that
 * writes rows.
 */
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
  /** The keys with which rows may have been signed. */
  readonly keys: readonly AuditSign[];
};

/** How long the verdict of a check is given to later requests, in milliseconds. */
const CHECKED_MS = 60_000;

export function createAudits({ store, cursors, clock, loop, keys }: AuditsOptions) {
  let latest: { readonly at: number; readonly check: Promise<AuditCheck> } | null = null;
  return {
    /**
     * Lists acts, newest first. An administrator sees all of them, a user only those that concern this user. Throws
     * `not_found` if a user asks for those of another user.
     */
    async events(requester: Requester, query: GivenFilter<Filter>, page: PageArgs): Promise<Page<AuditEvent>> {
      const { who = null, action = null, afterTime = null, beforeTime = null } = query;
      const filter: Filter = { userId: readScope(requester, query.userId), who, action, afterTime, beforeTime };
      const listing = listingOf('audit', requester, filter);
      const { first, after } = cursors.request(listing, page);
      const scan = await scanActs(store, filter, { first, before: after === null ? null : Number(after[0]) });
      return cursors.page(listing, scan, ['audit', clock.now()], (row) => row);
    },
    /** Reads at most `first` rows (1 to 1000) whose numbers are above `afterSeq`. For administrators only. */
    async chain(requester: Requester, afterSeq: number, first: number): Promise<AuditChain> {
      requireAdmin(requester);
      const most = within('first', first, { default: PAGE_MAX, min: 1, max: PAGE_MAX });
      const lines = await store.lines(Math.max(0, afterSeq), most);
      const last = lines.at(-1);
      return { lines, lastSeq: last === undefined ? null : (openRow(last)?.row.seq ?? null) };
    },
    /**
     * Checks all stored rows with the keys of this relay. For administrators only. A check of the last minute is not
     * repeated. Throws `store_unavailable` if the store does not answer.
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

/** Reads the chain in parts, and lets other work run after each. */
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

/** The least number of rows that one read of the store asks for, because a filter may leave most of them out. */
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

/**
 * Reads an act and its outcome from their stored rows. Null if a row is damaged; the verification of the chain finds
 * such rows.
 */
function eventOf({ act, outcome }: ListedAct): AuditEvent | null {
  const row = openRow(act)?.row;
  if (row?.kind !== 'act') return null;
  const end = outcome === null ? null : openRow(outcome)?.row;
  const { seq, at, who, action, subject, reason, node, requestId } = row;
  const recorded = end?.kind === 'outcome' && end.of === seq ? end.outcome : null;
  return { seq, at, who, action, subject, reason, node, requestId, outcome: recorded };
}

/** An act of an administrator. `outcome`: what became of it; null until the relay has recorded that. */
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

/** Selects acts. An act must match every member that is not null. */
type Filter = {
  readonly userId: string | null;
  readonly who: string | null;
  readonly action: OperatorAction | null;
  /** The bounds of the time of an act, both exclusive; epoch milliseconds. */
  readonly afterTime: number | null;
  readonly beforeTime: number | null;
};

/** A part of the chain of audit rows, oldest first. `lines` holds the rows in the form in which they are stored. */
export type AuditChain = {
  readonly lines: readonly string[];
  /** The number of the last row of this part; null: there are no more rows. */
  readonly lastSeq: number | null;
};

/** What a check of the whole chain has found. */
export type AuditCheck = {
  /** The number of rows that were checked. */
  readonly rows: number;
  /** The first row that was changed, moved or removed, in a sentence; null if there is none. */
  readonly fault: string | null;
  /** The number of rows that were signed with a key that the relay does not have. Only their place was checked. */
  readonly unchecked: number;
  /** When the check began, in epoch milliseconds. */
  readonly asOf: number;
};

// Writes audit rows: one before an act, and one with its outcome after it. If the first one cannot be written, the act
// is refused.

type AuditedAct = {
  readonly action: OperatorAction;
  readonly subject: AuditSubject;
  readonly reason?: string | null | undefined;
  /** The id of the request, as in the access log. */
  readonly requestId?: string | null | undefined;
  readonly rate?: AuditRate | undefined;
};

/** An act whose row has been written. */
export type RecordedAct = {
  /** Writes the outcome of the act. A failure is only logged, because the act is done. */
  end(outcome: string): Promise<void>;
};

export type AuditBounds = {
  /** How many rows are kept; beyond that, the oldest are removed. */
  readonly maxRows: number;
  /** How long a row is kept, in milliseconds. */
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
 * The most attempts to append one row. If another relay appends first, the row is signed again for the new end of the
 * chain. Each time, one of the competing relays succeeds.
 */
const ATTEMPTS = 100;
/**
 * How far the chain may exceed `maxRows` before rows are removed: by this fraction of `maxRows`, but at most by
 * TRIM_ROWS. Rows are therefore removed in batches. One batch has at most TRIM_ROWS rows.
 */
const TRIM_SHARE = 0.1;
const TRIM_ROWS = 1000;
/** How often the age of the oldest row is checked, in milliseconds. */
const TRIM_AGE_MS = 3600_000;

export type AuditTrail = ReturnType<typeof createAuditTrail>;

export function createAuditTrail(parts: AuditTrailOptions) {
  const chain = new Chain(parts);
  const { log, metrics, store } = parts;
  // Records that the store removed an unfinished row. If this row cannot be written, the next act reports the failure.
  if (store.torn) chain.append({ kind: 'torn', ...store.torn }).catch(() => {});
  return {
    /**
     * Writes the row of an act; the act may begin when this resolves. Throws `audit_unavailable` if the row may not
     * have been written, and `rate_limited` beyond `rate`.
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
 * Appends the rows of this process to the chain, one after another. Remembers the newest row of the chain, as far as
 * this process knows it.
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
      // Until the store answers it is unknown whether the row was written. If no answer comes, the next append reads
      // the head again.
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

  /** Removes rows beyond the bounds, and appends a row of kind `trim` that records which ones. */
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
    // The newest row is kept, whatever its age.
    return Math.min(past.at(-1)?.seq ?? 0, seq - 1) || null;
  }

  #noteTrim(error: unknown): void {
    this.#parts.log.warn({ err: error }, 'could not trim the audit; a later row will');
  }
}
