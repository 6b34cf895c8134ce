/** Carries out a schedule of faults, one after the other, and heals each fault. */
import { seeded } from '../../lib/random.ts';
import type { FaultLog } from '../log/log.ts';
import type { Fault, FaultKind } from '../plan/plan.ts';
import type { Proxy } from '../processes/proxy.ts';
import type { ClientProcess, World } from '../world.ts';
import { type Act, given, sleep, until } from './act.ts';
import { killAimed } from './aimed-kill.ts';
import { aliveOf, pauseCalls, resumeCalls } from './pauses.ts';
import { ACTS_OF_REDIS, ACTS_OF_SPILL } from './storage-acts.ts';
import { ACTS_OF_RELAYS } from './relay-acts.ts';
import { ACTS_OF_TOPOLOGY } from './topology-acts.ts';

// The faults of clients and of their connections.

/** The time within which the clients must reconnect, in milliseconds. It is long for slow machines. */
const BACK_MS = 10_000;
/** How long clients are disconnected before a pause, in milliseconds. Commands wait for them in this time. */
const AWAY_MS = 300;
/** How long a relay may treat a connection as open that its client has given up, in milliseconds. */
const BELIEVED_MS = 1_000;

const ACTS_OF_LINKS = {
  async 'links-reset'({ front }) {
    front.reset();
  },
  async 'links-late'({ front }, { holdMs }) {
    const tell = front.breakNear();
    await sleep(holdMs);
    tell();
  },
  'links-deaf': ({ front }, { holdMs }) => swallow(front, 'down', holdMs),
  'links-mute': ({ front }, { holdMs }) => swallow(front, 'up', holdMs),
  async 'links-hello'({ front, who }, { holdMs }, log) {
    const held = front.holdBack();
    front.reset();
    const all = await until(async () => held.size >= who.length, BACK_MS, 20);
    const count = held.size;
    const late = held.breakNear();
    await sleep(holdMs);
    const again = await until(async () => front.size >= who.length, BACK_MS, 20);
    log.write({ event: 'late-hellos', count });
    late.release();
    await sleep(BELIEVED_MS);
    late.close();
    if (!all || !again) throw new Error('the clients did not connect again');
  },
  async 'links-away-pausing'(world, fault, log) {
    const { front } = world;
    const name = `pause of links ${fault.id}`;
    front.set({ kind: 'refuse' });
    front.reset();
    await sleep(AWAY_MS);
    const relay = aliveOf(world, seeded(fault.id));
    await pauseCalls(relay, { name, cover: { all: true } }, log).catch(() => {});
    front.set({ kind: 'pass' });
    await until(async () => front.size >= world.who.length, BACK_MS, 20);
    await sleep(BELIEVED_MS);
    await resumeCalls(world, name, log);
  },
  async 'clients-freeze'(world, fault) {
    const { proc } = processOf(world, fault);
    proc.pause();
    await sleep(fault.holdMs);
    proc.resume();
  },
  async 'clients-forge'(world, fault) {
    const process = processOf(world, fault);
    await process.proc.kill();
    await process.restart({ forging: true });
  },
  async 'clients-kill'(world, fault) {
    const process = processOf(world, fault);
    await process.proc.kill();
    await process.restart();
  },
} as const satisfies Record<string, Act>;

async function swallow(front: Proxy, direction: 'up' | 'down', holdMs: number): Promise<void> {
  const breakNear = front.swallow(direction);
  await sleep(holdMs);
  const tell = breakNear();
  await sleep(BELIEVED_MS);
  tell();
}

function processOf({ clients }: World, { target }: Fault): ClientProcess {
  return given(clients[target % clients.length]);
}

// The function that carries out each kind of fault. This file contains faults of connections and clients; faults of
// relays, Redis and payload files are in other files.

