/** Tests what may be added to a data directory: nothing while its disk is full, and of each user only a share. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { systemDisk } from '../../src/backends/journal/disk.ts';
import type { FactLog } from '../../src/backends/journal/log.ts';
import type { OpenData } from '../../src/backends/journal/open.ts';
import { KEPT } from '../../src/backends/journal/recording.ts';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { Snapshots } from '../../src/backends/journal/snapshot.ts';
import { createMemoryState } from '../../src/backends/memory/backend.ts';
import type { ConnectRequest } from '../../src/core/connections/connection-store.ts';
import type { ActionAdvertisement } from '../../src/core/connections/connection.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { toJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import type { NewGrant, NewSession, NewSite } from '../../src/core/sites/site-stores.ts';
import type { NewRevocation } from '../../src/core/revocations/revocation.ts';
import { createCrypto, systemLoop } from '../../src/platform/system.ts';
import { ALICE, BOUND, admission, ending, keyFor } from '../contract/kit/bench.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { FakeClock, turns } from '../kit/clock.ts';
import { Disk, copyOf, openDurable, removeFolders } from './kit/durable.ts';

afterAll(removeFolders);

const KIB = 1024;
const MIB = 1024 * KIB;

function hello(clientId: string, over: Partial<ConnectRequest> = {}): ConnectRequest {
  const seen = { nodeId: 'n1', clientType: 'browser', host: true, metadata: null, actions: [] } as const;
  return { userId: 'alice', clientId, instanceId: 'i1', ...seen, ...over };
}

/** A list of one action of about this length. Each call returns another object. */
function advertised(length: number, fill = 'x'): readonly ActionAdvertisement[] {
  const rest = { summary: null, version: null, checksArguments: null, schema: null, metadata: null };
  return [{ ...rest, name: 'open', description: fill.repeat(length) }];
}

function noSpace(): Error & { code: string } {
  return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await turns();
}

/** Opens a directory on a disk that the test can fill, with a reserve. */
async function openOnDisk(over: Parameters<typeof openDurable>[0] = {}) {
  const disk = new Disk();
  const clock = new FakeClock();
  const failures: string[] = [];
  const onFailure = ({ message }: Error): void => void failures.push(message);
  let free = Infinity;
  const data = await openDurable({ openFile: disk.open, clock, onFailure, freeBytes: () => free, ...over });
  await until(() => existsSync(data.directory.reserve));
  /** The disk is full from now on: only the room of the reserve is left. */
  const fill = async (): Promise<void> => {
    disk.reserve = data.directory.reserve;
    disk.fault = noSpace();
    free = 0;
    // The next record finds out; it is one that needs no room.
    void data.backend.history.retain(newMessage({ ...ALICE, suffix: 'filler' }));
    await turns();
  };
  /** The disk has room again, which the relay notices after a second. */
  const clear = async (): Promise<void> => {
    disk.fault = null;
    free = Infinity;
    await clock.advance(1_000);
    await until(() => !data.backend.durability().full);
  };
  return { disk, clock, data, failures, fill, clear };
}

function bytesIn({ directory }: OpenData): number {
  const names = readdirSync(directory.root).filter((name) => /^(journal|snapshot)/.test(name));
  return names.reduce((sum, name) => sum + systemDisk.sizeOf(join(directory.root, name)), 0);
}

/** Returns what an act answers or throws. */
function codeOf(act: () => unknown): string {
  try {
    act();
    return 'done';
  } catch (error) {
    return error instanceof CallboardError ? error.code : String(error);
  }
}

