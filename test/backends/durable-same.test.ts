/**
 * Tests that a backend with a data directory, after kills, restarts and snapshots between random acts, shows the same as
 * a memory backend that was never restarted.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { comparable, shownHoldings, shownState } from '../../faults/lib/shown-state.ts';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Backend } from '../../src/core/backend.ts';
import type { Binding } from '../../src/core/commands/command-store.ts';
import type { ConnectRequest } from '../../src/core/connections/connection-store.ts';
import type { ClientKey, CommandKey } from '../../src/core/ids.ts';
import { toJson } from '../../src/core/json.ts';
import { FORGET_MS } from '../../src/core/limits.ts';
import { silentLog, type EventLoop } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { admission, CALLER, ending, keyFor } from '../contract/kit/bench.ts';
import { FakeClock, turns } from '../kit/clock.ts';
import { copyOf, openDurable, removeFolders } from './kit/durable.ts';
import { awayRow, type OpenData } from '../../src/backends/journal/open.ts';

/** The number of sequences, and the number before the first seed. */
const RUNS = Number(process.env['CALLBOARD_TEST_RUNS'] ?? 6);
const BEFORE = Number(process.env['CALLBOARD_TEST_SEED'] ?? 0);
const ACTS = 600;
const CLIENTS: readonly [ClientKey, ...ClientKey[]] = [
  { userId: 'alice', clientId: 'tab' },
  { userId: 'alice', clientId: 'phone' },
  { userId: 'bob', clientId: 'tab' },
];
const USERS = ['alice', 'bob'];

/** Bounds so small that results, records and rows are dropped all the time. */
const TIGHT = {
  ended_records: { guarantee: 3, total: 12 },
  result_bytes: { guarantee: 40, total: 120 },
  marks: { guarantee: 10, total: 60 },
  dedup_marks: { guarantee: 5, total: 30 },
  history_bytes: { guarantee: 4_096, total: 40_000 },
};

/** Numbers that are the same for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    const mixed = Math.imul(state ^ (state >>> 12), 0x297a2d39);
    return ((mixed ^ (mixed >>> 15)) >>> 0) % below;
  };
}

/** A loop whose turns the test decides, so that acts come between the slices of a snapshot. */
class ManualLoop implements EventLoop {
  readonly #waiting: (() => void)[] = [];

  afterOthers(run: () => void): void {
    this.#waiting.push(run);
  }

  atTurnEnd(run: () => void): void {
    setImmediate(run);
  }

  async turn(): Promise<void> {
    this.#waiting.shift()?.();
    await turns();
  }
}

class World {
  readonly clock = new FakeClock();
  readonly loop = new ManualLoop();
  readonly plainShares;
  readonly plain: Backend;
  durableShares;
  durable: OpenData | null = null;
  readonly tight: boolean;
  /** The links that are up, by the index of the client. */
  links = new Map<number, Binding>();
  /** When the links that are not up were lost, by the index of the client. */
  readonly lostAt = new Map<number, number>();
  keys: CommandKey[] = [];
  sessions: string[] = [];
  grants: (readonly [string, string])[] = [];
  acts = 0;
  snapshot: Promise<void> | null = null;

