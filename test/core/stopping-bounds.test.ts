/** Tests what bounds a user who pauses, revokes or enrols very often, so that others are served meanwhile. */
import { describe, expect, it } from 'vitest';
import { MemoryDevices } from '../../src/backends/memory/devices.ts';
import {
  CLIENT_RESUMES_AT_ONCE,
  DEVICE_TOKENS,
  ENROLMENTS_BEGUN_OF_NETWORK,
  ENROLMENTS_OPEN,
  ENROLMENT_MS,
} from '../../src/core/limits.ts';
import type { EventLoop } from '../../src/core/ports.ts';
import { systemLoop } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { testCore, user, type TestOptions } from '../kit/core.ts';
import { newDeviceKey } from '../kit/device-key.ts';

const alice = user('alice');
const COMMANDS = 600;

/** Opens a core with `COMMANDS` queued commands of alice. `turns`: how often it has let other work run. */
async function withQueued(options: TestOptions = {}) {
  let turns = 0;
  const loop: EventLoop = { ...systemLoop, afterOthers: (run) => (turns++, systemLoop.afterOthers(run)) };
  const test = await testCore({ ...options, loop });
  for (let n = 0; n < COMMANDS; n++)
    await test.core.rpc.invoke(alice, {
      ...{ userId: 'alice', clientId: 'absent', action: 'echo', params: null, commandId: `c${n}` },
      ...{ waitFor: 'admitted', connectWithinMs: 60_000 },
    });
  return { ...test, turnsOf: async (work: Promise<unknown>) => (await work, turns) };
}

describe('a user who stops very many calls', () => {
  it('lets other work run between parts of what a pause cancels', async () => {
    const { core, turnsOf, ...rest } = await withQueued();
    await using _ = rest;
    const paused = core.pauses.pause(alice, { all: true, reason: 'stop', queued: 'cancel' });
    expect(await turnsOf(paused)).toBeGreaterThanOrEqual(2);
    expect((await paused).cancelled).toBe(COMMANDS);
  });

  it('lets other work run between parts of what a revocation cancels, which reads no ended commands', async () => {
    const { core, turnsOf, ...rest } = await withQueued({
      wrap: ({ inspector, ...backend }) => ({
        ...backend,
        inspector: { ...inspector, list: () => expect.fail('ended commands were read') },
      }),
    });
    await using _ = rest;
    const revoked = core.revocations.revoke(alice, { issuedBefore: 1, reason: 'lost' });
    expect(await turnsOf(revoked)).toBeGreaterThanOrEqual(2);
    expect((await revoked).cancelled).toBe(COMMANDS);
  });
});

describe('the clients of a user', () => {
  it('resume in a loop only as often as allowed, and pause whenever one is not paused', async () => {
    await using test = await testCore();
    const { pauses } = test.core;
    const loop = async (n: number): Promise<void> => {
      await pauses.pauseClient(alice, `tab-${n % 3}`, { reason: 'stop' });
      await pauses.resumeClient(alice, `tab-${n % 3}`);
    };
    const most = CLIENT_RESUMES_AT_ONCE / 2;
    for (let n = 0; n < most; n++) await loop(n);
    await pauses.pauseClient(alice, 'tab-0', { reason: 'stop' });
    await expect(pauses.resumeClient(alice, 'tab-0')).rejects.toMatchObject({ code: 'rate_limited' });
    await expect(pauses.pauseClient(alice, 'tab-0', { reason: 'again' })).rejects.toMatchObject({
      code: 'rate_limited',
    });
    await pauses.pauseClient(alice, 'tab-1', { reason: 'stop' });
    await pauses.pauseClient(user('bob'), 'tab', { reason: 'stop' });
    expect(await pauses.resumeClient(user('bob'), 'tab')).toBe(1);
    await test.clock.advance(10_000);
    expect(await pauses.resumeClient(alice, 'tab-0')).toBe(1);
  });
});

describe('proofs of devices', () => {
  const claims = { name: 'Kiosk', clientType: 'browser' } as const;
  const counting = (used: string[]): TestOptions => ({
    wrap: ({ tickets, ...backend }) => ({
      ...backend,
      tickets: { take: (hash, ttlMs) => (used.push(hash), tickets.take(hash, ttlMs)) },
    }),
  });

  it('are remembered only if they get something, and beyond a rate they are refused', async () => {
    const used: string[] = [];
    await using test = await testCore(counting(used));
    const { devices } = test.core;
    const key = await newDeviceKey(() => test.clock.now());
    await expect(devices.token(await key.prove('token'))).rejects.toMatchObject({ code: 'not_found' });
    const begin = async () => devices.begin({ ...claims, proof: await key.prove('enrol') }, 'net');
    const { userCode } = await begin();
    expect((await devices.token(await key.prove('token'))).state).toBe('open');
    expect(used).toHaveLength(1);
    await devices.decide(alice, { code: userCode, decision: 'confirm' });
    for (let n = 0; n < DEVICE_TOKENS; n++) await devices.token(await key.prove('token'));
    await expect(devices.token(await key.prove('token'))).rejects.toMatchObject({ code: 'rate_limited' });
    expect(used).toHaveLength(1 + DEVICE_TOKENS);
  });

  it('begin only so many enrolments of one network, also if each is denied at once', async () => {
    await using test = await testCore();
    const { devices } = test.core;
    const key = await newDeviceKey(() => test.clock.now());
    const begin = async (network: string) => devices.begin({ ...claims, proof: await key.prove('enrol') }, network);
    for (let n = 0; n < ENROLMENTS_BEGUN_OF_NETWORK; n++) {
      const { userCode } = await begin('net');
      await devices.decide(alice, { code: userCode, decision: 'deny' });
    }
    await expect(begin('net')).rejects.toMatchObject({ code: 'rate_limited' });
    await begin('another');
    await test.clock.advance(ENROLMENT_MS + 1);
    await begin('net');
  });
});

it('a store remembers the devices that were denied last, until their enrolment would have expired', async () => {
  const clock = new FakeClock();
  const devices = new MemoryDevices(clock);
  const deny = (n: number): void => {
    const at = clock.now();
    const claims = { name: 'Kiosk', clientType: 'browser', actions: null, network: 'net' } as const;
    void devices.begin({ ...claims, codeHash: `c${n}`, keyId: `k${n}`, at, expiresAt: at + ENROLMENT_MS });
    void devices.decide(`c${n}`, null);
  };
  for (let n = 0; n <= ENROLMENTS_OPEN; n++) deny(n);
  expect([devices.ofKey('k0'), devices.ofKey('k1')]).toEqual([null, { kind: 'denied' }]);
  await clock.advance(ENROLMENT_MS);
  expect(devices.ofKey('k1')).toBe(null);
});