describe('a full disk', () => {
  const grant: NewGrant = {
    grantId: 'g2',
    parentId: 'g1',
    share: true,
    actions: null,
    events: null,
    tokenHash: 'h2',
    ttlMs: null,
  };
  const session: NewSession = {
    ...{ sessionId: 's2', userId: 'alice', siteId: 'shop', ttlMs: 60_000 },
    grant: { ...grant, grantId: 'g3', parentId: null, tokenHash: 'h3' },
  };
  const site: NewSite = {
    ...{ ...ALICE, siteId: 'shop', title: 'Shop', mode: 'cooperative', eventNames: [], actions: [] },
    capabilityProfile: { actionInvocation: true, sharing: true },
  };

  const revocation: NewRevocation = {
    ...{ userId: 'alice', clientId: null, tokenId: null, issuedBefore: null },
    ...{ revocationId: 'r1', reason: 'lost', who: 'admin', at: 1, expiresAt: 2 },
  };

  /** One call of each method that adds to what is kept. */
  function growing({ backend }: OpenData): Readonly<Record<string, () => unknown>> {
    const { commands, connections, devices, history, revocations, sites, sessions, tickets } = backend;
    const message = { ...newMessage({ ...ALICE, suffix: 'events' }), clientId: 'tab', id: 'm1' };
    return {
      'commands.admit': () => commands.admit(admission('new', { connectWithinMs: 60_000 })),
      'connections.connect': () => connections.connect(hello('other')),
      'connections.advertise': () => connections.advertise(ALICE, 1, advertised(10)),
      'history.ingest': () => history.ingest(message),
      'sites.put': () => sites.put({ ...site, siteId: 'other' }),
      'sessions.open': () => sessions.open(session),
      'sessions.addGrant': () => sessions.addGrant('s1', grant),
      'devices.decide': () => devices.decide('h1', { ...ALICE, proposed: ['hall'], at: 1, by: 'admin' }),
      'revocations.add': () => revocations.add(revocation),
      'tickets.take': () => tickets.take('t1', 60_000),
    };
  }

  it('refuses every act that adds to what is kept, and none that ends or removes something', async () => {
    const { data, failures, fill } = await openOnDisk();
    const { connections, sites, sessions, history } = data.backend;
    void connections.connect(hello('tab'));
    void sites.put(site);
    void sessions.open({ ...session, sessionId: 's1', grant: { ...session.grant, grantId: 'g1', tokenHash: 'h1' } });
    await turns();
    await fill();
    const grows = Object.entries(KEPT).flatMap(([port, methods]) =>
      Object.entries(methods).flatMap(([method, kept]) => (kept === 'grows' ? [`${port}.${method}`] : [])),
    );
    const calls = growing(data);
    expect(Object.keys(calls).sort()).toEqual(grows.sort());
    expect(Object.fromEntries(grows.map((name) => [name, codeOf(calls[name] ?? (() => {}))]))).toEqual(
      Object.fromEntries(grows.map((name) => [name, 'store_full'])),
    );
    expect(() => data.backend.ready()).toThrow(/disk/);
    const ends = [
      () => history.retain(newMessage({ ...ALICE, suffix: 'events' })),
      () => sessions.revokeGrant('s1', 'g1'),
      () => sessions.close('s1'),
      () => sites.remove(site),
      () => connections.disconnect(ALICE, 1, 'lost'),
    ];
    expect(ends.map(codeOf)).toEqual(ends.map(() => 'done'));
    await turns();
    expect(failures).toEqual([]);
    const again = await openDurable({ root: copyOf(data) });
    expect(await again.backend.sites.get([site])).toEqual([null]);
    expect(await again.backend.sessions.get(['s1'])).toMatchObject([{ closedAt: expect.any(Number) }]);
  });

  it('answers a call whose id is known, and a preview says what is refused', async () => {
    const { data, fill } = await openOnDisk();
    const { commands } = data.backend;
    await commands.admit(admission('c1', { connectWithinMs: 60_000 }));
    await turns();
    const preview = async (id: string) => (await commands.preview(admission(id, { connectWithinMs: 60_000 }))).answer;
    expect(await preview('new')).toEqual({ kind: 'admitted' });
    await fill();
    expect(await commands.admit(admission('c1', { connectWithinMs: 60_000 }))).toMatchObject({ kind: 'attached' });
    expect(await preview('c1')).toMatchObject({ kind: 'attached' });
    expect(await preview('new')).toEqual({ kind: 'refused', code: 'store_full', share: null });
  });

  it('records no act that changed nothing', async () => {
    const { data, disk } = await openOnDisk();
    const { sites, sessions, connections } = data.backend;
    void sites.put(site);
    void sessions.open({ ...session, sessionId: 's1' });
    void connections.connect(hello('tab'));
    void sessions.revokeGrant('s1', 'g3');
    void sessions.close('s1');
    await turns();
    disk.log.length = 0;
    void sessions.revokeGrant('s1', 'g3');
    void sessions.close('s1');
    void connections.advertise(ALICE, 1, []);
    await turns();
    expect(disk.log).toEqual([]);
  });

  it('records ends without their results, which are answered, and recorded once there is room', async () => {
    const { clock, data, failures, fill, clear } = await openOnDisk();
    const { commands } = data.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    const ids = Array.from({ length: 30 }, (_, number) => `c${number}`);
    for (const id of ids) {
      await commands.admit(admission(id));
      await commands.dispatch(keyFor(id), BOUND);
    }
    await turns();
    await fill();
    const before = bytesIn(data);
    const large = toJson('r'.repeat(MIB));
    for (const id of ids) await commands.finish(keyFor(id), ending({ payload: large }));
    await turns();
    // All results are more than three times what the reserve has.
    expect(bytesIn(data) - before).toBeLessThan(64 * KIB);
    expect(failures).toEqual([]);
    expect(await commands.result(keyFor('c7'))).toBe(large);
    const killed = await openDurable({ root: copyOf(data), clock });
    const known = await killed.backend.commands.get(ids.map((id) => keyFor(id)));
    expect(known.map((command) => command?.outcome)).toEqual(ids.map(() => 'completed'));
    expect(known[7]?.resultExpired).toBe(true);
    expect(await killed.backend.commands.result(keyFor('c7'))).toBeNull();
    await clear();
    await clock.advance(1_000);
    await until(() => data.backend.durability().snapshotAt !== null);
    const later = await openDurable({ root: copyOf(data), clock });
    expect(await later.backend.commands.result(keyFor('c7'))).toBe(large);
  });

  it('makes no rows of progress, which is still passed on', async () => {
    const { data, clock, fill } = await openOnDisk();
    const { commands, history } = data.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    await commands.admit(admission('c1'));
    await commands.dispatch(keyFor('c1'), BOUND);
    await turns();
    await fill();
    const kept = { payload: toJson({ step: 1 }), spill: null };
    const report = { instanceId: 'i1', kind: 'progress', payload: kept.payload, kept } as const;
    expect(await commands.report(keyFor('c1'), report)).toMatchObject({ kind: 'recorded' });
    await clock.advance(5_000);
    await commands.report(keyFor('c1'), report);
    const { rows } = await history.ofCommand('alice', 'c1', { first: 100, after: null });
    expect(rows.map(({ row }) => row.kind)).toEqual(['command']);
  });

  it('lets everything wait if not even the reserve has room, and ends nothing', async () => {
    const { disk, clock, data, failures, fill, clear } = await openOnDisk();
    const { commands } = data.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    await commands.admit(admission('c1'));
    await commands.dispatch(keyFor('c1'), BOUND);
    await turns();
    await fill();
    disk.reserve = null;
    void commands.finish(keyFor('c1'), ending());
    let sent = 0;
    data.backend.onRecord?.(() => void sent++);
    await clock.advance(5_000);
    data.backend.onRecord?.(() => void sent++);
    await turns();
    expect([failures, sent]).toEqual([[], 0]);
    await clear();
    expect([failures, sent]).toEqual([[], 2]);
    const again = await openDurable({ root: copyOf(data), clock });
    expect(await again.backend.commands.get([keyFor('c1')])).toMatchObject([{ outcome: 'completed' }]);
  });

  it('gives up a snapshot that is being written, whose room ends need', async () => {
    const { data, fill } = await openOnDisk();
    void data.backend.connections.connect(hello('tab'));
    await turns();
    const written = data.backend.snapshot();
    await fill();
    await written;
    expect(readdirSync(data.directory.root).filter((name) => name.includes('snapshot'))).toEqual([]);
  });

  it('is left by a snapshot that is shorter than the journals before it', async () => {
    let free = 100 * MIB;
    const { data, clock } = await openOnDisk({ freeBytes: () => free });
    const { connections } = data.backend;
    for (const fill of 'abcdefgh') await connections.connect(hello('tab', { actions: advertised(200 * KIB, fill) }));
    free = 7 * MIB;
    await connections.connect(hello('tab', { actions: advertised(300 * KIB) }));
    await turns();
    const before = bytesIn(data);
    expect(data.backend.durability().full).toBe(true);
    await clock.advance(1_000);
    await until(() => data.backend.durability().snapshotAt !== null);
    expect(bytesIn(data)).toBeLessThan(before / 3);
    free += before;
    await clock.advance(1_000);
    await until(() => !data.backend.durability().full);
  });

  it('that has room again gets the snapshot at once that failed for lack of room', async () => {
    const clock = new FakeClock();
    const room = Object.assign(new RecordRoom({ dueCost: 1 }), { beginSnapshot() {} });
    let tries = 0;
    const log: FactLog = {
      full: false,
      crowded: false,
      beginSnapshot() {
        tries++;
        throw noSpace();
      },
    };
    const { tables } = createMemoryState({
      clock,
      log: silentLog,
      sha256: createCrypto('test').sha256,
      markSecret: 'x',
    });
    const logger = silentLog;
    const snapshots = new Snapshots({ log, room, tables, clock, loop: systemLoop, logger, tickets: new Map() });
    room.written(100);
    await clock.advance(1_000);
    expect(tries).toBe(1);
    for (const full of [true, false]) {
      Object.assign(log, { full });
      await clock.advance(1_000);
    }
    expect(tries).toBe(2);
    // Without a change of the disk the next one follows after a minute.
    await clock.advance(58_000);
    expect(tries).toBe(2);
    snapshots.stop();
  });

  it('is noticed before the reserve is needed', async () => {
    let free = 100 * MIB;
    const { data, clock, failures } = await openOnDisk({ freeBytes: () => free });
    free = 4 * MIB;
    await data.backend.connections.connect(hello('tab', { actions: advertised(400 * KIB) }));
    await turns();
    expect(codeOf(() => data.backend.connections.connect(hello('other')))).toBe('store_full');
    expect(existsSync(data.directory.reserve)).toBe(true);
    free = 100 * MIB;
    await clock.advance(1_000);
    await until(() => !data.backend.durability().full);
    expect(codeOf(() => data.backend.connections.connect(hello('other')))).toBe('done');
    expect(failures).toEqual([]);
  });
});

