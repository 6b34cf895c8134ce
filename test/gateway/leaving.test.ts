/** Tests a client that sends `closing` before it leaves. */
import { describe, expect, test } from 'vitest';
import { IN_FLIGHT, REPLACED_GRACE_MS } from '../../src/core/limits.ts';
import { meanwhile, settle } from '../kit/clock.ts';
import { admin, user } from '../kit/core.ts';
import { caller, client, startGateway, invoke, type TestGateway, type Peer } from './kit/test-gateway.ts';

const KEY = { userId: 'alice', clientId: 'tab' };
const done = (peer: Peer, command_id: string) => peer.send({ type: 'result', command_id }, { ok: true });
const connection = ({ core }: TestGateway) => core.connections.get(user('alice'), KEY);
const completed = { kind: 'outcome', command: { outcome: 'completed' } };

/** Sends `closing`. Resolves with the commands that the relay lists in its answer `closed`. */
async function leave(peer: Peer): Promise<unknown> {
  peer.send({ type: 'closing' });
  return JSON.parse((await peer.next('closed')).payload ?? 'null');
}

describe('a client that sends closing', () => {
  test('gets an answer, counts as disconnected at once, and is no longer a target', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    expect(await leave(peer)).toEqual({ commands: [] });
    expect(await connection(at)).toMatchObject({ disconnectedAt: at.clock.now(), disconnectCause: 'client_closed' });
    expect(await invoke(at, 'c1')).toMatchObject({ kind: 'refused', code: 'not_connected' });
    const parked = invoke(at, 'c2', { connectWithinMs: 60_000 });
    await settle();
    expect(await at.core.delivery.command(admin, { ...KEY, commandId: 'c2' })).toMatchObject({ stage: 'admitted' });
    expect(peer.seen('command')).toEqual([]);
    const next = await client(at, { instance_id: 'i2' });
    expect(await next.next('command')).toMatchObject({ command_id: 'c2' });
    done(next, 'c2');
    expect(await parked).toMatchObject(completed);
    peer.ws.close(1000, 'client_closed');
    expect(await peer.closed).toMatchObject({ code: 1000 });
    await expect.poll(() => at.gateway.size).toBe(1);
    expect(await connection(at)).toMatchObject({ instanceId: 'i2', disconnectedAt: null });
    expect(at.counts.get('links_closed:client_closed')).toBe(1);
  });

  test('learns which commands crossed; those queued behind them go to its next link, in order', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const ids = Array.from({ length: IN_FLIGHT + 5 }, (_, i) => `c${i}`);
    const calls = [];
    for (const id of ids) {
      calls.push(invoke(at, id));
      await settle();
    }
    await expect.poll(() => peer.seen('command').length).toBe(IN_FLIGHT);
    expect(await leave(peer)).toEqual({ commands: ids.slice(0, IN_FLIGHT) });
    const next = await client(at, { instance_id: 'i2' });
    await expect.poll(() => next.seen('command').length).toBe(5);
    expect(next.seen('command').map(({ command_id }) => command_id)).toEqual(ids.slice(IN_FLIGHT));
    // The link of a leaving client gets no more commands, even when one of its commands ends.
    for (const id of ids.slice(0, IN_FLIGHT)) done(peer, id);
    for (const id of ids.slice(IN_FLIGHT)) done(next, id);
    for (const call of calls) expect(await call).toMatchObject({ ...completed, command: { attempts: 1 } });
    expect(peer.seen('command')).toHaveLength(IN_FLIGHT);
    expect(peer.seen('result_ack').every(({ recorded }) => recorded === 'recorded')).toBe(true);
  });

  test('keeps its link beside its successor, and the commands that crossed are not affected', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const call = invoke(at, 'c1');
    await peer.next('command');
    expect(await leave(peer)).toEqual({ commands: ['c1'] });
    const next = await client(at, { instance_id: 'i2' });
    expect(next.welcome).toMatchObject({ resumed: false, replaced_instance_id: 'i1' });
    peer.send({ type: 'ack', command_id: 'c1' });
    for (let waited = 0; waited < 3 * REPLACED_GRACE_MS; waited += 1_000) {
      await at.clock.advance(1_000);
      await peer.sync();
    }
    await at.core.rpc.cancel(admin, { ...KEY, commandId: 'c1' }, 'enough');
    expect(await peer.next('cancel')).toMatchObject({ command_id: 'c1', reason: 'enough' });
    expect(next.seen('cancel')).toEqual([]);
    done(peer, 'c1');
    expect(await call).toMatchObject(completed);
    expect(await peer.next('result_ack')).toMatchObject({ command_id: 'c1', recorded: 'recorded' });
    const again = invoke(at, 'c2');
    expect(await next.next('command')).toMatchObject({ command_id: 'c2' });
    done(next, 'c2');
    expect(await again).toMatchObject(completed);
  });

  test('and disconnects without reporting leaves its commands to the grace of a replaced instance', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const call = invoke(at, 'c1');
    await peer.next('command');
    await leave(peer);
    await client(at, { instance_id: 'i2' });
    await at.clock.advance(REPLACED_GRACE_MS);
    peer.ws.close(1000);
    await expect.poll(() => at.gateway.size).toBe(1);
    await at.clock.advance(REPLACED_GRACE_MS);
    const error = { code: 'instance_replaced' };
    expect(await call).toMatchObject({ command: { outcome: 'outcome_unknown', reason: error.code } });
  });

  test('may reconnect as the same instance: the new link replaces the leaving one', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const call = invoke(at, 'c1');
    await peer.next('command');
    await leave(peer);
    const again = await client(at);
    expect(again.welcome).toMatchObject({ resumed: true });
    expect(await peer.end()).toMatchObject({ code: 4409 });
    expect(await connection(at)).toMatchObject({ instanceId: 'i1', disconnectedAt: null });
    done(again, 'c1');
    expect(await call).toMatchObject(completed);
  });

  test('is answered each time, and its link stays up', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const call = invoke(at, 'c1');
    await peer.next('command');
    expect(await leave(peer)).toEqual({ commands: ['c1'] });
    await at.clock.advance(50_000);
    peer.send({ type: 'pong' });
    await peer.sync();
    expect(await leave(peer)).toEqual({ commands: [] });
    await at.clock.advance(50_000);
    await peer.sync();
    expect([peer.seen('bye'), at.gateway.size]).toEqual([[], 1]);
    expect(await call).toMatchObject({ command: { outcome: 'outcome_unknown', reason: 'response_timeout' } });
  });

  test('may no longer advertise, report or host, and is otherwise not restricted', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    await leave(peer);
    peer.send({ type: 'actions' }, { actions: [{ name: 'other' }] });
    expect(await peer.next('refused')).toMatchObject({ frame: 'actions', code: 'not_connected' });
    peer.send({ type: 'report' }, { contexts: { snapshot: true, set: [] } });
    expect(await peer.next('refused')).toMatchObject({ frame: 'report', code: 'not_connected' });
    peer.send({ type: 'site', ref: 's1', op: 'register', site_id: 'board' }, {});
    expect(await peer.next('refused')).toMatchObject({ frame: 'site', ref: 's1', code: 'not_connected' });
    await peer.sync();
    expect(peer.seen('bye')).toEqual([]);
  });

  test('is shown to watchers as disconnected, once', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const changes: string[] = [];
    const events = at.core.connections.events(admin, null);
    void (async () => {
      for await (const { event } of events) changes.push(`${event.change} ${event.cause}`);
    })();
    await settle();
    await leave(peer);
    await settle();
    peer.ws.close(1000);
    await expect.poll(() => at.gateway.size).toBe(0);
    await settle();
    expect(changes.filter((change) => change.startsWith('disconnected'))).toEqual(['disconnected client_closed']);
  });
});

test('a caller cannot send closing', async () => {
  await using at = await startGateway();
  const peer = await caller(at);
  peer.send({ type: 'closing' });
  expect(await peer.next('refused')).toMatchObject({ frame: 'closing', code: 'forbidden' });
});

test('a draining node waits for a leaving client too', async () => {
  await using at = await startGateway();
  const peer = await client(at);
  const call = invoke(at, 'c1');
  await peer.next('command');
  await leave(peer);
  await meanwhile(at.clock, at.core.delivery.drainNode(admin, 'n1', 600_000));
  expect(at.gateway.size).toBe(1);
  done(peer, 'c1');
  expect(await call).toMatchObject(completed);
  await peer.next('result_ack');
  await at.clock.advance(1_000);
  expect(await peer.end()).toMatchObject({ code: 4450 });
});
