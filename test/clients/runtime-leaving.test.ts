/** Tests how a runtime closes: it announces that it leaves, and reports what still runs. */
import { describe, expect, test } from 'vitest';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { settle } from '../kit/clock.ts';
import { startFakeRelay } from '../kit/fake-relay.ts';
import { gate, startRuntimeBench, type RuntimeBench } from './kit/runtime-bench.ts';

/** Watches a promise: `done` says whether it has settled. */
function watch(promise: Promise<void>): { readonly done: boolean } {
  const seen = { done: false };
  void promise.then(() => (seen.done = true));
  return seen;
}

/** Starts a runtime with a handler that ends on request. */
async function slowBench() {
  const bench = await startRuntimeBench();
  const go = gate();
  bench.runtime.handle('slow', {}, () => go.opened);
  const link = await bench.up();
  link.letsGo = false;
  return { ...bench, bench, link, go };
}

const closedByClient = { state: 'closed', reason: 'client_closed', message: 'This program closed the link.' };

describe('a runtime that closes', () => {
  test('runs what was dispatched before the relay’s answer, and closes once its ends were acknowledged', async () => {
    const { bench, link, go } = await slowBench();
    await using _ = bench;
    link.command('before', 'slow');
    await link.next('ack');
    const closing = bench.runtime.close();
    const closed = watch(closing);
    await link.next('closing');
    link.command('crossed', 'slow');
    expect(await link.next('ack')).toMatchObject({ command_id: 'crossed' });
    link.send({ type: 'closed' }, { commands: ['before', 'crossed'] });
    link.command('after', 'slow');
    expect(await link.next('error')).toMatchObject({ command_id: 'after', code: 'client_denied' });
    link.acknowledge('after');
    go.open();
    await link.next('result');
    await link.next('result');
    link.acknowledge('before');
    expect(await link.untaken('ack')).toBe(0);
    expect([closed.done, bench.runtime.status.state]).toEqual([false, 'connected']);
    link.acknowledge('crossed');
    await closing;
    await link.closed;
    expect(bench.runtime.status).toEqual(closedByClient);
    expect([bench.dropped, bench.errors]).toEqual([[], []]);
    expect(link.frames.filter(({ type }) => type === 'closing')).toHaveLength(1);
  });

  test('without commands waits for the answer only', async () => {
    const { bench, link } = await slowBench();
    await using _ = bench;
    const closing = bench.runtime.close();
    const closed = watch(closing);
    await link.next('closing');
    await link.untaken('ack');
    expect(closed.done).toBe(false);
    link.send({ type: 'closed' }, { commands: [] });
    await closing;
    expect(bench.runtime.status).toEqual(closedByClient);
  });

  test('returns the same promise when closed twice, and asks once', async () => {
    const { bench, link } = await slowBench();
    await using _ = bench;
    const first = bench.runtime.close();
    expect(bench.runtime.close({ withinMs: 0 })).toBe(first);
    await link.next('closing');
    expect(await link.untaken('closing')).toBe(0);
    link.send({ type: 'closed' }, { commands: [] });
    await first;
    expect(bench.runtime.close()).toBe(first);
  });

  test('closes with an older relay that does not know `closing`, and refuses commands that it still sends', async () => {
    const { bench, link, go } = await slowBench();
    await using _ = bench;
    link.command('c1', 'slow');
    await link.next('ack');
    const closing = bench.runtime.close();
    await link.next('closing');
    link.send({ type: 'refused', code: 'invalid_argument', message: 'type: there is no frame', frame: 'closing' });
    link.command('c2', 'slow');
    expect(await link.next('error')).toMatchObject({ command_id: 'c2', code: 'client_denied' });
    link.acknowledge('c2');
    go.open();
    await link.next('result');
    link.acknowledge('c1');
    await closing;
    expect([bench.dropped, bench.errors]).toEqual([[], []]);
  });

  test('waits no longer than allowed for the answer and for handlers', async () => {
    const { bench, link } = await slowBench();
    await using _ = bench;
    link.command('c1', 'slow');
    await link.next('ack');
    const closing = bench.runtime.close();
    const closed = watch(closing);
    await bench.clock.advance(9_999);
    expect(closed.done).toBe(false);
    await bench.clock.advance(1);
    await closing;
    await link.closed;
    expect(bench.runtime.status).toEqual(closedByClient);
  });

  test('sends nothing that only a staying client sends', async () => {
    const { bench, link } = await slowBench();
    await using _ = bench;
    const closing = bench.runtime.close();
    bench.runtime.handle('late', {}, () => 1);
    bench.runtime.reportContexts([{ contextId: 'x', status: 'idle', ownership: 'worker' }]);
    bench.runtime.site({ siteId: 'board' });
    await settle();
    await bench.clock.advance(1_000);
    for (const type of ['actions', 'report', 'site'] as const) expect(await link.untaken(type)).toBe(0);
    link.send({ type: 'closed' }, { commands: [] });
    await closing;
  });
});