describe('what a user adds to a data directory', () => {
  it('has a list of actions once, however often its client connects or advertises it again', async () => {
    const data = await openDurable();
    const { connections } = data.backend;
    const actions = (): readonly ActionAdvertisement[] => advertised(200 * KIB);
    const { connection } = await connections.connect(hello('tab', { actions: actions() }));
    await turns();
    const before = bytesIn(data);
    let { epoch } = connection;
    for (let round = 0; round < 50; round++) {
      await connections.advertise(ALICE, epoch, actions());
      await connections.disconnect(ALICE, epoch, 'lost');
      ({ epoch } = (await connections.connect(hello('tab', { actions: actions() }))).connection);
      await turns();
    }
    expect(bytesIn(data) - before).toBeLessThan(100 * KIB);
    for (const written of [false, true]) {
      if (written) await data.backend.snapshot();
      const again = await openDurable({ root: copyOf(data) });
      expect(await again.backend.connections.get([ALICE])).toMatchObject([{ actions: actions() }]);
    }
  });

  it('is a share: one user cannot use up the directory, and others still connect', async () => {
    const journalCost = 256 * KIB;
    const disk = new Disk();
    const data = await openDurable({ journalCost, openFile: disk.open });
    // No snapshot is completed meanwhile.
    disk.held = true;
    const { connections } = data.backend;
    const connect = (userId: string, length: number, fill: string): string =>
      codeOf(() => connections.connect(hello('tab', { userId, actions: advertised(length, fill) })));
    const codes: string[] = [];
    for (let round = 0; round < 100; round++) {
      codes.push(connect('mallory', 20 * KIB, String.fromCharCode(33 + round)));
      await turns();
    }
    expect(codes[0]).toBe('done');
    expect(codes.at(-1)).toBe('share_exceeded');
    expect(bytesIn(data)).toBeLessThan(4 * journalCost);
    expect(['bob', 'carol', 'dave'].map((user) => connect(user, 20 * KIB, 'y'))).toEqual(['done', 'done', 'done']);
    // Ends are recorded all the same.
    await connections.disconnect(
      { userId: 'mallory', clientId: 'tab' },
      codes.filter((code) => code === 'done').length,
      'lost',
    );
    disk.held = false;
    disk.finishSyncs();
    await data.backend.snapshot();
    expect(connect('mallory', 20 * KIB, '.')).toBe('done');
  });

  it('counts bytes, also of texts that take three for each character', async () => {
    const journalCost = 256 * KIB;
    const disk = new Disk();
    const data = await openDurable({ journalCost, openFile: disk.open });
    disk.held = true;
    const codes: string[] = [];
    for (let round = 0; round < 100; round++) {
      const actions = advertised(10 * KIB, String.fromCharCode(0x4e00 + round));
      codes.push(codeOf(() => data.backend.connections.connect(hello('tab', { userId: 'mallory', actions }))));
      await turns();
    }
    expect(codes).toContain('share_exceeded');
    expect(bytesIn(data)).toBeLessThan(4 * journalCost);
  });
});

