/**
 * Tests the channels of mail between processes that own partitions: in a cluster each message stays on the master that
 * serves its slot, and the subscriptions follow the slots.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { Keys } from '../../src/backends/owned/keys.ts';
import { MailChannels } from '../../src/backends/owned/mail-channels.ts';
import { publish, runTurn } from '../../src/backends/owned/scripts.ts';
import { connectTo, isCluster, servedBy, type Client } from '../../src/backends/redis/client.ts';
import { ownedNamespace } from '../../src/backends/redis/keys.ts';
import { missingRights } from '../../src/backends/redis/rights.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { silentLog } from '../../src/core/ports.ts';
import { systemLoop } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { eventually } from '../kit/patience.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';
import { OWNED_CLUSTER_RULES, OWNED_RULES, smallestRules } from '../kit/redis-user.ts';

const GROUPS = [0, 1, 2] as const;
const PROCESS = 'b.1';
/** A time in which a probe is sent, in milliseconds. */
const PROBE_MS = 1_000;

/** Opens the channels of one process over a Redis, and what publishes to them. */
async function openChannels(url: string, namespace: string = randomUUID(), groups: number = GROUPS.length) {
  const target = readTarget(url);
  const keys = new Keys(ownedNamespace(namespace), { partitions: 2 * groups, groups, digest: 'd' });
  const client = connectTo(target, 'commands', silentLog);
  await client.connect();
  const texts: string[] = [];
  const subscribing: Client[] = [];
  const seen = { restored: 0 };
  const clock = new FakeClock();
  const channels = new MailChannels({
    ...{ process: PROCESS, client, keys, loop: systemLoop, log: silentLog, clock },
    connect(findNode) {
      const made = connectTo(target, 'bus', silentLog, { findNode });
      subscribing.push(made);
      return made;
    },
    onText: (text) => texts.push(text),
    onRestored: () => seen.restored++,
  });
  onTestFinished(() => {
    channels.close();
    client.disconnect();
  });
  await channels.ready();
  return {
    ...{ keys, client, channels, clock, texts, seen, subscribing },
    /** Publishes in each slot group, and waits until all of it has arrived. */
    async deliver(what: string): Promise<void> {
      for (const group of GROUPS) await publish(client, keys.mailOf(PROCESS, group), `${what} ${group}`);
      await eventually(() => expect(texts).toEqual(expect.arrayContaining(GROUPS.map((group) => `${what} ${group}`))));
    },
  };
}

