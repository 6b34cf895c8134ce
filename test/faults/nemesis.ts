import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisServer } from '../kit/redis.ts';
import type { FaultLog } from './log.ts';
import type { Proxy } from './proxy.ts';
import type { Relay } from './relays.ts';
import type { Fault, FaultKind } from './schedule.ts';
import type { World } from './world.ts';

export type Nemesis = {
  /** Does what the schedule says until it is over or told to stop; resolves when the last fault that began is healed. */
  run(): Promise<void>;
  stop(): void;
  /** Faults that were done. */
  readonly done: number;
};

const LOST_BYTES = 4096;
const RESTARTS = 5;

export function createNemesis(world: World, log: FaultLog, schedule: readonly Fault[]): Nemesis {
  const stopped = Promise.withResolvers<void>();
  let stop = false;
  let done = 0;
  const wait = (ms: number): Promise<unknown> => Promise.race([sleep(ms), stopped.promise]);
  return {
    get done() {
      return done;
    },
    async run() {
      const from = performance.now();
      for (const fault of schedule) {
        await wait(fault.atMs - (performance.now() - from));
        if (stop) return;
        await suffer(world, log, fault);
        done++;
      }
    },
    stop() {
      stop = true;
      stopped.resolve();
    },
  };
}

async function suffer(world: World, log: FaultLog, fault: Fault): Promise<void> {
  const { id, kind, target } = fault;
  log.write({ event: 'fault', id, kind, target: String(target) });
  await ACTS[kind](world, fault);
  log.write({ event: 'heal', id });
}

type Act = (world: World, fault: Fault) => Promise<void>;

const ACTS: Readonly<Record<FaultKind, Act>> = {
  async 'relay-kill'(world, fault) {
    const relay = relayOf(world, fault);
    await relay.proc.kill();
    await restart(relay);
  },
  async 'relay-pause'(world, fault) {
    const { proc } = relayOf(world, fault);
    proc.pause();
    await sleep(fault.holdMs);
    proc.resume();
  },
  async 'relay-drain'(world, fault) {
    const relay = relayOf(world, fault);
    await relay.proc.stop();
    await restart(relay);
  },
  async 'redis-kill'(world) {
    const redis = redisOf(world);
    await redis.kill();
    await redis.restart();
  },
  async 'redis-cut'(world) {
    const redis = redisOf(world);
    await redis.kill();
    cutLog(redis.folder);
    await redis.restart();
  },
  async 'redis-pause'(world, { holdMs }) {
    const { process } = redisOf(world);
    process.kill('SIGSTOP');
    await sleep(holdMs);
    process.kill('SIGCONT');
  },
  async hole(world, fault) {
    await weather(world, fault, { kind: 'black-hole' });
  },
  async slow(world, fault) {
    await weather(world, fault, { kind: 'delay', ms: 100 });
  },
  async slices(world, fault) {
    await weather(world, fault, { kind: 'slice', bytes: 7 });
  },
  async reset(world, fault) {
    wayOf(world, fault).reset();
  },
  async 'half-open'(world, fault) {
    wayOf(world, fault).halfOpen();
    await sleep(fault.holdMs);
  },
  async 'drop-reply'(world, fault) {
    const way = wayOf(world, fault);
    const before = way.dropped;
    way.dropReply();
    const end = performance.now() + fault.holdMs;
    while (way.dropped === before && performance.now() < end) await sleep(10);
  },
  async 'links-reset'({ front }) {
    front.reset();
  },
  async 'clients-kill'({ clients }, { target }) {
    const process = clients[target % clients.length];
    await process?.proc.kill();
    await process?.restart();
  },
};

async function weather(world: World, fault: Fault, set: Parameters<Proxy['set']>[0]): Promise<void> {
  const way = wayOf(world, fault);
  way.set(set);
  await sleep(fault.holdMs);
  way.set({ kind: 'pass' });
}

/** The old boot's lease may still run: a second process of a node is refused until it is over. */
async function restart(relay: Relay): Promise<void> {
  for (let turn = 1; ; turn++) {
    try {
      return await relay.restart();
    } catch (error) {
      if (turn === RESTARTS) throw error;
      await sleep(2_000);
    }
  }
}

/** Bytes at the end of an append-only file that were never written, as after a power cut. */
function cutLog(folder: string): void {
  const logs = join(folder, 'appendonlydir');
  const last = readdirSync(logs)
    .filter((name) => name.endsWith('.incr.aof'))
    .sort()
    .at(-1);
  if (last === undefined) throw new Error('Redis keeps no log');
  const path = join(logs, last);
  truncateSync(path, Math.max(0, statSync(path).size - LOST_BYTES));
}

function relayOf({ relays }: World, { target }: Fault): Relay {
  return given(relays[target % relays.length]);
}

function wayOf({ ways }: World, { target }: Fault): Proxy {
  return given(ways[target % ways.length]);
}

function redisOf({ redis }: World): RedisServer {
  return given(redis);
}

function given<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('there is none in direct mode');
  return value;
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, Math.max(0, ms)));
}
