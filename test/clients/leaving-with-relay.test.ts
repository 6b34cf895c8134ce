/** Tests clients that close and start again while they are called, with a real relay. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createHttpCaller, createLinkCaller, type Caller } from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import type { Invocation } from '../../src/core/core.ts';
import { toJson } from '../../src/core/json.ts';
import { turns } from '../kit/clock.ts';
import { admin, user } from '../kit/core.ts';
import { numRuns } from '../kit/store.ts';
import { gate } from './kit/runtime-bench.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

const KEY = { userId: 'alice', clientId: 'desk' };

/** The number of times that each command ran, by its id. */
type Ledger = Map<string, number>;

/** Lets all other work proceed for a while. */
async function pause(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) await turns();
}

/** Returns the link address of the n-th instance of the client. With two relays, instances alternate between them. */
function linkOf({ url, link }: RealRelay, n: number): string {
  return n % 2 === 0 ? link : `${url.replace(/^http/, 'ws')}/connect`;
}

/** Starts a new instance of the client `desk`. Its handler takes as many turns of the event loop as the params say. */
function start(relay: RealRelay, ledger: Ledger, n: number): Runtime {
  const token = () => relay.token('alice', 'connect');
  const runtime = createRuntime({ url: linkOf(relay, n), token, clientId: KEY.clientId, clientType: 'console' });
  runtime.handle('work', {}, async ({ turns: wanted }, { commandId }) => {
    ledger.set(commandId, (ledger.get(commandId) ?? 0) + 1);
    await pause(Number(wanted ?? 0));
    return runtime.instanceId;
  });
  runtime.connect();
  return runtime;
}

const callers: readonly [string, (relay: RealRelay) => Caller][] = [
  ['HTTP', ({ url, token }) => createHttpCaller({ url, token: () => token('alice', 'invoke') })],
  [
    'a link',
    ({ url, token }) => {
      return createLinkCaller({ url: `${url.replace(/^http/, 'ws')}/connect`, token: () => token('alice', 'invoke') });
    },
  ],
];

describe.each(callers)('a client closes and starts again ten times, while a caller over %s calls it', (_, create) => {
  test.each([
    ['before the new run is connected', { ready: false, connectWithinMs: 30_000 }],
    ['once it is connected', { ready: true, connectWithinMs: 0 }],
  ])('%s: each call completes on the new run', async (_when, { ready, connectWithinMs }) => {
    await using relay = await startRealRelay();
    await using caller = create(relay);
    const ledger: Ledger = new Map();
    let runtime = start(relay, ledger, 0);
    await runtime.ready();
    for (let round = 1; round <= 10; round++) {
      await runtime.close();
      runtime = start(relay, ledger, round);
      if (ready) await runtime.ready();
      const invocation = await caller.invoke({ ...KEY, action: 'work' }, {}, { connectWithinMs });
      expect(invocation).toMatchObject({ outcome: 'completed', result: runtime.instanceId });
    }
    await runtime.close();
    expect([...ledger.values()]).toEqual(Array(10).fill(1));
  });
});

test('a command that runs while its client closes completes, and close resolves after the relay has its result', async () => {
  await using relay = await startRealRelay();
  const runtime = start(relay, new Map(), 0);
  const [started, go] = [gate(), gate()];
  runtime.handle('slow', {}, async () => {
    started.open();
    await go.opened;
    return 'kept';
  });
  await runtime.ready();
  const requested = { ...KEY, action: 'slow', params: null, commandId: 'c1' };
  const call = relay.callboard.core.rpc.invoke(user('alice'), requested);
  await started.opened;
  const closed = runtime.close();
  await gone(relay);
  const refused = await relay.callboard.core.rpc.invoke(user('alice'), { ...requested, commandId: 'c2' });
  expect(refused).toMatchObject({ kind: 'refused', code: 'not_connected' });
  expect(runtime.status.state).toBe('connected');
  go.open();
  await closed;
  expect(runtime.status).toMatchObject({ state: 'closed', reason: 'client_closed' });
  const record = await relay.callboard.core.delivery.command(admin, { ...KEY, commandId: 'c1' });
  expect(record).toMatchObject({ outcome: 'completed', attempts: 1 });
  expect(await call).toMatchObject({ kind: 'outcome', result: '"kept"' });
  expect(await relay.callboard.core.connections.get(admin, KEY)).toMatchObject({ disconnectCause: 'client_closed' });
});

/**
 * Resolves once the relay refuses calls of the client. It shows the client as disconnected a little earlier, and a call
 * of that moment waits for the next link.
 */
async function gone({ callboard }: RealRelay): Promise<void> {
  const { rpc } = callboard.core;
  for (;;) {
    const { firstRefusal } = await rpc.preflight(user('alice'), { ...KEY, action: 'slow', params: null });
    if (firstRefusal?.code === 'not_connected') return;
    await turns();
  }
}

/**
 * The steps of a scenario. `call` invokes a command whose handler takes this many turns. `swap`: the instance closes,
 * and then the next one starts. `overlap`: the next instance starts as soon as the relay has released the old one,
 * which may still run commands. `away`: the instance closes, and the next one starts with the next step.
 */
type Move =
  | { readonly do: 'call'; readonly turns: number; readonly connectWithinMs: number }
  | { readonly do: 'swap' | 'overlap' | 'away' }
  | { readonly do: 'pause'; readonly turns: number };

const moves: fc.Arbitrary<readonly Move[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant('call' as const),
        turns: fc.nat(6),
        connectWithinMs: fc.constantFrom(0, 30_000, 30_000),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('swap' as const, 'overlap' as const, 'away' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), turns: fc.nat(8) }) },
  ),
  { minLength: 5, maxLength: 60 },
);

test('while runs of a client close and start, no command runs twice, and every call ends correctly', async () => {
  await using relay = await startRealRelay();
  const ledger: Ledger = new Map();
  let made = 0;
  await fc.assert(
    fc.asyncProperty(moves, async (plan) => {
      const calls = new Map<string, Promise<Invocation>>();
      const closes: Promise<void>[] = [];
      let runtime: Runtime | null = null;
      const begin = (): Runtime => start(relay, ledger, made++);
      for (const move of plan) {
        const current: Runtime = (runtime ??= begin());
        if (move.do === 'pause') await pause(move.turns);
        else if (move.do === 'call') {
          const commandId = `c${made++}`;
          const { connectWithinMs } = move;
          const params = toJson({ turns: move.turns });
          const requested = { ...KEY, action: 'work', params, commandId, connectWithinMs };
          calls.set(commandId, relay.callboard.core.rpc.invoke(user('alice'), requested));
        } else {
          // The instance must be bound before the next one starts. Otherwise it could replace its successor.
          if (move.do === 'overlap') await current.ready();
          const closed = current.close();
          closes.push(closed);
          await (move.do === 'overlap' ? gone(relay) : closed);
          runtime = move.do === 'away' ? null : begin();
        }
      }
      // All parked commands run on the last instance.
      const last: Runtime = runtime ?? begin();
      const ends = await Promise.all([...calls].map(async ([id, call]) => [id, await call] as const));
      await Promise.all([...closes, last.close()]);
      for (const [id, end] of ends) {
        const runs = ledger.get(id) ?? 0;
        if (end.kind === 'refused') expect([end.code, runs]).toEqual(['not_connected', 0]);
        else if (end.kind === 'ended') throw new Error('its record is no longer kept');
        else expect([end.command.outcome, end.command.attempts, runs]).toEqual(['completed', 1, 1]);
      }
    }),
    { numRuns: numRuns(100) },
  );
});