describe('mail in a cluster', () => {
  let cluster: RedisCluster;
  let hands: readonly Redis[];
  beforeAll(async () => {
    cluster = await startRedisCluster();
    hands = cluster.urls.map((url) => new Redis(url));
  });
  afterAll(async () => {
    hands.forEach((hand) => hand.disconnect());
    await cluster.stop();
  });

  it('arrives from each master, by scripts and without, and goes to no other node', async () => {
    const plain = await cluster.sentToNodes('publish');
    const { keys, client, channels, texts, deliver } = await openChannels(cluster.address);
    for (const group of GROUPS) {
      const mail = [keys.mailOf(PROCESS, group), `script ${group}`];
      const call = { mapKey: keys.ofGroup(group).map, map: keys.map, appends: [], checks: [], mail };
      await client.set(call.mapKey, keys.map);
      expect(await runTurn(client, call, 'text')).toBe(true);
      expect(await runTurn(client, call, 'sha')).toBe(true);
    }
    await deliver('plain');
    channels.publish(PROCESS, 'by process');
    channels.publishToAll('to all');
    const scripted = GROUPS.flatMap((group) => [`script ${group}`, `script ${group}`]);
    const expected = [...scripted, ...GROUPS.map((group) => `plain ${group}`), 'by process', 'to all'];
    await eventually(() => expect([...texts].sort()).toEqual(expected.sort()));
    expect((await cluster.calls('spublish')).every((calls) => calls > 0)).toBe(true);
    // There are no replicas, and nobody else uses this cluster.
    expect(await cluster.sentToNodes('publishshard')).toEqual([0, 0, 0]);
    expect(await cluster.sentToNodes('publish')).toEqual(plain);
    // The figure grows with what is sent to each node.
    await hands[0]?.publish('channel', 'text');
    expect(await cluster.sentToNodes('publish')).not.toEqual(plain);
  });

  it('needs one connection to each master, however many slot groups there are', async () => {
    const { keys, client, texts, subscribing } = await openChannels(cluster.address, randomUUID(), 24);
    expect(subscribing).toHaveLength(hands.length);
    const all = Array.from({ length: keys.usedGroups }, (_, group) => group);
    expect(all).toHaveLength(24);
    for (const group of all) await publish(client, keys.mailOf(PROCESS, group), String(group));
    await eventually(() => expect(texts.map(Number).sort((a, b) => a - b)).toEqual(all));
  });

  it('arrives again after a slot has moved, and the process learns that some may be lost', async () => {
    const { keys, seen, deliver } = await openChannels(cluster.address);
    await deliver('before');
    const channel = keys.mailOf(PROCESS, 0);
    const { to } = await cluster.moveSlotOf(channel);
    await eventually(() => expect(seen.restored).toBeGreaterThan(0));
    await deliver('after');
    expect(await hands[to]?.call('PUBSUB', 'SHARDNUMSUB', channel)).toEqual([channel, 1]);
  });

  it('needs just the documented rights', async () => {
    const namespace = randomUUID();
    const rules = [...smallestRules(namespace), ...OWNED_RULES, '+cluster|slots', '+cluster|info'];
    const allow = (...more: readonly string[]) =>
      Promise.all(hands.map((hand) => hand.call('ACL', 'SETUSER', 'relay', 'reset', 'on', '>word', ...rules, ...more)));
    await allow(...OWNED_CLUSTER_RULES);
    const url = cluster.address.replace('://', '://relay:word@');
    const { client, deliver } = await openChannels(url, namespace);
    await deliver('allowed');
    const missing = () =>
      missingRights({
        ...{ client, namespace, target: readTarget(url), partitions: 2, store: 'owned' },
        legacy: { commandStream: null, pending: null },
      });
    expect(await missing()).toEqual([]);
    for (const rule of OWNED_CLUSTER_RULES) {
      await allow(...OWNED_CLUSTER_RULES.filter((other) => other !== rule));
      const sentences = await missing();
      expect(sentences).toHaveLength(hands.length);
      for (const sentence of sentences) expect(sentence).toContain(`add the rule ${rule}.`);
    }
  });
});

it('mail in a cluster arrives again after a master has failed over', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const { seen, deliver } = await openChannels(cluster.address);
  await deliver('before');
  await cluster.failOver(1);
  await eventually(() => expect(seen.restored).toBeGreaterThan(0));
  await eventually(() => deliver('after'));
});

describe('a connection that receives nothing although it looks healthy', () => {
  const forms = ['one Redis', 'a cluster'] as const;

  it.each(forms)('is noticed and replaced over %s', async (form) => {
    const url = await (form === 'one Redis' ? inject('redisUrl') : startedCluster());
    const { keys, clock, seen, subscribing, deliver } = await openChannels(url);
    const count = subscribing.length;
    expect(count).toBe(form === 'one Redis' ? 1 : new Set(await mastersOf(url, keys)).size);
    await deliver('before');
    const channel = keys.mailOf(PROCESS, 0);
    await (form === 'one Redis' ? subscribing[0]?.unsubscribe(channel) : subscribing[0]?.sunsubscribe(channel));
    await eventually(async () => {
      await clock.advance(PROBE_MS);
      expect(seen.restored).toBe(1);
    });
    await deliver('after');
    expect(subscribing).toHaveLength(count + 1);
  });

  async function mastersOf(url: string, keys: Keys): Promise<readonly (string | null)[]> {
    const cluster = connectTo(readTarget(url), 'commands', silentLog);
    onTestFinished(() => cluster.disconnect());
    await cluster.connect();
    if (!isCluster(cluster)) throw new Error('the Redis is no cluster');
    return GROUPS.map((group) => servedBy(cluster, keys.mailOf(PROCESS, group)));
  }

  async function startedCluster(): Promise<string> {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    return cluster.address;
  }
});