describe('a snapshot', () => {
  /** Writes rows of events until a snapshot begins. Returns how many bytes the journal before it has. */
  async function untilSnapshot({ data, clock }: { readonly data: OpenData; readonly clock: FakeClock }, text: string) {
    const { history } = data.backend;
    const journals = (): string[] => readdirSync(data.directory.root).filter((name) => name.startsWith('journal'));
    const [current = ''] = journals().slice(-1);
    let bytes = 0;
    for (let rows = 0; journals().at(-1) === current; await clock.advance(1_000)) {
      for (let number = 0; number < 20; number++)
        void history.retain({ ...newMessage({ ...ALICE, suffix: 'events' }), id: `m${rows++}`, payload: toJson(text) });
      await turns();
      bytes = systemDisk.sizeOf(join(data.directory.root, current));
    }
    await data.backend.snapshot();
    return bytes;
  }

  it('is due by what a start costs: after many small records as after few large ones', async () => {
    const clock = new FakeClock();
    const small = await untilSnapshot({ data: await openDurable({ clock, journalCost: 128 * KIB }), clock }, 'x');
    const large = await untilSnapshot(
      { data: await openDurable({ clock, journalCost: 128 * KIB }), clock },
      'x'.repeat(KIB),
    );
    expect(small).toBeLessThan(100 * KIB);
    expect(large).toBeGreaterThan(100 * KIB);
    expect(large).toBeLessThan(192 * KIB);
  });

  it('is due after a bounded journal, however large the snapshot before it is', async () => {
    const clock = new FakeClock();
    const data = await openDurable({ clock, journalCost: 64 * KIB });
    for (let number = 0; number < 100; number++)
      await data.backend.history.retain({
        ...newMessage({ userId: `user${number}`, clientId: 'tab', suffix: 'events' }),
        id: 'm',
        payload: toJson(`${number}`.repeat(5 * KIB)),
      });
    await data.backend.snapshot();
    expect(bytesIn(data)).toBeGreaterThan(900 * KIB);
    const bytes = await untilSnapshot({ data, clock }, 'x'.repeat(KIB));
    expect(bytes).toBeLessThan(192 * KIB);
  });

  it('follows a start whose journal is long', async () => {
    const clock = new FakeClock();
    const data = await openDurable({ clock, journalCost: 512 * KIB });
    for (let number = 0; number < 100; number++)
      await data.backend.history.retain({ ...newMessage({ ...ALICE, suffix: 'events' }), id: `m${number}` });
    await turns();
    const again = await openDurable({ clock, root: copyOf(data), journalCost: 32 * KIB });
    await clock.advance(1_000);
    await until(() => again.backend.durability().snapshotAt !== null);
    expect(bytesIn(data)).toBeLessThan(32 * KIB);
  });
});
