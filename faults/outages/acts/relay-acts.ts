/** Carries out the faults of relays: kills, pauses, drains, and a second process of the same node. */
import { type Act, given, sleep, until } from './act.ts';
import type { FaultLog } from '../log/log.ts';
import type { Proc } from '../processes/processes.ts';
import type { Relay } from '../processes/relays.ts';
import type { Fault } from '../plan/plan.ts';
import type { World } from '../world.ts';
import { between, pick, seeded } from '../../lib/random.ts';
import { drawCover, pauseCalls, resumeCalls } from './pauses.ts';

/** The maximum number of attempts to start a relay again. */
const RESTARTS = 5;
/** The time between two attempts to start a relay, in milliseconds. */
const RETRY_MS = 2_000;
/**
 * The timeout for a second process to take over the node of a paused relay, in milliseconds. It is a lease plus the
 * time in which a loaded machine starts a process.
 */
const TAKEN_OVER_MS = 30_000;
/** How long the second process with the same node id runs, in milliseconds. */
const TWIN_RUNS_MS = 3_000;
/** How long a relay takes to close, including its last snapshot, in milliseconds. */
const CLOSES_MS = 1_500;
/** How long the pause of calls around a kill lasts, in milliseconds. */
const PAUSE_HOLDS_MS = 500;
/** The maximum time between the request for a pause and a kill, in either order, in milliseconds. */
const PAUSE_AHEAD_MS = 30;
/** The maximum error of a relay's wall clock, in milliseconds. */
const CLOCK_STEP_MS = 60_000;
/** The timeout for a relay to be ready again, in milliseconds. */
const READY_MS = 30_000;

export const ACTS_OF_RELAYS = {
  async 'relay-kill'(world, fault) {
    const relay = relayOf(world, fault);
    await relay.proc.kill();
    await restart(relay);
  },
  async 'relay-kill-pausing'(world, fault, log) {
    const relay = relayOf(world, fault);
    const random = seeded(fault.id);
    const name = `pause of kill ${fault.id}`;
    const cover = drawCover(random, world);
    const aheadMs = between(random, -PAUSE_AHEAD_MS, PAUSE_AHEAD_MS);
    // The relay that gets the request may be the one that is killed. Then the answer is lost.
    const at = pick(random, world.relays);
    const pausing = sleep(-aheadMs).then(() => pauseCalls(at, { name, cover }, log));
    const killing = sleep(aheadMs).then(() => relay.proc.kill());
    await Promise.all([pausing.catch(() => {}), killing.then(() => restart(relay))]);
    await sleep(PAUSE_HOLDS_MS);
    await resumeCalls(world, name, log);
  },
  async 'relays-kill'({ relays }) {
    await Promise.all(relays.map(({ proc }) => proc.kill()));
    await Promise.all(relays.map(restart));
  },
  async 'relay-tear'(world, fault) {
    const relay = relayOf(world, fault);
    await relay.proc.kill();
    given(world.data).tear(seeded(fault.id));
    await restart(relay);
  },
  async 'relay-halt'(world, fault) {
    const relay = relayOf(world, fault);
    const random = seeded(fault.id);
    void relay.proc.stop();
    await sleep(between(random, 0, CLOSES_MS));
    await relay.proc.kill();
    await restart(relay);
  },
  async 'relay-power'(world, fault, log) {
    const relay = relayOf(world, fault);
    const { losePower, withinMs } = given(world.data);
    await relay.proc.kill();
    const killedAt = Number(process.hrtime.bigint());
    log.write({ event: 'power', of: relay.name, killedAt, keptUntil: losePower(seeded(fault.id)), withinMs });
    await restart(relay);
  },
  async 'relay-shut'(world, fault, log) {
    const relay = relayOf(world, fault);
    const disk = given(world.data?.disk);
    if (!disk.mounted) return 'a small file system cannot be mounted';
    await relay.proc.kill();
    if (!disk.setWritable(false)) throw new Error('the file system cannot be made read-only');
    const why = await relay.restart().then(
      () => null,
      (error: unknown) => String(error),
    );
    log.write({ event: 'shut', of: relay.name, why });
    await relay.proc.kill();
    if (!disk.setWritable(true)) throw new Error('the file system stays read-only');
    await restart(relay);
    return undefined;
  },
  async 'relay-pause'(world, fault) {
    const { proc } = relayOf(world, fault);
    proc.pause();
    await sleep(fault.holdMs);
    proc.resume();
  },
  async 'relay-clock'(world, fault) {
    const relay = relayOf(world, fault);
    relay.stepClock(between(seeded(fault.id), -CLOCK_STEP_MS, CLOCK_STEP_MS));
    await sleep(fault.holdMs);
    relay.stepClock(0);
  },
  async 'relays-full'({ relays }, { target, holdMs }) {
    const others = relays.filter((_, index) => index !== target % relays.length);
    await Promise.all(others.map(({ proc }) => proc.kill()));
    await sleep(holdMs);
    await Promise.all(others.map(restart));
  },
  async 'relay-drain'(world, fault) {
    const relay = relayOf(world, fault);
    await relay.proc.stop();
    await restart(relay);
  },
  async 'relay-break'(world, fault) {
    const relay = relayOf(world, fault);
    const redis = given(world.proxied);
    await relay.proc.stop();
    redis.breakAt(({ connection, number }) => {
      const reached = connection === 'callboard-commands' && number === fault.id;
      if (reached) redis.breakAt(null);
      return reached;
    });
    // Repeated if the broken connection ended the start.
    await restart(relay);
    redis.breakAt(null);
  },
  async 'relay-twin'(world, fault, log) {
    const relay = relayOf(world, fault);
    const twin = await startTwin(relay, log, { first: 'live', since: performance.now() });
    if (!twin) return;
    await sleep(TWIN_RUNS_MS);
    await twin.kill();
  },
  async 'relay-swap'(world, fault, log) {
    const relay = relayOf(world, fault);
    const since = performance.now();
    relay.proc.pause();
    let twin: Proc | null = null;
    while (!twin && performance.now() - since < TAKEN_OVER_MS) {
      twin = await startTwin(relay, log, { first: 'paused', since });
    }
    relay.proc.resume();
    await sleep(TWIN_RUNS_MS);
    await twin?.kill();
    if (!(await until(() => isReady(relay), READY_MS))) throw new Error(`${relay.name} never came back`);
  },
} as const satisfies Record<string, Act>;

type Beside = { readonly first: 'live' | 'paused'; readonly since: number };

async function startTwin(relay: Relay, log: FaultLog, { first, since }: Beside): Promise<Proc | null> {
  const twin = await relay.twin().catch(() => null);
  const afterMs = Math.round(performance.now() - since);
  log.write({ event: 'twin', of: relay.name, first, afterMs, came: twin ? 'in' : 'refused' });
  return twin;
}

async function isReady({ url }: Relay): Promise<boolean> {
  const answer = await fetch(`${url}/readyz`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(RETRY_MS),
  });
  await answer.body?.cancel();
  return answer.ok;
}

/**
 * Tries repeatedly to start the relay again. The lease of the previous boot may still be valid, and the relays refuse a
 * second process of the node until that lease has ended.
 */
export async function restart(relay: Relay): Promise<void> {
  for (let turn = 1; ; turn++) {
    try {
      return await relay.restart();
    } catch (error) {
      if (turn === RESTARTS) throw error;
      await sleep(RETRY_MS);
    }
  }
}

function relayOf({ relays }: World, { target }: Fault): Relay {
  return given(relays[target % relays.length]);
}
