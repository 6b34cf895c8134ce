/** Reads the audit for those who may see it. Writes nothing. */
import { readScope, requireAdmin, requirePrincipal, subjectOf } from '../auth/principal.ts';
import type { Cursors, Listing } from '../cursor.ts';
import type { Clock } from '../clock.ts';
import { PAGE_MAX } from '../limits.ts';
import { SCAN_BUDGET, type Scan } from '../page.ts';
import { within } from '../range.ts';
import type { AuditEvent, AuditQuery, Audits } from './api.ts';
import { openRow } from './row.ts';
import type { AuditStore, ListedAct } from './store.ts';

export type AuditsParts = { readonly store: AuditStore; readonly cursors: Cursors; readonly clock: Clock };

type Filter = Required<{ readonly [Name in keyof AuditQuery]: Exclude<AuditQuery[Name], undefined> }>;

export function createAudits({ store, cursors, clock }: AuditsParts): Audits {
  return {
    async events(requester, query, page) {
      const { who = null, action = null, afterTime = null, beforeTime = null } = query;
      const filter: Filter = { userId: readScope(requester, query.userId), who, action, afterTime, beforeTime };
      const listing: Listing = { name: 'audit', filter, requester: subjectOf(requirePrincipal(requester)) };
      const { first, after } = cursors.request(listing, page);
      const scan = await scanActs(store, filter, { first, before: after === null ? null : Number(after[0]) });
      return cursors.page(listing, scan, { source: 'audit', nodeId: null, asOf: clock.now() }, (row) => row);
    },
    async chain(requester, afterSeq, first) {
      requireAdmin(requester);
      const most = within('first', first, { default: PAGE_MAX, min: 1, max: PAGE_MAX });
      const lines = await store.lines(Math.max(0, afterSeq), most);
      const last = lines.at(-1);
      return { lines, lastSeq: last === undefined ? null : (openRow(last)?.row.seq ?? null) };
    },
  };
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
  const told = end?.kind === 'outcome' && end.of === seq ? end.outcome : null;
  return { seq, at, who, action, subject, reason, node, requestId, outcome: told };
}
