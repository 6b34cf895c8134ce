/**
 * Tests links that are cut within a command and within a result: no command is lost or runs twice, and none is written
 * again that arrived.
 */
import { expect, test } from 'vitest';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { KEEPS_PARAMS } from '../kit/store.ts';
import { startCuttingProxy } from '../kit/tcp-proxy.ts';
import { startRealRelay } from './kit/real-relay.ts';

/** The cuts are so many bytes apart. Each byte is cut with CALLBOARD_TEST_CUTS=1. */
const APART = Number(process.env['CALLBOARD_TEST_CUTS'] ?? 11);
/** More bytes than a command takes on the way down, and than its acknowledgement and its result take on the way up. */
const BYTES = { down: 330, up: 250 } as const;
const PARAMS = { text: 'x'.repeat(100) };

test.each(['down', 'up'] as const)('a link that is cut anywhere on the way %s', async (way) => {
  await using relay = await startRealRelay();
  await using proxy = await startCuttingProxy(relay.linkUrl);
  const runs = new Map<string, number>();
  await using runtime = createRuntime({
    url: `${proxy.url.replace('http', 'ws')}/connect`,
    token: () => relay.token('alice', 'connect'),
    clientId: 'desk',
    clientType: 'console',
    onStatus: () => {},
    random: () => 0,
    actions: [
      {
        name: 'count',
        run: (params, { commandId }) => {
          runs.set(commandId, (runs.get(commandId) ?? 0) + 1);
          return params;
        },
      },
    ],
  });
  runtime.connect();
  await runtime.ready();
  await using caller = createHttpCaller({ url: relay.url, token: () => relay.token('alice', 'invoke') });
  const seen = { completed: 0, notReceived: 0 };
  for (let bytes = 1; bytes <= BYTES[way]; bytes += APART) {
    const commandId = `c${bytes}`;
    proxy.cutAfter(way, bytes);
    const target = { userId: 'alice', clientId: 'desk', action: 'count' };
    const ended = await caller.invoke(target, PARAMS, { commandId, connectWithinMs: 30_000 });
    const isNotReceived = 'error' in ended && ended.error?.code === 'not_received';
    if (isNotReceived) seen.notReceived++;
    else seen.completed++;
    const expected = isNotReceived ? ['failed', 0] : ['completed', 1];
    expect([bytes, ended.outcome, runs.get(commandId) ?? 0]).toEqual([bytes, ...expected]);
  }
  expect(proxy.cuts).toBeGreaterThan(5);
  // Only a relay that keeps no params gives up what never arrived.
  if (way === 'up' || KEEPS_PARAMS) expect(seen.notReceived).toBe(0);
  expect(seen.completed).toBeGreaterThan(0);
});
