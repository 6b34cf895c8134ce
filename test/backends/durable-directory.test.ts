/** Tests what a data directory survives: ends of files, a full disk, failed syncs, the lock, and which bytes may leave. */
import { appendFileSync, existsSync, readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { batchFilesOn, type BatchFile, type OpenFile } from '../../src/backends/journal/batches.ts';
import { systemDisk } from '../../src/backends/journal/disk.ts';
import { Reserve } from '../../src/backends/journal/disk-space.ts';
import { DataDirectory } from '../../src/backends/journal/files.ts';
import type { OpenData } from '../../src/backends/journal/open.ts';
import { KEPT, RecordingTransaction, VERBS } from '../../src/backends/journal/recording.ts';
import { MemoryTransaction } from '../../src/backends/memory/commands.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import type { Position } from '../../src/core/page.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { ALICE, BOUND, admission, ending, keyFor } from '../contract/kit/bench.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { FakeClock, turns } from '../kit/clock.ts';
import { Disk, copyOf, makeFolder, openDurable, removeFolders } from './kit/durable.ts';

const PAGE = { first: 100, after: null } as const;
const ANY_MESSAGE = { afterTime: null, beforeTime: null, kinds: null };

afterAll(removeFolders);

async function admitted({ backend }: OpenData, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await backend.commands.admit(admission(id, { connectWithinMs: 60_000 }));
  await turns();
}

async function known({ backend }: OpenData, ...ids: readonly string[]): Promise<readonly boolean[]> {
  return (await backend.commands.get(ids.map((id) => keyFor(id)))).map((command) => command !== null);
}

function lastJournal(root: string): string {
  const names = readdirSync(root).filter((name) => name.startsWith('journal-'));
  return join(root, names.sort().at(-1) ?? '');
}

function full(): Error & { code: string } {
  return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
}

describe('the gate of a data directory', () => {
  it('runs what waits only after the record is written, and at once if there is nothing to write', async () => {
    const disk = new Disk();
    const data = await openDurable({ openFile: disk.open });
    disk.log.length = 0;
    data.backend.onRecord?.(() => void disk.log.push('sent'));
    void data.backend.commands.admit(admission('c1', { connectWithinMs: 1_000 }));
    data.backend.onRecord?.(() => void disk.log.push('sent after c1'));
    expect(disk.log).toEqual(['sent']);
    await turns();
    expect(disk.log).toEqual(['sent', 'written', 'sent after c1']);
  });

  it('waits for the disk too, with the policy always', async () => {
    const disk = new Disk();
    const data = await openDurable({ openFile: disk.open, sync: 'always' });
    await turns();
    disk.log.length = 0;
    disk.held = true;
    void data.backend.commands.admit(admission('c1', { connectWithinMs: 1_000 }));
    data.backend.onRecord?.(() => void disk.log.push('sent'));
    await turns();
    expect(disk.log).toEqual(['written']);
    disk.finishSyncs();
    expect(disk.log).toEqual(['written', 'synced', 'sent']);
  });

  it('syncs at most once in DATA_SYNC milliseconds, and lets nothing wait for it', async () => {
    const disk = new Disk();
    const clock = new FakeClock();
    const data = await openDurable({ openFile: disk.open, sync: 100, clock });
    disk.log.length = 0;
    for (let number = 0; number < 5; number++) {
      await admitted(data, `c${number}`);
      await clock.advance(10);
    }
    expect(disk.log.filter((entry) => entry === 'synced')).toEqual([]);
    await clock.advance(100);
    expect(disk.log.filter((entry) => entry === 'synced')).toEqual(['synced']);
  });

  it('holds nothing back any more once the directory is closed', async () => {
    const { backend } = await openDurable({ sync: 'always' });
    await backend.close();
    let sent = 0;
    void backend.commands.admit(admission('c1', { connectWithinMs: 1_000 }));
    backend.onRecord?.(() => void sent++);
    expect(sent).toBe(1);
  });

  it('writes all records of a turn in one batch', async () => {
    const disk = new Disk();
    const data = await openDurable({ openFile: disk.open });
    disk.log.length = 0;
    for (let number = 0; number < 20; number++)
      void data.backend.commands.admit(admission(`c${number}`, { connectWithinMs: 1_000 }));
    await turns();
    expect(disk.log).toEqual(['written']);
  });
});

describe('the end of a journal', () => {
  it('is cut and told after any byte of an unfinished batch', async () => {
    const data = await openDurable();
    await admitted(data, 'c1');
    const whole = readFileSync(lastJournal(data.directory.root)).length;
    await admitted(data, 'c2');
    const both = readFileSync(lastJournal(data.directory.root)).length;
    for (let length = whole; length <= both; length += 7) {
      const root = copyOf(data);
      truncateSync(lastJournal(root), length);
      const again = await openDurable({ root });
      expect([length, ...(await known(again, 'c1', 'c2'))]).toEqual([length, true, length === both]);
      expect(again.backend.durability().away?.tornBytes).toBe(length === both ? 0 : length - whole);
      await again.backend.close();
    }
  });

  it('is cut if garbage follows it', async () => {
    const data = await openDurable();
    await admitted(data, 'c1');
    const root = copyOf(data);
    appendFileSync(lastJournal(root), Buffer.alloc(100, 7));
    const again = await openDurable({ root });
    expect(again.backend.durability().away?.tornBytes).toBe(100);
    expect(await known(again, 'c1')).toEqual([true]);
  });

  it('is not cut if whole batches follow a damaged one: the start is refused and changes nothing', async () => {
    const data = await openDurable();
    await admitted(data, 'c1');
    const before = readFileSync(lastJournal(data.directory.root)).length;
    await admitted(data, 'c2');
    await admitted(data, 'c3');
    const root = copyOf(data);
    const path = lastJournal(root);
    const bytes = readFileSync(path);
    bytes[before + 40] = (bytes[before + 40] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    await expect(openDurable({ root })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/damaged/),
    });
    expect(readFileSync(path)).toEqual(bytes);
  });
});

