/** Tests a command over a link, from dispatch to its end. */
import { describe, expect, test } from 'vitest';
import { CallboardError, internalMessage } from '../../src/core/errors.ts';
import type { Core } from '../../src/core/core.ts';
import type { LinkSession } from '../../src/core/commands/link-session.ts';
import { trustJson } from '../../src/core/json.ts';
import { changed } from '../kit/changed.ts';
import { admin, user } from '../kit/core.ts';
import { caller, client, startGateway, invoke, type TestGateway } from './kit/test-gateway.ts';

const WHO = user('alice');
const KEY = { userId: 'alice', clientId: 'tab' };

async function command(at: TestGateway, commandId: string) {
  const found = await at.core.delivery.command(admin, { ...KEY, commandId });
  if (!found) throw new Error(`no command ${commandId}`);
  return found;
}

/** Returns options of a gateway whose core opens sessions with these changes. */
const withSession = (change: (session: LinkSession) => Partial<LinkSession>) => ({
  wrap: (core: Core): Core => ({
    ...core,
    links: {
      async open(...args) {
        const session = await core.links.open(...args);
        return changed(session, change(session));
      },
    },
  }),
});

describe('a long error message', () => {
  test('is truncated and ends its command; it does not cost the client its frame', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    void invoke(at, 'c1');
    await peer.next('command');
    peer.send({ type: 'error', command_id: 'c1', code: 'handler_failed', message: 'x'.repeat(5_000) });
    expect(await peer.next('result_ack')).toMatchObject({ command_id: 'c1', recorded: 'recorded' });
    const error = { code: 'handler_failed', message: 'x'.repeat(256) };
    expect(await command(at, 'c1')).toMatchObject({ outcome: 'failed', error });
  });
});

describe('a command in flight', () => {
  test('reaches the client with unchanged params, its time and its trace', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const params = trustJson('{ "n": 1.0, "big":12345678901234567890, "s":"\\u2028" }');
    void invoke(at, 'c1', { params, respondWithinMs: 5_000, traceId: 't', parentSpanId: 'p' });
    expect(await peer.next('command')).toEqual({
      type: 'command',
      command_id: 'c1',
      action: 'open',
      remaining_ms: 5_000,
      at_ms: 0,
      trace_id: 't',
      parent_span_id: 'p',
      payload: params,
    });
    peer.send({ type: 'result', command_id: 'c1' });
    await peer.next('result_ack');
  });

  test('after an acknowledgement, progress and a result, is completed with the text that the client wrote', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    peer.send({ type: 'ack', command_id: 'c1' });
    peer.raw('{"type":"progress","command_id":"c1"}\n{ "done":1.0 }');
    await peer.sync();
    expect(await command(at, 'c1')).toMatchObject({ stage: 'acknowledged' });
    peer.raw('{"type":"result","command_id":"c1"}\n{ "v" : 1.50 }\n');
    expect(await peer.next('result_ack')).toMatchObject({ command_id: 'c1', recorded: 'recorded' });
    expect(await waiting).toMatchObject({
      kind: 'outcome',
      command: { outcome: 'completed', execution: 'reported_by_client' },
      result: '{ "v" : 1.50 }\n',
    });
  });

  test('has its end acknowledged only after the end is recorded', async () => {
    const recorded = Promise.withResolvers<void>();
    await using at = await startGateway(
      withSession((session) => ({
        async end(...args) {
          const result = await session.end(...args);
          await recorded.promise;
          return result;
        },
      })),
    );
    const peer = await client(at);
    void invoke(at, 'c1');
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' });
    await peer.sync();
    expect(peer.seen('result_ack')).toEqual([]);
    recorded.resolve();
    await peer.next('result_ack');
  });

  test.each([
    ['client_denied', 'client_denied', 'refused_by_client'],
    ['approval_denied', 'approval_denied', 'refused_by_client'],
    ['arguments_invalid', 'arguments_invalid', 'refused_by_client'],
    ['lease_busy', 'lease_busy', 'refused_by_client'],
    ['unknown_action', 'unknown_action', 'refused_by_client'],
    ['handler_failed', 'handler_failed', 'reported_by_client'],
    ['result_unavailable', 'result_unavailable', 'reported_by_client'],
    ['client_timeout', 'client_timeout', 'reported_by_client'],
    ['node_lost', 'handler_failed', 'reported_by_client'],
    ['__proto__', 'handler_failed', 'reported_by_client'],
    ['of_its_own', 'handler_failed', 'reported_by_client'],
  ])('ended by the error %s becomes failed with %s, %s', async (code, shown, execution) => {
    await using at = await startGateway();
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    peer.send({ type: 'error', command_id: 'c1', code, message: `${'x'.repeat(255)}😀` });
    expect(await waiting).toMatchObject({
      command: { outcome: 'failed', execution, error: { code: shown, message: `${'x'.repeat(255)}\ufffd` } },
    });
  });

  test('is cancelled: the cancel reaches the client, whose `cancelled` ends it with a partial result', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    const receipt = await at.core.rpc.cancel(WHO, { ...KEY, commandId: 'c1' }, 'enough');
    expect(receipt?.state).toBe('requested');
    expect(await peer.next('cancel')).toMatchObject({ command_id: 'c1', reason: 'enough' });
    peer.send({ type: 'cancelled', command_id: 'c1' }, { half: true });
    expect(await waiting).toMatchObject({ command: { outcome: 'cancelled' }, result: '{"half":true}' });
  });
});

