/** Tests when a relay loads the modules that only some requests need. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { silentLog } from '../../src/core/ports.ts';
import { FakeClock } from '../kit/clock.ts';
import { eventually } from '../kit/patience.ts';

const opened = vi.hoisted(() => ({ servers: 0 }));
vi.mock('graphql-yoga', async (original) => {
  const real = await original<typeof import('graphql-yoga')>();
  const createYoga = (...given: Parameters<typeof real.createYoga>): unknown => {
    opened.servers++;
    return real.createYoga(...given);
  };
  return { ...real, createYoga };
});

/** The length of a second of the relay's clock, in milliseconds. */
const SECOND = 1_000;

async function start() {
  const clock = new FakeClock();
  const relay = await openCallboard({ config: { auth: { adminTokens: ['a'.repeat(32)] } }, clock, log: silentLog });
  onTestFinished(() => relay.close());
  const url = await relay.listen();
  const before = opened.servers;
  relay.preload();
  return { clock, url, loaded: () => opened.servers - before };
}

it('loads the modules of rare requests once no request has arrived for a second', async () => {
  const { clock, url, loaded } = await start();
  await fetch(`${url}/healthz`);
  await clock.advance(SECOND);
  expect(loaded()).toBe(0);
  await clock.advance(SECOND);
  await eventually(() => expect(loaded()).toBe(1));
});

it('loads them five seconds after its start even if requests arrive all the time', async () => {
  const { clock, url, loaded } = await start();
  for (let second = 1; second <= 4; second++) {
    await fetch(`${url}/healthz`);
    await clock.advance(SECOND);
    expect(loaded()).toBe(0);
  }
  await fetch(`${url}/healthz`);
  await clock.advance(SECOND);
  await eventually(() => expect(loaded()).toBe(1));
  await clock.advance(60 * SECOND);
  expect(loaded()).toBe(1);
});