  constructor(tight: boolean) {
    this.tight = tight;
    this.plainShares = createShares(tight ? TIGHT : {});
    this.durableShares = createShares(tight ? TIGHT : {});
    this.plain = createMemoryBackend({ markSecret: 'x', clock: this.clock, ...this.#memory(this.plainShares) });
  }

  #memory(shares: ReturnType<typeof createShares>) {
    const history = this.tight ? { bytes: 40_000, streamMessages: 20, linkBytes: 20_000 } : {};
    return { log: silentLog, sha256: createCrypto('test').sha256, shares, history };
  }

  async open(root?: string): Promise<void> {
    this.durableShares = createShares(this.tight ? TIGHT : {});
    let ticks = 0;
    const clock = {
      now: () => this.clock.now(),
      // Each look takes a millisecond, so that a slice of a snapshot has only a few entities.
      monotonic: () => ticks++,
      after: (ms: number, run: () => void) => this.clock.after(ms, run),
      every: (ms: number, run: () => void) => this.clock.every(ms, run),
    };
    const memory = this.#memory(this.durableShares);
    this.durable = await openDurable({ clock, memory, loop: this.loop, ...(root !== undefined && { root }) });
  }

  /** Does the same act on both, and compares the answers. */
  async both<T>(act: (backend: Backend) => T): Promise<Awaited<T>> {
    const [expected, found] = [await act(this.plain), await act(this.backend)];
    expect(comparable(found)).toEqual(comparable(expected));
    return expected;
  }

  get backend(): Backend {
    if (!this.durable) throw new Error('not opened');
    return this.durable.backend;
  }

  /** Kills the process of the durable backend, and starts another on what it left. The other one loses its links. */
  async restart(): Promise<void> {
    await turns();
    if (!this.durable) return;
    const before = this.durable;
    await this.open(copyOf(before));
    this.snapshot = null;
    const away = this.durable.backend.durability().away;
    const present = CLIENTS.filter(
      (_, at) => this.links.has(at) || (this.lostAt.get(at) ?? -Infinity) + FORGET_MS > (away?.since ?? Infinity),
    );
    for (const [at, { epoch }] of [...this.links].sort(([, a], [, b]) => a.epoch - b.epoch)) {
      const key = CLIENTS[at];
      if (key) await this.plain.connections.disconnect(key, epoch, 'node_lost');
      this.lostAt.set(at, this.clock.now());
    }
    for (const userId of new Set(present.map((client) => client.userId)))
      if (away) await this.plain.history.retain(awayRow(userId, away));
    for (const [at, binding] of this.links) {
      const key = CLIENTS[at];
      if (key) await this.plain.commands.rebind(key, binding, 'down');
    }
    this.links = new Map();
  }
}

type Acting = (world: World, random: (below: number) => number) => Promise<unknown>;

const admit: Acting = (world, random) => {
  const client = CLIENTS[random(CLIENTS.length)] ?? CLIENTS[0];
  const chosen = random(2) === 0;
  const number = world.acts;
  const commandId = chosen ? `c${random(60)}` : `0190a000-0000-7000-8000-${String(number).padStart(12, '0')}`;
  const params = random(4) === 0 ? null : toJson({ n: number, text: 'ä'.repeat(random(30)) });
  const binding = world.links.get(CLIENTS.indexOf(client ?? { userId: '', clientId: '' }));
  const request = admission(commandId, {
    ...client,
    chosenId: chosen,
    digest: chosen ? 'd1' : '',
    params,
    kept: { payload: params, spill: null },
    scopeId: random(3) === 0 ? 'team' : (client?.userId ?? ''),
    connectWithinMs: random(2) === 0 ? 0 : 5_000,
    waiter: { rpcId: `r${number}`, caller: CALLER, callerNodeId: 'n1', waitFor: 'admitted', withinMs: null },
    ...(random(2) === 0 && { traceId: null, parentSpanId: null, traceFlags: null, traceState: null, callSpan: null }),
    claim: binding && random(2) === 0 ? { binding, attempt: `x${number}` } : null,
  });
  world.keys.push(keyFor(commandId, client));
  return world.both(({ commands }) => commands.admit(request));
};

const change: Acting = (world, random) => {
  const key = world.keys.at(-1 - random(8));
  if (!key) return Promise.resolve();
  const at = CLIENTS.findIndex(({ userId, clientId }) => userId === key.userId && clientId === key.clientId);
  const binding = world.links.get(at) ?? { nodeId: 'n1', instanceId: 'i1', epoch: 0 };
  const instanceId = random(8) === 0 ? 'i9' : binding.instanceId;
  const payload = toJson({ n: random(5), text: 'y'.repeat(random(40)) });
  const error = { code: 'handler_failed', message: 'no' };
  const refused = random(2) === 0;
  switch (random(12)) {
    case 0:
    case 1:
    case 2:
      return world.both(({ commands }) => commands.dispatch(key, binding));
    case 3:
      return world.both(({ commands }) => commands.report(key, { instanceId, kind: 'ack', payload: null, kept: null }));
    case 4:
      return world.both(({ commands }) =>
        commands.report(key, { instanceId, kind: 'progress', payload, kept: { payload, spill: null } }),
      );
    case 5:
    case 6:
    case 7:
      return world.both(({ commands }) => commands.finish(key, ending({ instanceId, payload })));
    case 8:
      return world.both(({ commands }) =>
        commands.finish(key, ending({ instanceId, kind: 'error', payload: null, error, refused })),
      );
    case 9:
      return world.both(({ commands }) => commands.settle(key, { kind: 'cancel', reason: 'enough', by: 'test' }));
    case 10:
      return world.both(({ commands }) => commands.settle(key, { kind: 'expire' }));
    default:
      return world.both(({ commands }) =>
        commands.settle(key, { kind: 'give_up', code: 'node_lost', instanceId: binding.instanceId }),
      );
  }
};

async function close(world: World, at: number): Promise<void> {
  const [key, bound] = [CLIENTS[at], world.links.get(at)];
  if (!key || !bound) return;
  await world.both(({ connections }) => connections.disconnect(key, bound.epoch, 'lost', 1001));
  await world.both(({ commands }) => commands.rebind(key, bound, 'down'));
  world.links.delete(at);
  world.lostAt.set(at, world.clock.now());
}

const link: Acting = async (world, random) => {
  const at = random(CLIENTS.length);
  const key = CLIENTS[at];
  if (!key) return;
  const bound = world.links.get(at);
  if (bound && random(2) === 0) return close(world, at);
  const request: ConnectRequest = {
    ...key,
    ...{
      instanceId: `i${1 + random(2)}`,
      nodeId: 'n1',
      clientType: 'browser',
      host: false,
      metadata: null,
      actions: [],
    },
  };
  const { connection } = await world.both(({ connections }) => connections.connect(request));
  const binding = { nodeId: 'n1', instanceId: connection.instanceId, epoch: connection.epoch };
  world.links.set(at, binding);
  await world.both(({ commands }) => commands.rebind(key, binding, 'up'));
  if (random(3) === 0)
    await world.both(({ connections }) => connections.advertise(key, connection.epoch, connection.actions));
};

const message: Acting = (world, random) => {
  const payload = toJson({ text: 'z'.repeat(random(200)) });
  const shared = { userId: random(2) === 0 ? 'alice' : 'bob', suffix: `notes/${random(3)}`, kind: 'event' } as const;
  const ids = { id: `m${random(40)}`, clientId: 'tab', instanceId: 'i1', commandId: null };
  const given = { ...shared, ...ids, payload, spill: null, traceId: null, parentSpanId: null, error: null };
  return world.both(({ history }) => history.ingest(given));
};

const site: Acting = async (world, random) => {
  const key = { userId: 'alice', siteId: `s${1 + random(2)}` };
  const number = world.acts;
  const grant = {
    grantId: `g${number}`,
    parentId: null,
    events: null,
    actions: [],
    share: true,
    ttlMs: null,
    tokenHash: `t${number}`,
  };
  const [sessionId = ''] = world.sessions.slice(-1 - random(3));
  switch (random(6)) {
    case 0:
    case 1: {
      const definition = {
        ...key,
        mode: 'cooperative',
        title: `t${number}`,
        eventNames: [],
        actions: [],
        clientId: 'tab',
      };
      const capabilityProfile = { actionInvocation: true, sharing: true };
      return world.both(({ sites }) => sites.put({ ...definition, capabilityProfile }));
    }
    case 2:
      return random(4) === 0 ? world.both(({ sites }) => sites.remove(key)) : null;
    case 3:
      world.sessions.push(`session${number}`);
      return world.both(({ sessions }) =>
        sessions.open({ ...key, sessionId: `session${number}`, ttlMs: 60_000, grant }),
      );
    case 4:
      world.grants.push([sessionId, grant.grantId]);
      return world.both(({ sessions }) => sessions.addGrant(sessionId, grant));
    default: {
      const [of = '', grantId = ''] = world.grants.at(-1) ?? [];
      if (random(3) === 0) return world.both(({ sessions }) => sessions.close(sessionId));
      const tokenHash = `t${number - random(30)}`;
      await world.both(({ sessions }) => sessions.findByToken(tokenHash));
      return world.both(({ sessions }) => sessions.revokeGrant(of, grantId));
    }
  }
};

const time: Acting = async (world, random) => {
  const steps = [1, 20, 400, 1_500, 6_000, 31_000, 70_000, 1_000_000, 3_700_000];
  const step = steps[random(random(4) === 0 ? steps.length : 5)] ?? 1;
  // Signs of life are not recorded, so a link that is up after a restart was never silent before.
  if (step > 100_000) for (const at of [...world.links.keys()]) await close(world, at);
  for (let left = step; left > 0; left -= 20_000) {
    if (world.links.size === 0) return world.clock.advance(left);
    await world.clock.advance(Math.min(left, 20_000));
    for (const [at, { epoch }] of world.links)
      await world.both(({ connections }) => connections.touch(CLIENTS[at] ?? CLIENTS[0], epoch));
  }
  // Which of two ended commands is dropped first is kept by the times of their ends, which must not go back for this.
  if (random(10) === 0) world.clock.stepWall(random(2) === 0 || world.tight ? 5_000 : -5_000);
};

const ACTING: readonly Acting[] = [
  ...[admit, admit, admit, admit, admit, change, change, change, change, change, change, change, change],
  ...[link, link, message, message, site, time],
];

afterAll(removeFolders);

async function run(seed: number, tight: boolean): Promise<void> {
  const random = randomOf(seed);
  const world = new World(tight);
  await world.open();
  for (; world.acts < ACTS; world.acts++) {
    const acting = ACTING[random(ACTING.length)];
    await acting?.(world, random);
    await world.loop.turn();
    // Which of two commands that ended in the same millisecond is dropped first is not kept.
    await world.clock.advance(1);
    if (random(60) === 0 && world.durable) world.snapshot ??= world.durable.backend.snapshot();
    if (random(80) > 0) continue;
    await world.restart();
    const what = { users: USERS, clients: CLIENTS, keys: world.keys };
    expect(await shownState(world.backend, what)).toEqual(await shownState(world.plain, what));
    // Marks of messages are dropped at the next look at them after their time, which is not the same for both.
    for (const { dedup } of [world.backend, world.plain]) await dedup.stats(60);
    expect(shownHoldings(world.durableShares, USERS)).toEqual(shownHoldings(world.plainShares, USERS));
  }
}

describe('a backend with a data directory', () => {
  // In 3101 a mark is set while a snapshot is written, and expires while the process is away. In 4031 a command ends
  // after a snapshot has written it, at the time at which the snapshot began. In 635848310 commands are admitted with
  // ids of the relay while marks that are over take up the room.
  for (const seed of [3101, 4031, 635848310, ...Array.from({ length: RUNS }, (_, i) => BEFORE + 1 + i)]) {
    const tight = seed % 2 === 0;
    it(`shows the same as memory alone after kills and snapshots (seed ${seed})`, () => run(seed, tight));
  }
});