describe('the result_ack of an end', () => {
  test('is duplicate for a repeated end, late for another end, and unknown for no command', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    void invoke(at, 'c1');
    void invoke(at, 'c2', { respondWithinMs: 1_000 });
    await peer.next('command');
    await peer.next('command');
    const end = async (command_id: string) => {
      peer.send({ type: 'result', command_id }, 1);
      return (await peer.next('result_ack')).recorded;
    };
    expect(await end('c1')).toBe('recorded');
    expect(await end('c1')).toBe('duplicate');
    await at.clock.advance(2_000);
    expect(await command(at, 'c2')).toMatchObject({ outcome: 'outcome_unknown' });
    expect(await end('c2')).toBe('late');
    expect(await end('c3')).toBe('unknown');
    expect(await command(at, 'c2')).toMatchObject({ outcome: 'outcome_unknown', lateResults: 1 });
  });

  test("is unknown for another client's command, which does not change", async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const rogue = await client(at, { client_id: 'rogue', instance_id: 'i1' });
    const stranger = await client(at, { token: 'user:mallory:connect,invoke', client_id: 'tab', instance_id: 'i1' });
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    for (const forger of [rogue, stranger]) {
      forger.send({ type: 'result', command_id: 'c1' }, 'forged');
      expect(await forger.next('result_ack')).toMatchObject({ recorded: 'unknown' });
    }
    peer.send({ type: 'result', command_id: 'c1' }, 'true');
    expect(await waiting).toMatchObject({ result: '"true"' });
  });

  test('comes at once for a result that is not JSON, which ends its command as failed', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    peer.raw('{"type":"result","command_id":"c1"}\n{"a":1}}');
    expect(await peer.next('result_ack')).toMatchObject({ command_id: 'c1', recorded: 'recorded' });
    expect(await waiting).toMatchObject({ result: null, command: { error: { code: 'result_unavailable' } } });
  });

  test('does not come while the store is unavailable: the end is refused, and accepted when it is sent again', async () => {
    let away = true;
    await using at = await startGateway(
      withSession((session) => ({
        async end(...args) {
          if (away) throw new CallboardError('store_unavailable', 'The store does not answer.', { retryAfterMs: 500 });
          return session.end(...args);
        },
      })),
    );
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' }, 1);
    expect(await peer.next('refused')).toMatchObject({
      code: 'store_unavailable',
      frame: 'result',
      command_id: 'c1',
      retry_after_ms: 500,
    });
    expect(peer.seen('result_ack')).toEqual([]);
    away = false;
    peer.send({ type: 'result', command_id: 'c1' }, 1);
    expect(await peer.next('result_ack')).toMatchObject({ recorded: 'recorded' });
    await waiting;
  });

  test('does not come for an unexpected error, which is masked, logged by its id, and affects nothing else', async () => {
    await using at = await startGateway(
      withSession(() => ({ ack: () => Promise.reject(new TypeError('/home/secret undefined')) })),
    );
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    peer.send({ type: 'ack', command_id: 'c1' });
    const refused = await peer.next('refused');
    expect(refused).toMatchObject({ code: 'internal', frame: 'ack', command_id: 'c1' });
    expect(refused.message).not.toContain('secret');
    const id = at.logged.find(({ level }) => level === 'error')?.fields['id'];
    expect(refused.message).toBe(internalMessage(String(id)));
    peer.send({ type: 'result', command_id: 'c1' });
    await waiting;
  });

  test('does not exist for a caller, which runs nothing and advertises nothing', async () => {
    await using at = await startGateway();
    const peer = await caller(at);
    for (const frame of ['ack', 'progress', 'result', 'cancelled'] as const) {
      peer.send({ type: frame, command_id: 'c1' });
      expect(await peer.next('refused')).toMatchObject({ code: 'forbidden', frame, command_id: 'c1' });
    }
    peer.send({ type: 'actions' }, { actions: [] });
    expect(await peer.next('refused')).toMatchObject({ code: 'forbidden', frame: 'actions' });
  });
});
