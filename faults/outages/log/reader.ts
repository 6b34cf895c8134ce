/** Reads the relays' state as an administrator, and logs it for the judge. */
import { isRecord } from '../../../src/core/json.ts';
import { ADMIN_TOKEN, type Relay } from '../processes/relays.ts';
import { canaryOf, fillerOf, type Key } from './events.ts';
import type { FaultLog } from './log.ts';
import { readScopes } from './scopes.ts';

type Row = Readonly<Record<string, unknown>>;

/** The number of rows of one page, which is the maximum that the relay allows. */
const PAGE = 1000;
/** The number of history rows that are read at once. An answer contains at most 16 MiB of large payloads. */
const LARGE_PAGE = 100;
/** The timeout for a page, in milliseconds. */
const READ_MS = 10_000;
/**
 * Matches the ids of history rows with the end of a command: an end that the client reported, or one that the relay
 * wrote.
 */
const END = /^(?<command>[^:]+):(?:(?:result|error|cancelled):.+|end)$/;
const LATE = 'late_result';

/** Reads the relays' state as their administrator. */
export type Reader = {
  /** Reads and logs the records of all commands. */
  records(): Promise<void>;
  /**
   * Reads each client's history. Logs how often each command ended, and every canary of another user in it, which is a
   * leak.
   */
  history(clients: readonly Pick<Key, 'user' | 'client'>[]): Promise<void>;
  /** Reads and logs reservations, and the use of limited resources. */
  bounds(): Promise<void>;
  /**
   * Reads and logs, under load, the live commands and the reservations of each scope that did not change during the
   * reading.
   */
  census(): Promise<void>;
  /** Returns the number of remaining waiters on all nodes. */
  waiting(): Promise<number>;
  /** Returns what a relay reports to hold; null if it reports nothing. */
  node(name: string): Promise<{ readonly waiters: number; readonly unfinished: number } | null>;
};

export type ReaderOptions = {
  readonly log: FaultLog;
  /** Returns a relay that answers. */
  readonly relay: () => Pick<Relay, 'url'>;
  /** The number of characters of payloads besides their canary. */
  readonly bytes: number;
};

export function createReader({ log, relay, bytes }: ReaderOptions): Reader {
  const told = new Set<string>();
  const ask = async (path: string): Promise<Row> => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, connection: 'close' };
    const answer = await fetch(`${relay().url}${path}`, { headers, signal: AbortSignal.timeout(READ_MS) });
    // A client that never received a command has no stream.
    if (answer.status === 404 && path.startsWith('/history/')) return { items: [], next_cursor: null };
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  };
  const each = async (path: string, take: (row: Row) => void): Promise<void> => {
    let cursor: unknown = null;
    do {
      const more = typeof cursor === 'string' ? `&cursor=${encodeURIComponent(cursor)}` : '';
      const page = await ask(`${path}${path.includes('?') ? '&' : '?'}limit=${bytes > 0 ? LARGE_PAGE : PAGE}${more}`);
      for (const row of rowsOf(page['items'])) take(row);
      for (const reason of reasonsIn(page['completeness'])) {
        const gap = { list: path.split('?')[0] ?? path, reason };
        const name = JSON.stringify(gap);
        if (!told.has(name)) log.write({ event: 'gap', ...gap });
        told.add(name);
      }
      cursor = page['next_cursor'];
    } while (typeof cursor === 'string');
  };
  return {
    records: () => each('/delivery/commands', (row) => logRecord(log, row)),
    async history(clients) {
      for (const who of clients) {
        const stream = encodeURIComponent(`${who.user}/clients/${who.client}`);
        const count = countEnds(log, who);
        await each(`/history/messages?stream=${stream}&include_payload=true`, (row) => {
          count.take(row);
          if (bytes > 0) logPayload(log, { ...who, row, bytes });
        });
        count.tell();
      }
    },
    async bounds() {
      let scopes = 0;
      await each('/delivery/tenants', (row) => {
        scopes++;
        logReservation(log, row);
      });
      log.write({ event: 'reservations-read', scopes });
      const summary = await ask('/delivery/summary');
      log.write({ event: 'cap', name: 'sample of the summary', value: Number(summary['sample_size']), max: 1000 });
    },
    async census() {
      const since = Number(process.hrtime.bigint());
      const before = await readScopes((take) => each('/delivery/commands', take));
      for (const key of [...before.values()].flatMap(({ live }) => live)) log.write({ event: 'live', ...key, since });
      const reserved = new Map<string, number>();
      await each('/delivery/tenants', (row) => reserved.set(String(row['scope_id']), Number(row['reserved_commands'])));
      const after = await readScopes((take) => each('/delivery/commands', take));
      for (const [scope, { live, text }] of before) {
        if (text !== after.get(scope)?.text) continue;
        log.write({ event: 'count', scope, live: live.length, reserved: reserved.get(scope) ?? 0 });
      }
    },
    waiting: async () => Number((await ask('/rpc/pending/count'))['count']),
    async node(name) {
      let found: Row | null = null;
      await each('/delivery/nodes', (row) => {
        if (row['node_id'] === name) found = row;
      });
      return (
        found && { waiters: Number(found['connection_waiters']), unfinished: Number(found['unfinished_commands']) }
      );
    },
  };
}

