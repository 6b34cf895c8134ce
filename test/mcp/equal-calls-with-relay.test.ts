/**
 * Tests that each wanted call of an agent runs once, by the count of the handler: equal calls one after another and side
 * by side, of one host and of two, and calls that were cancelled or cut and are repeated. CALLBOARD_LONG_TESTS=on repeats
 * each pattern a hundred times, and the cut calls a thousand times.
 */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Runtime } from '../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { startResettingProxy } from '../kit/tcp-proxy.ts';
import {
  GENERATIONS,
  callTool,
  connectClient,
  overHttp,
  overStdio,
  textOf,
  type Agent,
  type Generation,
} from './kit/agents.ts';

const LONG = process.env['CALLBOARD_LONG_TESTS'] === 'on';
const TIMES = LONG ? 100 : 3;
const CUTS = LONG ? 1_000 : 40;
const TIMEOUT_MS = LONG ? 1_800_000 : 120_000;
const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');

const at = async (relay: RealRelay) => ({ url: relay.url, token: await relay.token('alice', 'invoke') });
const WAYS: Readonly<Record<string, (generation: Generation, relay: RealRelay) => Promise<Agent>>> = {
  'over HTTP': async (generation, relay) => overHttp(generation, await at(relay)),
  'over callboard mcp': async (generation, relay) => overStdio(generation, await at(relay), BIN),
};

/** A page: `look` reads what `click` and `type` changed. `slow` ends when `release` is called, whatever its signal. */
function page() {
  const state = { clicks: 0, looks: 0, text: '', slow: 0, aborted: 0 };
  let held = Promise.withResolvers<void>();
  let began = Promise.withResolvers<void>();
  const define = (runtime: Runtime): void => {
    runtime.handle('look', { effects: { readOnly: true } }, () => {
      state.looks++;
      return { clicks: state.clicks, text: state.text };
    });
    runtime.handle('click', {}, () => ({ clicks: ++state.clicks }));
    runtime.handle('type', {}, ({ key }) => {
      state.text += String(key);
      return { typed: state.text.length };
    });
    runtime.handle('slow', {}, async (_, { signal }) => {
      state.slow++;
      signal.addEventListener('abort', () => state.aborted++);
      began.resolve();
      await held.promise;
      return { slow: state.slow };
    });
  };
  return {
    state,
    define,
    began: () => began.promise,
    release: () => held.resolve(),
    again() {
      held = Promise.withResolvers();
      began = Promise.withResolvers();
    },
  };
}

describe.each(Object.keys(WAYS))('an agent %s', (way) => {
  describe.each(GENERATIONS)('with %s', (generation) => {
    it(
      'gets each wanted call once: look, click, look; five equal keys at once; two hosts',
      async () => {
        await using relay = await startRealRelay({ mcp: 'on' });
        const { state, define } = page();
        await using _desk = await connectClient(relay, define);
        await using agent = await WAYS[way]!(generation, relay);
        await using other = await WAYS[way]!(generation, relay);
        for (let n = 1; n <= TIMES; n++) {
          const before = await agent.call('look');
          expect(before.structuredContent).toMatchObject({ clicks: 2 * (n - 1) });
          await Promise.all([agent.call('click'), other.call('click')]);
          expect((await agent.call('look')).structuredContent).toMatchObject({ clicks: 2 * n });
          const keys = Array.from({ length: 5 }, () => agent.call('type', { key: 'l' }));
          for (const { isError } of await Promise.all(keys)) expect(isError ?? false).toBe(false);
          expect(state.text).toHaveLength(5 * n);
        }
        expect(state).toMatchObject({ clicks: 2 * TIMES, looks: 2 * TIMES });
      },
      TIMEOUT_MS,
    );

    it(
      'a cancelled call reaches the client at once, and its repeat gets its end',
      async () => {
        await using relay = await startRealRelay({ mcp: 'on' });
        const at = page();
        const { state } = at;
        await using _desk = await connectClient(relay, at.define);
        await using agent = await WAYS[way]!(generation, relay);
        await using other = await WAYS[way]!(generation, relay);
        for (let n = 1; n <= TIMES; n++) {
          at.again();
          const cancelled = new AbortController();
          const lost = agent.call('slow', {}, { signal: cancelled.signal }).catch(() => null);
          await at.began();
          cancelled.abort();
          expect(await lost).toBeNull();
          await expect.poll(() => state.aborted).toBe(n);
          const repeat = agent.call('slow');
          at.release();
          const answer = await repeat;
          expect(textOf(answer)).toContain('This call did not run the action again');
          expect(textOf(answer)).toContain(`"slow":${n}`);
          expect(answer.structuredContent).toBeUndefined();
          expect(state.slow).toBe(n);
        }
        expect(textOf(await other.call('slow'))).toBe(`{"slow":${TIMES + 1}}`);
        expect(textOf(await agent.call('slow'))).toBe(`{"slow":${TIMES + 2}}`);
      },
      TIMEOUT_MS,
    );
  });
});

it(
  'an answer that is cut anywhere is repeated without a second run, and undisturbed equal calls all run',
  async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const { state, define } = page();
    await using _desk = await connectClient(relay, define);
    await using proxy = await startResettingProxy(relay.url);
    const token = await relay.token('alice', 'invoke');
    const [near, direct] = [
      { url: proxy.url, token },
      { url: relay.url, token },
    ];
    await callTool(near, 'click');
    const whole = proxy.received;
    for (let n = 1; n <= CUTS; n++) {
      proxy.resetAfter(n % (whole + 1));
      await callTool(near, 'click').catch(() => null);
      proxy.resetAfter(Infinity);
      const { result } = await callTool(direct, 'click');
      expect(textOf(result)).toContain(`"clicks":${n + 1}`);
      expect(state.clicks).toBe(n + 1);
    }
    for (let n = 1; n <= CUTS; n++) await callTool(direct, 'click');
    expect(state.clicks).toBe(2 * CUTS + 1);
  },
  TIMEOUT_MS,
);
