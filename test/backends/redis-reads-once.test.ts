/** Tests that one document reads each client's contexts and windows over Redis once, and stops when it is given up. */
import { expect, it } from 'vitest';
import { createRedisConnections } from '../../src/backends/redis/connections.ts';
import { createRedisContexts } from '../../src/backends/redis/contexts.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import { toJson } from '../../src/core/json.ts';
import { READING_BYTES } from '../../src/core/limits.ts';
import { createActions } from '../../src/core/connections/action-sample.ts';
import { DocumentReading } from '../../src/core/document-reading.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { ANY_CONTEXT, ANY_WINDOW, browserWindow, context, report, snapshot } from '../contract/kit/contexts-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { admin, advertisement } from '../kit/core.ts';
import { testRooms } from '../kit/rooms.ts';

const CLIENTS = ['a', 'b', 'c'];
const WINDOWS = 20;
const CONTEXTS = 100;
const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `w${i}`);
const windows = ids(WINDOWS);

async function filled(bench: RedisBench, metadata: string | null = null): Promise<void> {
  for (const clientId of CLIENTS) {
    const { connection } = await bench.backend.connections.connect(hello('ann', clientId));
    const contexts = Array.from({ length: CONTEXTS }, (_, i) =>
      context(`x${i}`, { windowId: `w${i % WINDOWS}`, metadata: metadata === null ? null : toJson(metadata) }),
    );
    const shown = windows.map((id) => browserWindow(id));
    await bench.backend.contexts.report(
      { userId: 'ann', clientId },
      connection.epoch,
      report(snapshot(...contexts), snapshot(...shown)),
    );
  }
}

/** Returns the contexts of the bench, and the numbers of rows of contexts and of parts of indexes that were read. */
function counted({ parts }: RedisBench) {
  const read = { rows: 0, looks: 0 };
  const store: Store = Object.create(parts.store, {
    read: {
      value: (commands: Parameters<Store['read']>[0]) => {
        for (const [name, key, ...fields] of commands)
          if (name === 'HMGET' && /:ctx:/.test(String(key))) read.rows += fields.length;
        return parts.store.read(commands);
      },
    },
    act: {
      value: (...given: Parameters<Store['act']>) => {
        if (given[1] === 'connections-sweep') read.looks += (given[2].length - 1) / 5;
        return parts.store.act(...given);
      },
    },
  });
  return { read, contexts: createRedisContexts({ ...parts, store }) };
}

const everyWindow = CLIENTS.flatMap((clientId) =>
  windows.map((windowId) => ({ ...ANY_CONTEXT, userId: 'ann', clientId, windowId })),
);
const ALL = CLIENTS.length * CONTEXTS;

it('the contexts of all windows of a client are read once, and once for all fields of a document', async () => {
  const bench = await redisBench();
  await filled(bench);
  const { read, contexts } = counted(bench);
  const reading = new DocumentReading();
  const first = await contexts.lists(everyWindow, 1, reading);
  expect(first.map(({ rows, next }) => [rows.length, next !== null])).toEqual(everyWindow.map(() => [1, true]));
  expect(read).toEqual({ rows: ALL, looks: CLIENTS.length });
  // Another alias, another size and the next page of the same document.
  const all = await contexts.lists(everyWindow, 50, reading);
  expect(all.map(({ rows }) => rows.length)).toEqual(everyWindow.map(() => CONTEXTS / WINDOWS));
  const [filter = ANY_CONTEXT] = everyWindow;
  const rest = await contexts.list(filter, { first: 50, after: first[0]?.next ?? null }, reading);
  expect(rest.rows).toEqual(all[0]?.rows.slice(1));
  expect(read).toEqual({ rows: ALL, looks: CLIENTS.length });
  reading.forget();
  await contexts.lists(everyWindow, 1, reading);
  expect(read).toEqual({ rows: 2 * ALL, looks: 2 * CLIENTS.length });
  await bench.close();
});

it('counts, lists and windows by id of one document read the rows of a user once', async () => {
  const bench = await redisBench();
  await filled(bench);
  const { read, contexts } = counted(bench);
  const reading = new DocumentReading();
  const own = { ...ANY_CONTEXT, userId: 'ann' };
  const counts = windows.map(async (windowId) => (await contexts.count({ ...own, windowId }, reading)).count);
  expect(await Promise.all(counts)).toEqual(windows.map(() => ALL / WINDOWS));
  expect(await contexts.count({ ...own, ownership: 'worker' }, reading)).toEqual({ count: 0, complete: true });
  expect((await contexts.list({ ...own, statuses: ['active'] }, { first: 7, after: null }, reading)).rows).toHaveLength(
    7,
  );
  expect(read).toEqual({ rows: ALL, looks: 1 });
  // Without a filter of rows, the index is counted and no row is read.
  expect(await contexts.count(own, reading)).toEqual({ count: ALL, complete: true });
  expect(read).toEqual({ rows: ALL, looks: 2 });
  for (const windowId of windows) expect(await contexts.windowsNamed('ann', windowId, reading)).toHaveLength(2);
  expect(read.looks).toBe(3);
  expect(
    (await contexts.windows({ ...ANY_WINDOW, userId: 'ann', status: 'open' }, { first: 9, after: null }, reading)).rows,
  ).toHaveLength(9);
  await bench.close();
});

it('rows that are too large to be remembered are read once for each field, not once for each window', async () => {
  const bench = await redisBench();
  await filled(bench, 'x'.repeat(READING_BYTES / CONTEXTS / 250));
  const { read, contexts } = counted(bench);
  const full = new DocumentReading();
  await full.once('full', async () => ({ value: null, bytes: READING_BYTES }));
  await contexts.lists(everyWindow, 1, full);
  expect(read.rows).toBe(ALL);
  await contexts.lists(everyWindow, 2, full);
  expect(read.rows).toBe(2 * ALL);
  await bench.close();
});

it('nothing more is read once the answer was given up', async () => {
  const bench = await redisBench();
  await filled(bench);
  const { read, contexts } = counted(bench);
  const gone = new AbortController();
  const reading = new DocumentReading(gone.signal);
  const pending = contexts.lists(everyWindow, 1, reading);
  gone.abort();
  await expect(pending).rejects.toMatchObject({ code: 'store_unavailable' });
  // The part of the index was requested already; the rows were not.
  expect(read).toEqual({ rows: 0, looks: CLIENTS.length });
  await expect(contexts.count({ ...ANY_CONTEXT, userId: 'ann' }, reading)).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  expect(read.looks).toBe(CLIENTS.length);
  await bench.close();
});

it('the samples of actions of one document read the connections once', async () => {
  const bench = await redisBench();
  for (const clientId of CLIENTS)
    await bench.backend.connections.connect(hello('ann', clientId, { actions: [advertisement(`of-${clientId}`)] }));
  let gets = 0;
  const store: Store = Object.create(bench.parts.store, {
    act: {
      value: (...given: Parameters<Store['act']>) => {
        if (given[1] === 'connections-get') gets++;
        return bench.parts.store.act(...given);
      },
    },
  });
  const connections = createRedisConnections({ ...bench.parts, store });
  const actions = createActions({ ...testRooms().deps, backend: { ...bench.backend, connections } });
  const reading = new DocumentReading();
  for (const name of ['of-a', 'of-b', 'none'])
    expect((await actions.sample(admin, name, reading)).items).toHaveLength(name === 'none' ? 0 : 1);
  expect(gets).toBe(1);
  await bench.close();
});