describe('a runtime that closes without a link', () => {
  test('closes at once before it connected', async () => {
    await using relay = await startFakeRelay();
    const runtime = createRuntime({ url: relay.url, token: 't', clientId: 'c', clientType: 'web' });
    await runtime.close();
    expect([runtime.status, relay.connections]).toEqual([closedByClient, 0]);
  });

  test('closes at once while it waits for its token, or for the socket to open', async () => {
    await using relay = await startFakeRelay();
    const options = { url: relay.url, clientId: 'c', clientType: 'web' } as const;
    const tokens = createRuntime({ ...options, token: () => new Promise<string>(() => {}) });
    tokens.connect();
    await tokens.close();
    expect(tokens.status).toEqual(closedByClient);
    class NeverOpens extends EventTarget {
      readonly bufferedAmount = 0;
      send(): void {}
      close(): void {}
    }
    const opens = createRuntime({ ...options, token: 't', WebSocket: NeverOpens });
    opens.connect();
    await settle();
    await opens.close();
    expect(opens.status).toEqual(closedByClient);
  });

  test('waits for the welcome once it sent hello, because commands may follow, and then asks', async () => {
    await using bench = await startRuntimeBench({ admit: () => 'silence' });
    bench.runtime.handle('quick', {}, () => 1);
    bench.runtime.connect();
    const link = await bench.relay.link();
    link.letsGo = false;
    const closing = bench.runtime.close();
    const closed = watch(closing);
    await settle();
    expect(closed.done).toBe(false);
    link.send({ type: 'welcome', node_id: 'n1', ping_ms: 1, dead_ms: 60_000, max_frame_bytes: 1_000, in_flight: 1 });
    link.command('c1', 'quick');
    await link.next('closing');
    await link.next('result');
    link.acknowledge('c1');
    link.send({ type: 'closed' }, { commands: [] });
    await closing;
    expect(bench.runtime.status).toEqual(closedByClient);
  });

  test.each(['bye', 'drop'] as const)('is done when its hello is answered by a %s', async (how) => {
    await using bench = await startRuntimeBench({ admit: () => 'silence' });
    bench.runtime.connect();
    const link = await bench.relay.link();
    const closing = bench.runtime.close();
    await settle();
    if (how === 'bye') link.bye('draining');
    else link.drop();
    await closing;
    expect([bench.runtime.status, bench.relay.connections]).toEqual([closedByClient, 1]);
  });

  test('reconnects with unacknowledged ends, and asks before anything else', async () => {
    const { bench, link, go } = await slowBench();
    await using _ = bench;
    link.command('c1', 'slow');
    await link.next('ack');
    const away = bench.until('disconnected');
    link.drop();
    const { retryInMs } = await away;
    go.open();
    await settle();
    const closing = bench.runtime.close();
    await bench.clock.advance(retryInMs ?? 0);
    const again = await bench.relay.link();
    await again.next('result');
    expect(again.frames.map(({ type }) => type)).toEqual(['closing', 'result']);
    again.acknowledge('c1');
    await closing;
    expect(bench.dropped).toEqual([]);
  });

  test.each([false, true])(
    'and lost it while closing reconnects only before the answer (answered: %s)',
    async (answered) => {
      const { bench, link, go } = await slowBench();
      await using _ = bench;
      link.command('c1', 'slow');
      await link.next('ack');
      const closing = bench.runtime.close({ withinMs: 60_000 });
      await link.next('closing');
      if (answered) link.send({ type: 'closed' }, { commands: ['c1'] });
      await link.untaken('ack');
      const back = answered ? null : comesBack(bench);
      link.drop();
      if (back) {
        const again = await back;
        await again.next('closing');
        go.open();
        await again.next('result');
        again.acknowledge('c1');
      }
      await closing;
      await settle();
      expect(bench.relay.connections).toBe(answered ? 1 : 2);
      expect(bench.runtime.status).toEqual(closedByClient);
    },
  );
});

async function comesBack(bench: RuntimeBench) {
  const { retryInMs } = await bench.until('disconnected');
  await bench.clock.advance(retryInMs ?? 0);
  return bench.relay.link();
}
