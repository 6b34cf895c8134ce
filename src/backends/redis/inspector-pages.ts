/** Fills pages of commands: reads names from an index step by step, and then the records with these names. */
import type { Command } from '../../core/commands/command.ts';
import type { DeliveryFilter } from '../../core/commands/delivery-inspector.ts';
import { SCANNED_AT_LEAST } from '../../core/limits.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import { READ_BATCH, type RecordTest } from './commands/get.ts';

/**
 * The most names that one call reads. Such a call takes about 1 ms, and Redis answers other requests before the next
 * call.
 */
export const NAMES = 256;

/** Returns the key of a command from its name in an index. */
export function keyOfName(name: string): { userId: string; clientId: string; commandId: string } {
  const [userId = '', clientId = '', commandId = ''] = name.split('\0');
  return { userId, clientId, commandId };
}

/** The names of a listing, in order, with the functions that read them. */
type NamedListing<N> = {
  /** Reads the next `first` names after a position; fewer names if no more follow. */
  readonly names: (page: Pick<PageRequest, 'first' | 'after'>) => Promise<readonly N[]>;
  readonly positionOf: (name: N) => Position;
  /**
   * Reads the commands with these names, at most READ_BATCH; null for a command that no longer exists or does not
   * match.
   */
  readonly commands: (names: readonly N[]) => Promise<readonly (Command | null)[]>;
  /** Whether every name belongs to a command that matches, unless the command no longer exists. */
  readonly plain: boolean;
};

/**
 * Fills one page. Reads at most SCAN_BUDGET names, or SCANNED_AT_LEAST once the page's document has scanned enough. No
 * call reads more than NAMES names or READ_BATCH records, and each call begins after the answer of the previous one.
 */
export async function fillPage<N>(listing: NamedListing<N>, page: PageRequest): Promise<Scan<Command>> {
  const { names, positionOf, commands, plain } = listing;
  const { reading } = page;
  const rows: { row: Command; position: Position }[] = [];
  const most = plain ? Math.min(NAMES, page.first + 1) : NAMES;
  let step = plain ? most : SCANNED_AT_LEAST;
  let scanned = 0;
  let last = page.after;
  for (;;) {
    reading?.check();
    const found = await names({ first: step, after: last });
    for (let from = 0; from < found.length; from += READ_BATCH) {
      if (rows.length === page.first) return { rows, next: last, gaps: [] };
      reading?.check();
      const some = found.slice(from, from + READ_BATCH);
      const read = await commands(some);
      if (!plain) reading?.countScanned(some.length);
      for (const [i, name] of some.entries()) {
        if (rows.length === page.first) return { rows, next: last, gaps: [] };
        if (scanned === SCAN_BUDGET) return { rows, next: last, gaps: [], cut: true };
        scanned++;
        last = positionOf(name);
        const row = read[i];
        if (row) rows.push({ row, position: last });
      }
    }
    if (found.length < step) return { rows, next: null, gaps: [] };
    if (!plain && reading?.scannedEnough) return { rows, next: last, gaps: [], cut: true };
    step = most;
  }
}

/**
 * Returns a test that the records of all matching commands pass. Other records may pass as well, because a text may
 * occur in another field, so the caller must still compare each command with the filter.
 */
export function testOf(filter: DeliveryFilter): RecordTest {
  const { clientId, stage, outcome, outcomes, nodeId, action, contextId, code, clientType } = filter;
  const { caller, callerKind, idOrTrace } = filter;
  const given = [clientId, outcome, nodeId, action, contextId, clientType, caller, callerKind];
  const fields = given.filter((value) => value !== null);
  // A code is part of the JSON of an error, in which other characters may be escaped.
  const errors = code !== null && /^[\w.:-]+$/.test(code) ? [`"code":"${code}"`] : [];
  const ends = idOrTrace === null ? [] : [`${idOrTrace}\0`];
  return {
    stage,
    texts: [...fields.map((value) => `\0${value}\0`), ...errors, ...ends],
    oneOf: (outcomes ?? []).map((one) => `\0${one}\0`),
  };
}
