/** Reads the mailbox of a node (a Redis stream) in order, and without loss while the node lives. */
import type { Clock } from '../../core/ports.ts';
import type { Client } from './client.ts';
import { rawRows, type RawRow } from './nodes-rows.ts';
import type { RedisDeps } from './deps.ts';

/** The most entries that one read returns. An entry contains the rows of one call. */
const ENTRIES = 32;
const BLOCK_MS = 1_000;
/**
 * The longest duration of a read, in milliseconds. After that, its connection is replaced, even if it looks healthy.
 */
const TURN_MS = BLOCK_MS + 1_500;
const CONNECT_MS = 3_000;
const RETRY_MS = { first: 50, most: 1_000 } as const;

type MailboxOptions = {
  readonly deps: Pick<RedisDeps, 'connect' | 'log' | 'system'>;
  /** The key of the mailbox, which is a stream. */
  readonly key: string;
  /**
   * Called with one row at a time, in the order in which the rows were posted. If it rejects, it is called again with
   * the same row. After it has resolved, the row is not delivered again.
   */
  readonly take: (row: RawRow) => Promise<void>;
};

type Reading = {
  stopped: boolean;
  client: Client | null;
  /** The id of the last entry whose rows were all taken. */
  cursor: string;
  trimmed: string;
  /** The entry of the last taken row, and how many of its rows were taken. */
  begun: { readonly id: string; readonly taken: number };
  wake: () => void;
};

/**
 * Reads a mailbox from its beginning until the returned function is called. It uses its own connection, sends one
 * blocking read at a time, and trims taken rows. After a failure it continues after the last taken row, over a new
 * connection.
 */
export function readMailbox(options: MailboxOptions): () => void {
  const begun = { id: '', taken: 0 };
  const reading: Reading = { stopped: false, client: null, cursor: '0-0', trimmed: '0-0', begun, wake: () => {} };
  void readOn(options, reading);
  return () => {
    reading.stopped = true;
    reading.client?.disconnect();
    reading.wake();
  };
}

async function readOn(options: MailboxOptions, reading: Reading): Promise<void> {
  const { log, system } = options.deps;
  let waitMs: number = RETRY_MS.first;
  let since: number | null = null;
  const turned = (): void => {
    waitMs = RETRY_MS.first;
    if (since !== null) log.info({ mailbox: options.key, afterMs: system.now() - since }, 'a mailbox is read again');
    since = null;
  };
  while (!reading.stopped) {
    try {
      await readOver(options, reading, turned);
    } catch (error) {
      if (!reading.stopped && since === null)
        log.warn({ err: error, mailbox: options.key }, 'a mailbox cannot be read');
      since ??= system.now();
    }
    reading.client?.disconnect();
    reading.client = null;
    if (!reading.stopped) await pause(options.deps.system, reading, waitMs);
    waitMs = Math.min(RETRY_MS.most, waitMs * 2);
  }
}

/** Reads over one connection until it fails. */
async function readOver({ deps, key, take }: MailboxOptions, reading: Reading, turned: () => void): Promise<void> {
  const client = deps.connect('mailbox');
  reading.client = client;
  client.on('error', (error: unknown) => deps.log.debug({ err: error }, 'a mailbox connection failed'));
  await within(deps.system, CONNECT_MS, client.connect());
  while (!reading.stopped) {
    const rows = await within(deps.system, TURN_MS, turn(client, key, reading));
    turned();
    for (const row of rows) {
      if (reading.stopped) return;
      if (row.id === reading.begun.id && row.place < reading.begun.taken) continue;
      await take(row);
      reading.begun = { id: row.id, taken: row.place + 1 };
      if (row.last) reading.cursor = row.id;
    }
  }
}

/** Makes one round trip: trims the taken rows, and reads the next rows. */
async function turn(client: Client, key: string, reading: Reading): Promise<readonly RawRow[]> {
  const { cursor, trimmed } = reading;
  const pipeline = client.pipeline();
  if (cursor !== trimmed) pipeline.xtrim(key, 'MINID', after(cursor));
  pipeline.xread('COUNT', ENTRIES, 'BLOCK', BLOCK_MS, 'STREAMS', key, cursor);
  const replies = (await pipeline.exec()) ?? [];
  for (const [error] of replies) if (error) throw error;
  reading.trimmed = cursor;
  const streams = replies.at(-1)?.[1];
  return Array.isArray(streams) ? streams.flatMap(([, entries]: [string, unknown]) => rawRows(entries)) : [];
}

/** Returns the smallest entry id after this one. */
function after(id: string): string {
  const [ms, seq] = id.split('-');
  return `${ms}-${BigInt(seq ?? 0) + 1n}`;
}

/** Waits for `ms` milliseconds, or until `waiter.wake` is called. */
export function pause(system: Clock, waiter: { wake: () => void }, ms: number): Promise<void> {
  return new Promise((done) => {
    const cancel = system.after(ms, done);
    waiter.wake = () => {
      cancel();
      done();
    };
  });
}

async function within<T>(system: Clock, ms: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = system.after(ms, () => reject(new Error(`no answer within ${ms} ms`)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    cancel();
    promise.catch(() => {});
  }
}