it('a cursor of the newest commands goes on after a restart where it ended', async () => {
  const clock = new FakeClock();
  const first = await openDurable({ clock });
  for (const id of ['c1', 'c2', 'c3', 'c4', 'c5']) {
    await admitted(first, id);
    // Two are admitted in one millisecond.
    if (id !== 'c3') await clock.advance(1);
  }
  const list = async ({ backend: { inspector } }: OpenData, after: Position | null, size: number) =>
    inspector.list(ANY_COMMAND, { first: size, after, order: 'newest' });
  const { rows, next } = await list(first, null, 2);
  const again = await openDurable({ root: copyOf(first), clock });
  const rest = await list(again, next, 10);
  const ids = [...rows, ...rest.rows].map(({ row }) => row.commandId);
  expect(ids).toEqual(['c5', 'c4', 'c3', 'c2', 'c1']);
});

describe('after a loss of power, a journal', () => {
  /** Changes one bit of the file, after a number of bytes. */
  function damage(root: string, at: number): void {
    const path = lastJournal(root);
    const bytes = readFileSync(path);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  }

  it('is cut before what was not synced, also if whole batches follow', async () => {
    const data = await openDurable({ boot: 'one', sync: 'off' });
    await admitted(data, 'c1');
    const before = readFileSync(lastJournal(data.directory.root)).length;
    await admitted(data, 'c2', 'c3');
    await admitted(data, 'c4');
    const root = copyOf(data);
    damage(root, before + 40);
    await expect(openDurable({ root, boot: 'one' })).rejects.toMatchObject({ code: 'store_unavailable' });
    const again = await openDurable({ root, boot: 'two' });
    expect(await known(again, 'c1', 'c2', 'c3', 'c4')).toEqual([true, false, false, false]);
    expect(again.backend.durability().away?.lost).toBe(true);
  });

  it('is refused if what is damaged had been synced', async () => {
    const data = await openDurable({ boot: 'one', sync: 'always' });
    const synced = (): Promise<void> => new Promise((done) => data.backend.onRecord?.(done));
    await admitted(data, 'c1');
    await synced();
    const before = readFileSync(lastJournal(data.directory.root)).length;
    await admitted(data, 'c2');
    await synced();
    await admitted(data, 'c3');
    const root = copyOf(data);
    damage(root, before + 40);
    await expect(openDurable({ root, boot: 'two' })).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('is cut at its end although another one follows, if neither was synced', async () => {
    const disk = new Disk();
    const data = await openDurable({ boot: 'one', openFile: disk.open });
    await admitted(data, 'c1');
    await admitted(data, 'c2');
    disk.held = true;
    void data.backend.snapshot();
    await admitted(data, 'c3');
    const root = copyOf(data);
    const first = join(root, 'journal-00000001');
    truncateSync(first, readFileSync(first).length - 5);
    await expect(openDurable({ root, boot: 'one' })).rejects.toMatchObject({ code: 'store_unavailable' });
    const second = await openDurable({ root, boot: 'two' });
    expect(await known(second, 'c1', 'c2', 'c3')).toEqual([true, false, false]);
    await admitted(second, 'c4');
    const third = await openDurable({ root: copyOf(second), boot: 'two' });
    expect(await known(third, 'c1', 'c2', 'c4')).toEqual([true, false, true]);
  });
});

describe('after a failed sync, a start', () => {
  it.each([100, 'always'] as const)(
    'cuts what the system has dropped, and tells of it (DATA_SYNC %s)',
    async (sync) => {
      const disk = new Disk();
      const clock = new FakeClock();
      const failures: string[] = [];
      const onFailure = ({ message }: Error): void => void failures.push(message);
      const data = await openDurable({ boot: 'one', sync, clock, openFile: disk.open, onFailure });
      await admitted(data, 'c1');
      await clock.advance(200);
      const before = readFileSync(lastJournal(data.directory.root)).length;
      disk.held = true;
      await admitted(data, 'c2');
      await admitted(data, 'c3');
      await clock.advance(200);
      disk.syncFault = new Error('sync failed');
      disk.finishSyncs();
      expect(failures).toEqual(['sync failed']);
      const root = copyOf(data);
      const bytes = readFileSync(lastJournal(root));
      bytes.fill(0, before, before + 40);
      writeFileSync(lastJournal(root), bytes);
      const again = await openDurable({ root, boot: 'one', sync });
      expect(await known(again, 'c1', 'c2', 'c3')).toEqual([true, false, false]);
      expect(again.backend.durability().away?.lost).toBe(sync !== 'always');
      const third = await openDurable({ root: copyOf(again), boot: 'one', sync });
      expect(third.backend.durability().away?.lost).toBe(false);
    },
  );
});

it('a loss is told again if the start that found it ended before it had recorded what follows', async () => {
  const data = await openDurable({ boot: 'one' });
  await admitted(data, 'c1');
  const root = copyOf(data);
  let appends = 0;
  const openFile: OpenFile = (path, after) => {
    const file: BatchFile = batchFilesOn(systemDisk)(path, after);
    const append = (text: string): void => {
      if (appends++ > 0) throw new Error('killed');
      file.append(text);
    };
    return Object.assign(Object.create(file), { append });
  };
  const killed = await openDurable({ root, boot: 'two', openFile, onFailure() {} });
  const again = await openDurable({ root: copyOf(killed), boot: 'two' });
  expect(again.backend.durability().away?.lost).toBe(true);
  const [command] = await again.backend.commands.get([keyFor('c1')]);
  expect(command?.reason).toBe('store_lost');
  const third = await openDurable({ root: copyOf(again), boot: 'two' });
  expect(third.backend.durability().away?.lost).toBe(false);
});

describe('a full disk', () => {
  it('refuses what is new, records what ends, and admits again once there is room', async () => {
    const disk = new Disk();
    const clock = new FakeClock();
    const data = await openDurable({ openFile: disk.open, clock });
    const { commands } = data.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    await admitted(data, 'runs');
    await commands.dispatch(keyFor('runs'), BOUND);
    await until(() => existsSync(data.directory.reserve));
    disk.reserve = data.directory.reserve;
    disk.fault = full();
    void commands.finish(keyFor('runs'), ending());
    await turns();
    // The end was written into the room of the reserve.
    expect(existsSync(data.directory.reserve)).toBe(false);
    expect(() => commands.admit(admission('new', { connectWithinMs: 1_000 }))).toThrow(/disk/);
    expect(() => data.backend.ready()).toThrow(/disk/);
    disk.fault = null;
    await clock.advance(1_000);
    await until(() => data.backend.durability().full === false);
    await admitted(data, 'new');
    const again = await openDurable({ root: copyOf(data), clock });
    const [command] = await again.backend.commands.get([keyFor('runs')]);
    expect(command?.outcome).toBe('completed');
    expect(await known(again, 'new')).toEqual([true]);
  });

  it('gives up a reserve that is being written, too', async () => {
    const directory = new DataDirectory(makeFolder());
    const reserve = new Reserve(directory);
    const making = reserve.make();
    reserve.giveUp();
    await expect(making).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(readdirSync(directory.root)).toEqual([]);
    const again = reserve.make();
    await until(() => systemDisk.sizeOf(`${directory.reserve}.new`) === 8 * 1024 * 1024);
    expect(reserve.giveUp()).toBe(true);
    await expect(again).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(readdirSync(directory.root)).toEqual([]);
    await reserve.make();
    expect(systemDisk.sizeOf(directory.reserve)).toBe(8 * 1024 * 1024);
    expect([reserve.giveUp(), reserve.giveUp(), existsSync(directory.reserve)]).toEqual([true, false, false]);
  });

  it('ends the process if records cannot be written at all, and sends nothing that depends on them', async () => {
    const disk = new Disk();
    const failures: string[] = [];
    const data = await openDurable({ openFile: disk.open, onFailure: ({ message }) => void failures.push(message) });
    disk.fault = Object.assign(new Error('input/output error'), { code: 'EIO' });
    void data.backend.commands.admit(admission('c1', { connectWithinMs: 1_000 }));
    let sent = 0;
    data.backend.onRecord?.(() => void sent++);
    await turns();
    expect([failures, sent]).toEqual([['input/output error'], 0]);
  });

  it('ends the process after a failed sync', async () => {
    const disk = new Disk();
    const failures: string[] = [];
    const data = await openDurable({
      openFile: disk.open,
      sync: 'always',
      onFailure: ({ message }) => void failures.push(message),
    });
    await turns();
    disk.syncFault = new Error('sync failed');
    void data.backend.commands.admit(admission('c1', { connectWithinMs: 1_000 }));
    await turns();
    expect(failures).toEqual(['sync failed']);
  });
});

describe('a start', () => {
  it('is refused while another process has the directory', async () => {
    const data = await openDurable();
    await expect(openDurable({ root: data.directory.root })).rejects.toMatchObject({
      message: expect.stringMatching(/in use/),
    });
    await data.backend.close();
    const again = await openDurable({ root: data.directory.root });
    expect(again.backend.durability().away?.clean).toBe(true);
    await again.backend.close();
  });

  it('is refused if the files have another form, and changes nothing', async () => {
    const root = makeFolder();
    const path = new DataDirectory(root).journal(1);
    const file = batchFilesOn(systemDisk)(path);
    file.append('[0,"begin",{"format":99,"version":"9.9.9","boot":null,"sync":"off"}]\x1e');
    file.close();
    const bytes = readFileSync(path);
    await expect(openDurable({ root })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/has the form 99 of version 9\.9\.9/),
    });
    expect(readFileSync(path)).toEqual(bytes);
  });

  it('shows in link histories that the relay was away, and how it had ended', async () => {
    const data = await openDurable({ boot: 'one' });
    const seen = { nodeId: 'n1', clientType: 'browser', host: false, metadata: null, actions: [] } as const;
    await data.backend.connections.connect({ ...ALICE, instanceId: 'i1', ...seen });
    await turns();
    const [killed, lostPower] = [copyOf(data), copyOf(data)];
    await data.backend.close();
    const ends = [];
    for (const [root, boot] of [
      [killed, 'one'],
      [lostPower, 'two'],
      [data.directory.root, 'one'],
    ] as const) {
      const { backend } = await openDurable({ root, boot });
      const rows = (await backend.history.messages(ALICE.userId, 'links', ANY_MESSAGE, PAGE))?.rows ?? [];
      ends.push(rows.map(({ row }) => `${row.kind} ${row.error?.code ?? '-'}`));
      await backend.close();
    }
    const before = ['link_opened -', 'link_closed -'];
    expect(ends).toEqual([
      [...before, 'relay_away node_lost'],
      [...before, 'relay_away store_lost'],
      [...before, 'relay_away -'],
    ]);
  });

  it('recognizes messages of before a restart, and calls no counters of that time exact', async () => {
    const clock = new FakeClock();
    const data = await openDurable({ clock });
    const event = { ...newMessage({ ...ALICE, suffix: 'events' }), clientId: ALICE.clientId, id: 'm1' };
    await data.backend.history.ingest(event);
    await turns();
    const { backend } = await openDurable({ clock, root: copyOf(data) });
    expect(await backend.history.ingest(event)).toMatchObject({ kind: 'duplicate' });
    expect(await backend.dedup.stats(60)).toMatchObject({ seen: 1, unique: 0, exact: false, liveKeys: null });
    await clock.advance(60_000 + 10_000);
    expect(await backend.dedup.stats(60)).toMatchObject({ seen: 0, exact: true });
    await clock.advance(60_000);
    expect(await backend.dedup.stats(60)).toMatchObject({ exact: true, liveKeys: 0 });
    await backend.close();
  });

  it('after a power loss ends what had not ended as unknown, unless each record was synced', async () => {
    for (const sync of [100, 'off', 'always'] as const) {
      const data = await openDurable({ sync, boot: 'one' });
      await admitted(data, 'c1');
      for (const boot of ['one', 'two', null]) {
        const again = await openDurable({ root: copyOf(data), sync, boot });
        const [command] = await again.backend.commands.get([keyFor('c1')]);
        const lost = boot !== 'one' && sync !== 'always';
        expect([
          sync,
          boot,
          again.backend.durability().away?.lost,
          command?.outcome ?? null,
          command?.reason ?? null,
        ]).toEqual([...[sync, boot, lost], ...(lost ? ['outcome_unknown', 'store_lost'] : [null, null])]);
        await again.backend.close();
      }
    }
  });

  it('decides nothing again: with smaller bounds it drops nothing that was not dropped before', async () => {
    const data = await openDurable();
    const { commands } = data.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    const ids = ['c1', 'c2', 'c3', 'c4'];
    await admitted(data, ...ids);
    for (const id of ids) await commands.dispatch(keyFor(id), BOUND);
    for (const id of ids) await commands.finish(keyFor(id), ending());
    await turns();
    const shares = createShares({ ended_records: { guarantee: 1, total: 2 } });
    const again = await openDurable({ root: copyOf(data), memory: { shares } });
    expect(await known(again, ...ids)).toEqual([true, true, true, true]);
  });

  it('syncs the journals that it reads, because a killed process may not have', async () => {
    const data = await openDurable({ sync: 'off' });
    await admitted(data, 'c1');
    const disk = new Disk();
    await openDurable({ root: copyOf(data), openFile: disk.open });
    expect(disk.syncedNow).toEqual(['journal-00000001', 'journal-00000002']);
  });

  it('has what was recorded while a snapshot began', async () => {
    const data = await openDurable();
    await admitted(data, 'c1');
    const written = data.backend.snapshot();
    await admitted(data, 'c2');
    await written;
    expect(await known(await openDurable({ root: copyOf(data) }), 'c1', 'c2')).toEqual([true, true]);
  });

  it('reads no snapshot that is newer than the journal on the disk', async () => {
    const disk = new Disk();
    const data = await openDurable({ openFile: disk.open });
    await admitted(data, 'c1');
    disk.held = true;
    const written = data.backend.snapshot();
    await admitted(data, 'c2');
    const snapshots = (): string[] => readdirSync(data.directory.root).filter((name) => name.startsWith('snapshot'));
    while (disk.finishSyncs('snapshot-00000002.new') === 0) await turns();
    await turns();
    expect(snapshots()).toEqual(['snapshot-00000002.new']);
    let isWritten = false;
    void written.then(() => (isWritten = true));
    for (; !isWritten; await turns()) disk.finishSyncs();
    expect(snapshots()).toEqual(['snapshot-00000002']);
    expect(await known(await openDurable({ root: copyOf(data) }), 'c1', 'c2')).toEqual([true, true]);
  });

  it('reads a snapshot and nothing before it, and keeps few files', async () => {
    const data = await openDurable();
    await admitted(data, 'c1');
    await data.backend.snapshot();
    await admitted(data, 'c2');
    const root = copyOf(data);
    expect(readdirSync(root).filter((name) => /journal|snapshot/.test(name))).toEqual([
      'journal-00000002',
      'snapshot-00000002',
    ]);
    expect(await known(await openDurable({ root }), 'c1', 'c2')).toEqual([true, true]);
  });
});

describe('what is recorded', () => {
  it('is each verb of a transaction that says so', () => {
    const recorded = Object.entries(VERBS).filter(([, kept]) => kept === 'recorded');
    const overridden = recorded.filter(([verb]) => Object.hasOwn(RecordingTransaction.prototype, verb));
    expect(overridden).toEqual(recorded);
    const verbs = Object.getOwnPropertyNames(MemoryTransaction.prototype).filter(
      (name) => !['constructor', 'begin'].includes(name),
    );
    expect(verbs.filter((verb) => !Object.hasOwn(VERBS, verb))).toEqual([]);
  });

  it('covers every port of a backend', async () => {
    const { backend } = await openDurable();
    const ports = Object.keys(backend).filter((name) => typeof backend[name as keyof typeof backend] === 'object');
    expect(Object.keys(KEPT).sort()).toEqual(ports.filter((name) => name !== 'capabilities').sort());
  });
});

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await turns();
}