function rowsOf(items: unknown): readonly Row[] {
  if (!Array.isArray(items)) throw new Error('a page without items');
  return items;
}

/** Returns the reasons why something may be missing in an answer. */
function reasonsIn(completeness: unknown): readonly string[] {
  const sources: unknown = isRecord(completeness) ? completeness['sources'] : null;
  if (!Array.isArray(sources)) return [];
  return sources.flatMap((source: unknown) => (isRecord(source) ? (text(source['reason']) ?? []) : []));
}

export function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function logRecord(log: FaultLog, row: Row): void {
  log.write({
    event: 'record',
    user: String(row['user_id']),
    client: String(row['client_id']),
    command: String(row['command_id']),
    scope: String(row['scope_id']),
    stage: String(row['stage']),
    outcome: text(row['outcome']),
    execution: String(row['execution']),
    dispatched: row['dispatched_at'] !== null,
    bound: text(row['bound_instance_id']),
    late: Number(row['late_results']),
    admittedAt: Date.parse(String(row['admitted_at'])),
  });
}

function logReservation(log: FaultLog, row: Row): void {
  const scope = String(row['scope_id']);
  const reserved = Number(row['reserved_commands']);
  log.write({ event: 'reservation', scope, reserved });
  log.write({ event: 'cap', name: `reservations of ${scope}`, value: reserved, max: Number(row['limit']) });
}

type Shown = Pick<Key, 'user' | 'client'> & { readonly row: Row; readonly bytes: number };

function logPayload(log: FaultLog, { user, client, row, bytes }: Shown): void {
  const command = text(row['command_id']);
  const shown = text(row['payload_state']);
  if (command === null || shown === 'none') return;
  const key = { user, client, command };
  const filler = JSON.stringify(row['payload'] ?? null).match(/"filler":"([^"]*)"/)?.[1];
  const missing = shown === 'unavailable' && row['payload'] === null;
  const state = missing ? 'unavailable' : filler === fillerOf(key, bytes) ? 'whole' : 'wrong';
  log.write({ event: 'payload', ...key, kind: String(row['kind']), state });
}

/**
 * Counts the ends of each command, and logs each canary of another user. Logs the first canary of any user too, so that
 * the log shows that history was read.
 */
function countEnds(log: FaultLog, { user, client }: Pick<Key, 'user' | 'client'>) {
  const ends = new Map<string, number>();
  const own = canaryOf({ user, command: '' });
  let seen: string | null = null;
  return {
    take(row: Row): void {
      const canary = JSON.stringify(row['payload'] ?? null).match(/canary\/[^"]*/)?.[0];
      if (canary !== undefined && !canary.startsWith(own)) log.write({ event: 'seen', user, on: 'history', canary });
      seen ??= canary ?? null;
      const command = row['kind'] === LATE ? undefined : String(row['message_id']).match(END)?.groups?.['command'];
      if (command !== undefined) ends.set(command, (ends.get(command) ?? 0) + 1);
    },
    tell(): void {
      if (seen !== null) log.write({ event: 'seen', user, on: 'history', canary: seen });
      for (const [command, rows] of ends) log.write({ event: 'ends', user, client, command, rows });
    },
  };
}
