/**
 * Finds the function that carries out each kind of fault. Faults of the network are in this file; faults of relays,
 * Redis and payload files are in files of their own.
 */
import { ACTS_OF_REDIS } from './redis.ts';
import { ACTS_OF_RELAYS } from './relays.ts';
import { ACTS_OF_SPILL } from './spill.ts';
import type { Act } from './act.ts';
import type { Proxy } from '../processes/proxy.ts';
import { given, sleep } from './waiting.ts';
import type { Fault, FaultKind } from '../plan/plan.ts';
import type { World } from '../world.ts';

export const ACTS: Readonly<Record<FaultKind, Act>> = {
  ...ACTS_OF_RELAYS,
  ...ACTS_OF_REDIS,
  ...ACTS_OF_SPILL,
  async hole(world, fault) {
    await setMode(world, fault, { kind: 'black-hole' });
  },
  async 'all-holes'({ redisProxies }, { holdMs }) {
    for (const proxy of redisProxies) proxy.set({ kind: 'black-hole' });
    await sleep(holdMs);
    for (const proxy of redisProxies) proxy.set({ kind: 'pass' });
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
  async 'links-reset'({ front }) {
    front.reset();
  },
  async 'links-late'({ front }, { holdMs }) {
    const tell = front.breakNear();
    await sleep(holdMs);
    tell();
  },
  async 'clients-forge'({ clients }, { target }) {
    const process = clients[target % clients.length];
    await process?.proc.kill();
    await process?.restart({ forging: true });
  },
  async 'clients-kill'({ clients }, { target }) {
    const process = clients[target % clients.length];
    await process?.proc.kill();
    await process?.restart();
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
