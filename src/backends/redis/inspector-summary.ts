/**
 * Counts commands for the summary. Most counts are sums over the reservations of each scope, because no index contains
 * the totals.
 */
import type { DeliverySummary } from '../../core/commands/delivery-inspector.ts';
import { DELIVERY_SAMPLE } from '../../core/limits.ts';
import { decodeLive, readOfLive } from './commands/get.ts';
import { keyOfName } from './inspector-pages.ts';
import { allot, readHolders } from './inspector-scopes.ts';
import { listOf } from './replies.ts';
import { partitionsOf } from './store-partitions.ts';
import type { Store } from './store.ts';

/** The most scopes whose reservations are read in one round trip. */
const SCOPES = 1000;

/** The key of a scope's reservations, with the counts that were read from it. */
type Reserved = {
  readonly key: string;
  readonly count: number;
  /** The number of its commands that are past their deadline. */
  readonly due: number;
  /** The earliest deadline of its commands, in epoch milliseconds. */
  readonly first: number;
};
type Sampled = { readonly deadline: number; readonly queuedAt: number | null };
type Counts = {
  readonly now: number;
  readonly tracked: number;
  readonly due: number;
  readonly reserved: readonly (Reserved & { readonly partition: number })[];
};

export async function readSummary(store: Store): Promise<DeliverySummary> {
  const counts = await Promise.all(partitionsOf(store).map((partition) => countsOf(store, partition)));
  const now = Math.max(...counts.map((one) => one.now));
  const sample = await sampleOf(
    store,
    counts.flatMap(({ reserved }) => reserved),
  );
  const since = least(sample.flatMap(({ queuedAt }) => (queuedAt === null ? [] : [queuedAt])));
  return {
    trackedCommands: sum(counts.map(({ tracked }) => tracked)),
    dueCommands: sum(counts.map(({ due }) => due)),
    sampledOldestDeadline: least(sample.map(({ deadline }) => deadline)),
    sampledOldestQueuedAgeMs: since === null ? null : Math.max(0, now - since),
    sampleSize: sample.length,
    legacyCommandStreamDepth: null,
    pendingCommandDepth: null,
  };
}

async function countsOf(store: Store, partition: number): Promise<Counts> {
  const [now = 0, ended = 0, due = 0] = listOf(await store.act(partition, 'inspector-summary', [])).map(Number);
  const reserved = await readReserved(store, partition, now);
  return {
    now,
    tracked: ended + sum(reserved.map(({ count }) => count)),
    due: due + sum(reserved.map((scope) => scope.due)),
    reserved: reserved.map((scope) => ({ ...scope, partition })),
  };
}

async function readReserved(store: Store, partition: number, now: number): Promise<readonly Reserved[]> {
  const found: Reserved[] = [];
  const scopes = store.key(partition, 'scopes');
  for (let from = '-'; ;) {
    const [page] = await store.read([['ZRANGEBYLEX', scopes, from, '+', 'LIMIT', 0, SCOPES]]);
    const names = listOf(page).map(String);
    const keys = names.map((scopeId) => store.key(partition, 'reserved', store.hash(scopeId)));
    const replies = await store.read(
      keys.flatMap((key) => [
        ['ZCARD', key],
        ['ZCOUNT', key, '-inf', now],
        ['ZRANGE', key, 0, 0, 'WITHSCORES'],
      ]),
    );
    for (const [i, key] of keys.entries()) {
      const [count, due, first] = replies.slice(3 * i);
      const deadline = listOf(first)[1];
      if (deadline !== undefined) found.push({ key, count: Number(count), due: Number(due), first: Number(deadline) });
    }
    const last = names.at(-1);
    if (names.length < SCOPES || last === undefined) return found;
    from = `(${last}`;
  }
}

/**
 * Reads a sample of commands from the scopes with the earliest deadlines. Returns the deadline of each command and, if
 * the command is queued now, the time at which it was queued.
 */
async function sampleOf(store: Store, reserved: Counts['reserved']): Promise<readonly Sampled[]> {
  const soonest = [...reserved].sort((a, b) => a.first - b.first);
  const holders = await readHolders(store, allot(soonest, DELIVERY_SAMPLE));
  const rows = await store.readAll((partition) =>
    (holders[partition] ?? []).map((name) => readOfLive(store, partition, keyOfName(name))),
  );
  return rows.flat().flatMap((row) => {
    const command = decodeLive(row);
    if (!command) return [];
    return [{ deadline: command.deadline, queuedAt: command.stage === 'queued' ? command.queuedAt : null }];
  });
}

function least(numbers: readonly number[]): number | null {
  return numbers.length === 0 ? null : numbers.reduce((a, b) => Math.min(a, b));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
