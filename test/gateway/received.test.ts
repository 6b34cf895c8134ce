/** Tests clients that count their attempts to connect, and say in each hello what they have received. */
import { describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import { KEEPS_PARAMS } from '../kit/store.ts';
import { client, invoke, startGateway, ALICE, Peer, type TestGateway } from './kit/test-gateway.ts';

const IDS = { client_id: 'tab', instance_id: 'i1', client_type: 'browser' } as const;
const NOT_RECEIVED = { outcome: 'failed', execution: 'refused_by_client', error: { code: 'not_received' } };

function resuming(link_attempt: number, ...received: readonly string[]) {
  return { link_attempt, payload: { actions: [{ name: 'open' }], received } };
}

/** Opens a socket that sends its hello only when the returned function is called. */
async function late(at: TestGateway, attempt: number): Promise<{ peer: Peer; hello: () => void }> {
  const peer = new Peer(at);
  await peer.opened;
  const { payload, ...header } = resuming(attempt);
  return { peer, hello: () => peer.send({ type: 'hello', token: ALICE, ...IDS, ...header }, payload) };
}

describe('a late hello', () => {
  test('of an earlier attempt is closed with 4409, and the later link of the instance serves on', async () => {
    await using at = await startGateway();
    const first = await late(at, 1);
    const second = await client(at, resuming(2));
    first.hello();
    expect(await first.peer.end()).toMatchObject({ code: 4409, bye: { reason: 'replaced', reconnect: true } });
    expect(first.peer.seen('welcome')).toEqual([]);
    const waiting = invoke(at, 'c1');
    await second.next('command');
    second.send({ type: 'result', command_id: 'c1' }, 'here');
    expect(await waiting).toMatchObject({ result: '"here"' });
    expect(second.seen('bye')).toEqual([]);
  });

  test('says nothing about what the later link has received, also when that link is lost', async () => {
    await using at = await startGateway();
    const first = await late(at, 1);
    const second = await client(at, resuming(2));
    const waiting = invoke(at, 'c1');
    await second.next('command');
    second.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(1);
    first.hello();
    expect((await first.peer.end()).code).toBe(4409);
    const third = await client(at, resuming(3, 'c1'));
    third.send({ type: 'result', command_id: 'c1' });
    expect(await waiting).toMatchObject({ command: { outcome: 'completed', attempts: 1 } });
    expect(third.seen('command')).toEqual([]);
  });

  test('of a later attempt replaces the link of its instance, which may come back', async () => {
    await using at = await startGateway();
    const first = await client(at, resuming(1));
    const second = await client(at, resuming(2));
    expect(await first.next('replaced')).toMatchObject({ instance_id: 'i1' });
    expect(await first.end()).toMatchObject({ code: 4409, bye: { reconnect: true } });
    const other = await client(at, { ...resuming(1), instance_id: 'i2' });
    expect(await second.end()).toMatchObject({ code: 4409, bye: { reconnect: false } });
    expect(other.seen('bye')).toEqual([]);
  });
});

describe('a resuming hello', () => {
  test('has commands that never arrived written again, or ended as not received; what arrived goes on', async () => {
    await using at = await startGateway();
    const first = await client(at, resuming(1));
    const ids = ['c1', 'c2', 'c3', 'c4'];
    const waiting = ids.map((id) => invoke(at, id, { params: toJson({ id }) }));
    for (const _ of ids) await first.next('command');
    first.send({ type: 'ack', command_id: 'c4' });
    await first.sync();
    first.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(0);
    const second = await client(at, resuming(2, 'c2'));
    if (KEEPS_PARAMS) for (const _ of ['c1', 'c3']) await second.next('command');
    await second.sync();
    const written = second.seen('command').map(({ command_id, payload }) => [command_id, payload]);
    const lost = ['c1', 'c3'].map((id) => [id, `{"id":"${id}"}`]);
    expect(written).toEqual(KEEPS_PARAMS ? lost : []);
    for (const id of KEEPS_PARAMS ? ids : ['c2', 'c4']) second.send({ type: 'result', command_id: id }, id);
    const ends = await Promise.all(waiting);
    for (const [i, id] of ids.entries())
      expect(ends[i]).toMatchObject(
        KEEPS_PARAMS || id === 'c2' || id === 'c4'
          ? { command: { outcome: 'completed', attempts: lost.some(([one]) => one === id) ? 2 : 1 } }
          : { command: NOT_RECEIVED },
      );
    expect(at.counts.get('commands_dispatched')).toBe(4);
  });

  test('is followed by what was written again before what waited', async () => {
    await using at = await startGateway();
    const first = await client(at, resuming(1));
    const waiting = [invoke(at, 'c1')];
    await first.next('command');
    first.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(0);
    waiting.push(invoke(at, 'c2', { connectWithinMs: 10_000 }));
    const second = await client(at, resuming(2));
    await second.next('command');
    if (KEEPS_PARAMS) await second.next('command');
    expect(second.all.map((frame) => ('command_id' in frame ? frame.command_id : frame.type))).toEqual([
      'welcome',
      ...(KEEPS_PARAMS ? ['c1'] : []),
      'c2',
    ]);
    for (const id of ['c1', 'c2']) second.send({ type: 'result', command_id: id });
    await Promise.all(waiting);
  });

  test('of a client that ends its link before the welcome leaves the command for the next one', async () => {
    await using at = await startGateway();
    const first = await client(at, resuming(1));
    const waiting = invoke(at, 'c1');
    await first.next('command');
    first.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(0);
    const second = await late(at, 2);
    second.hello();
    second.peer.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(0);
    const third = await client(at, resuming(3));
    if (KEEPS_PARAMS) await third.next('command');
    third.send({ type: 'result', command_id: 'c1' });
    expect(await waiting).toMatchObject({ command: KEEPS_PARAMS ? { outcome: 'completed' } : NOT_RECEIVED });
  });

  test('is refused unless both members come, and each is what it should be', async () => {
    await using at = await startGateway();
    const wrong: readonly [header: { link_attempt?: number }, payload: object, named: string][] = [
      [{ link_attempt: 1 }, {}, 'received'],
      [{}, { received: [] }, 'link_attempt'],
      [{ link_attempt: 0 }, { received: [] }, 'link_attempt'],
      [{ link_attempt: 1 }, { received: 'c1' }, 'received'],
      [{ link_attempt: 1 }, { received: ['c1', 'a b'] }, 'received[1]'],
      [{ link_attempt: 1 }, { received: Array.from({ length: 1001 }, (_, i) => `c${i}`) }, 'received'],
    ];
    for (const [header, payload, named] of wrong) {
      const peer = new Peer(at);
      await peer.opened;
      peer.send({ type: 'hello', token: ALICE, ...IDS, ...header }, payload);
      const { code, message } = await peer.next('refused');
      expect([code, message.split(':')[0]]).toEqual(['invalid_argument', named]);
      expect((await peer.end()).code).toBe(4400);
    }
    const most = Array.from({ length: 1000 }, (_, i) => `c${i}`);
    await client(at, resuming(1, ...most));
  });

  test('of an instance that is not up to date cannot make a command run twice in its record', async () => {
    await using at = await startGateway();
    const first = await client(at, resuming(1));
    const waiting = invoke(at, 'c1');
    await first.next('command');
    first.ws.pause();
    const second = await client(at, resuming(2));
    if (KEEPS_PARAMS) await second.next('command');
    // The client lied, or is broken: it has received the command, and ends it over both of its links.
    first.send({ type: 'result', command_id: 'c1' }, 'old');
    await expect.poll(() => at.counts.get('late_results') ?? at.counts.get('commands_ended:completed') ?? 0).toBe(1);
    second.send({ type: 'result', command_id: 'c1' }, 'new');
    expect(await second.next('result_ack')).toMatchObject({ recorded: 'duplicate' });
    expect(await waiting).toMatchObject({
      command: KEEPS_PARAMS ? { outcome: 'completed' } : { ...NOT_RECEIVED },
    });
  });
});