export const ACTS: Readonly<Record<FaultKind, Act>> = {
  ...ACTS_OF_RELAYS,
  ...ACTS_OF_REDIS,
  ...ACTS_OF_SPILL,
  ...ACTS_OF_TOPOLOGY,
  ...ACTS_OF_LINKS,
  async hole(world, fault) {
    await setMode(world, fault, { kind: 'black-hole' });
  },
  async 'all-holes'({ redisProxies }, { holdMs }) {
    for (const proxy of redisProxies) proxy.set({ kind: 'black-hole' });
    await sleep(holdMs);
    for (const proxy of redisProxies) proxy.set({ kind: 'pass' });
  },
  async 'all-reset'({ redisProxies }) {
    for (const proxy of redisProxies) proxy.reset();
  },
  async slow(world, fault) {
    await setMode(world, fault, { kind: 'delay', ms: 100 });
  },
  async slices(world, fault) {
    await setMode(world, fault, { kind: 'slice', bytes: 7 });
  },
  async reset(world, fault) {
    redisProxyOf(world, fault).reset();
  },
  async 'half-open'(world, fault) {
    redisProxyOf(world, fault).halfOpen();
    await sleep(fault.holdMs);
  },
  async 'drop-reply'(world, fault) {
    const proxy = redisProxyOf(world, fault);
    const before = proxy.dropped;
    proxy.dropReply();
    const end = performance.now() + fault.holdMs;
    while (proxy.dropped === before && performance.now() < end) await sleep(10);
  },
};

async function setMode(world: World, fault: Fault, set: Parameters<Proxy['set']>[0]): Promise<void> {
  const proxy = redisProxyOf(world, fault);
  proxy.set(set);
  await sleep(fault.holdMs);
  proxy.set({ kind: 'pass' });
}

function redisProxyOf({ redisProxies }: World, { target }: Fault): Proxy {
  return given(redisProxies[target % redisProxies.length]);
}

/** The time within which another relay must be running before a kill that soon follows another one, in milliseconds. */
const HEALED_MS = 60_000;

function running({ relays }: World): number {
  return relays.filter(({ proc }) => proc.alive).length;
}

type Nemesis = {
  /** Carries out the schedule until it ends or is stopped. Resolves when the last started fault is healed. */
  run(): Promise<void>;
  stop(): void;
  /** The number of faults carried out so far. */
  readonly done: number;
};

/** The pause after a fault that took longer than planned, in milliseconds. */
const REST_MS = 2_000;

export function createNemesis(world: World, log: FaultLog, schedule: readonly Fault[]): Nemesis {
  const stopped = Promise.withResolvers<void>();
  let stop = false;
  let done = 0;
  const wait = async (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(0, ms));
    await Promise.race([promise, stopped.promise]);
    clearTimeout(timer);
  };
  return {
    get done() {
      return done;
    },
    async run() {
      const from = performance.now();
      const healing: Promise<void>[] = [];
      for (const fault of schedule) {
        // A kill causes a takeover, and the return of the killed relay causes handovers. A kill that aims at one of
        // these must wait for it.
        const isNext = fault.work === 'takeover' || fault.work === 'handover';
        if (isNext) await until(async () => running(world) > 1, HEALED_MS, 20);
        else {
          await Promise.all(healing.splice(0));
          await wait(Math.max(fault.atMs - (performance.now() - from), done > 0 ? REST_MS : 0));
        }
        if (stop) break;
        if (fault.role) healing.push((await killAimed(world, fault, log)).healed);
        else await suffer(world, log, fault);
        done++;
      }
      await Promise.all(healing);
    },
    stop() {
      stop = true;
      stopped.resolve();
    },
  };
}

async function suffer(world: World, log: FaultLog, fault: Fault): Promise<void> {
  const { id, kind } = fault;
  log.write({ event: 'fault', id, kind, target: nameOf(world, fault), wall: Date.now() });
  const why = await ACTS[kind](world, fault, log);
  if (typeof why === 'string') log.write({ event: 'skipped', id, kind, why });
  log.write({ event: 'heal', id });
}

/** The faults of the connections between one relay and Redis. */
const OF_CONNECTIONS: ReadonlySet<string> = new Set([
  ...['hole', 'half-open', 'reset', 'drop-reply', 'slow', 'slices', 'redis-flap'],
]);

/** Returns the name of the fault's target, as it appears in the logs of the other processes. */
function nameOf({ relays }: World, { kind, target }: Fault): string {
  const isOfRelay = kind.startsWith('relay-') || kind === 'relays-full' || OF_CONNECTIONS.has(kind);
  return isOfRelay ? (relays[target % relays.length]?.name ?? '') : String(target);
}
