/** Tests frames that could be read and break a bound: each costs its command or its request, and never the link. */
import { describe, expect, test } from 'vitest';
import type { Core } from '../../src/core/core.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { BAD_FRAMES, JSON_DEPTH, MAX_FRAME_BYTES } from '../../src/core/limits.ts';
import { FRAME_SEPARATOR } from '../../src/protocol/frame-codec.ts';
import { changed } from '../kit/changed.ts';
import { ALICE, caller, client, invoke, Peer, startGateway } from './kit/test-gateway.ts';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const DEEP = nested(JSON_DEPTH + 1);
/** More of them than the number of unreadable frames that closes a link. */
const MANY = 2 * BAD_FRAMES;

/** Returns a frame of this many bytes. */
function frameOf(header: string, bytes: number): string {
  return `${header}\n"${'x'.repeat(bytes - header.length - 3)}"`;
}

type End = readonly [what: string, frame: (id: string) => string, code: string];
const result = (id: string): string => `{"type":"result","command_id":"${id}"}`;
const ENDS: readonly End[] = [
  ['a result that is nested too deeply', (id) => `${result(id)}\n${DEEP}`, 'result_unavailable'],
  ['a result that is no JSON', (id) => `${result(id)}\n{"a":`, 'result_unavailable'],
  ['a result that is too large', (id) => frameOf(result(id), MAX_FRAME_BYTES + 1), 'result_unavailable'],
  ['a result of twice the size', (id) => frameOf(result(id), 2 * MAX_FRAME_BYTES), 'result_unavailable'],
  [
    'a partial result that is nested too deeply',
    (id) => `{"type":"cancelled","command_id":"${id}"}\n${DEEP}`,
    'result_unavailable',
  ],
  [
    'a partial result that is too large',
    (id) => frameOf(`{"type":"cancelled","command_id":"${id}"}`, MAX_FRAME_BYTES + 1),
    'result_unavailable',
  ],
  [
    'an error with a header beyond its bound',
    (id) => `{"type":"error","command_id":"${id}","code":"handler_failed","message":"${'x'.repeat(20_000)}"}`,
    'handler_failed',
  ],
  [
    'an error whose message is no text',
    (id) => `{"type":"error","command_id":"${id}","code":"x","message":1}`,
    'handler_failed',
  ],
  ['an error without a code', (id) => `{"type":"error","command_id":"${id}"}`, 'handler_failed'],
  [
    'a result with a header beyond its bound',
    (id) => `{"type":"result","x":"${'x'.repeat(20_000)}","command_id":"${id}"}\n1`,
    'result_unavailable',
  ],
];

describe('an end of a command in flight', () => {
  test.each(ENDS)('%s ends its command at once, as often as it comes', async (_what, frame, code) => {
    await using at = await startGateway();
    const peer = await client(at);
    for (let i = 0; i < MANY; i++) {
      const waiting = invoke(at, `c${i}`);
      await peer.next('command');
      peer.raw(frame(`c${i}`));
      expect(await peer.next('result_ack')).toMatchObject({ command_id: `c${i}`, recorded: 'recorded' });
      expect(await waiting).toMatchObject({
        command: { outcome: 'failed', execution: 'reported_by_client', error: { code } },
      });
    }
    await peer.sync();
    expect(peer.seen('refused')).toHaveLength(1);
  });

  test('a refusal by its client stays one, however long its message is', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    const message = 'x'.repeat(20_000);
    peer.raw(`{"type":"error","command_id":"c1","code":"arguments_invalid","message":"${message}"}`);
    expect(await waiting).toMatchObject({
      command: { outcome: 'failed', execution: 'refused_by_client', error: { code: 'arguments_invalid' } },
    });
  });

  test('that the store refuses for its payload ends its command without it', async () => {
    const wrap = (core: Core): Core => ({
      ...core,
      links: {
        async open(...args) {
          const session = await core.links.open(...args);
          return changed(session, {
            end(commandId, end) {
              if (end.payload !== null) throw new CallboardError('store_full', 'no room');
              return session.end(commandId, end);
            },
          });
        },
      },
    });
    await using at = await startGateway({ wrap });
    const peer = await client(at);
    const waiting = invoke(at, 'c1');
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' }, { large: true });
    expect(await peer.next('result_ack')).toMatchObject({ recorded: 'recorded' });
    expect(await waiting).toMatchObject({
      command: { outcome: 'failed', execution: 'reported_by_client', error: { code: 'result_unavailable' } },
    });
  });

  test('is over for its client: a second one is refused by its command', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    void invoke(at, 'c1');
    await peer.next('command');
    peer.raw(`${result('c1')}\n${DEEP}`);
    expect(await peer.next('result_ack')).toMatchObject({ recorded: 'recorded' });
    peer.raw(`${result('c1')}\n${DEEP}`);
    expect(await peer.next('refused')).toMatchObject({ frame: 'result', command_id: 'c1', code: 'invalid_argument' });
    await peer.sync();
  });

  test('of the greatest depth reaches the caller', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    const deepest = `{"a":${nested(JSON_DEPTH - 1)}}`;
    requester.raw(`{"type":"invoke","ref":"r1","client_id":"tab","action":"open"}\n${deepest}`);
    const command = await peer.next('command');
    expect(command.payload).toBe(deepest);
    peer.raw(`${result(command.command_id)}\n${nested(JSON_DEPTH)}`);
    expect(await requester.next('outcome')).toMatchObject({ outcome: 'completed', payload: nested(JSON_DEPTH) });
  });
});

test('progress that cannot be passed on is dropped, and the command goes on', async () => {
  await using at = await startGateway();
  const peer = await client(at);
  const waiting = invoke(at, 'c1');
  await peer.next('command');
  const progress = '{"type":"progress","command_id":"c1"}';
  for (let i = 0; i < MANY; i++) {
    peer.raw(`${progress}\n${DEEP}`);
    peer.raw(`${progress}\n{`);
    peer.raw(frameOf(progress, MAX_FRAME_BYTES + 1));
    peer.raw('{"type":"progress","command_id":"c1","number":"one"}\n1');
  }
  await peer.sync();
  expect(peer.seen('refused')).toHaveLength(1);
  peer.send({ type: 'result', command_id: 'c1' }, 'done');
  expect(await waiting).toMatchObject({ command: { outcome: 'completed' } });
});

/** Frames of a caller and a client that break a bound, with the code of their refusal. */
const REFUSED: readonly (readonly [what: string, frame: string, code: string, about: object])[] = [
  [
    'an invoke of a wrong client id',
    '{"type":"invoke","ref":"r1","client_id":"my kiosk","action":"open"}',
    'invalid_argument',
    { ref: 'r1' },
  ],
  [
    'an invoke with params that are nested too deeply',
    `{"type":"invoke","ref":"r1","client_id":"tab","action":"open"}\n{"a":${DEEP}}`,
    'invalid_argument',
    { ref: 'r1' },
  ],
  [
    'an invoke with params that are too large',
    frameOf('{"type":"invoke","ref":"r1","client_id":"tab","action":"open"}', MAX_FRAME_BYTES + 1),
    'payload_too_large',
    { ref: 'r1' },
  ],
  [
    'an invoke with a header beyond its bound',
    `{"type":"invoke","x":"${'x'.repeat(20_000)}","ref":"r1","client_id":"tab","action":"open"}`,
    'invalid_argument',
    { ref: 'r1' },
  ],
  [
    'an invoke with a fraction of a millisecond',
    '{"type":"invoke","ref":"r1","client_id":"tab","action":"open","respond_within_ms":1500.5}',
    'invalid_argument',
    { ref: 'r1' },
  ],
  [
    'an id that vanishes from paths',
    '{"type":"invoke","ref":"r1","client_id":"..","action":"open"}',
    'invalid_argument',
    {},
  ],
  [
    'an await of a wrong stage',
    '{"type":"await","ref":"r1","client_id":"tab","command_id":"c","wait_for":"x"}',
    'invalid_argument',
    { ref: 'r1' },
  ],
  ['actions that are too large', frameOf('{"type":"actions"}', MAX_FRAME_BYTES + 1), 'payload_too_large', {}],
  ['a report that is nested too deeply', `{"type":"report"}\n{"contexts":${DEEP}}`, 'invalid_argument', {}],
  ['a report that is too large', frameOf('{"type":"report"}', MAX_FRAME_BYTES + 1), 'payload_too_large', {}],
  ['a second hello', `{"type":"hello","token":"${ALICE}"}`, 'invalid_argument', {}],
  ['an unknown type', '{"type":"nope","ref":"r1"}', 'invalid_argument', { ref: 'r1' }],
  ['a type of any length', `{"type":"${'x'.repeat(600)}","ref":"r1"}`, 'invalid_argument', { ref: 'r1' }],
  [
    'a payload on a frame without one',
    '{"type":"ack","command_id":"c9"}\n{}',
    'invalid_argument',
    { command_id: 'c9' },
  ],
  [
    'an end of an unknown command that is too large',
    frameOf(result('c9'), MAX_FRAME_BYTES + 1),
    'payload_too_large',
    { command_id: 'c9' },
  ],
  [
    'an end of an unknown command that is nested too deeply',
    `${result('c9')}\n${DEEP}`,
    'invalid_argument',
    { command_id: 'c9' },
  ],
];

describe('a frame that could be read', () => {
  test.each(REFUSED)('%s is refused by name and counts for nothing', async (_what, frame, code, about) => {
    await using at = await startGateway();
    const peer = await client(at);
    const other = invoke(at, 'other');
    await peer.next('command');
    for (let i = 0; i < MANY; i++) {
      peer.raw(frame);
      expect(await peer.next('refused')).toMatchObject({ code, ...about });
    }
    // A command of the same link is unaffected.
    peer.send({ type: 'result', command_id: 'other' }, 1);
    expect(await other).toMatchObject({ command: { outcome: 'completed' } });
  });

  test('falls under the rate of unsolicited frames: a flood of them closes the link, which may come back', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    for (let i = 0; i < 500; i++) peer.raw('{"type":"invoke","ref":"r1","client_id":"my kiosk","action":"open"}');
    expect(await peer.end()).toMatchObject({ code: 4429, bye: { reconnect: true } });
    expect(peer.seen('refused').length).toBeLessThanOrEqual(400);
  });

  test('beyond twice the bound closes the link, which may come back', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.raw(frameOf(result('c1'), 2 * MAX_FRAME_BYTES + 1));
    expect(await peer.end()).toMatchObject({ code: 4413, bye: { reconnect: true } });
  });

  test('in a message of several frames is judged by itself, however long the message is', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    for (const id of ['c1', 'c2', 'c3']) {
      void invoke(at, id);
      await peer.next('command');
    }
    const large = frameOf(result('c1'), MAX_FRAME_BYTES + 1);
    peer.raw([large, `${result('c2')}\n2`, frameOf(result('c3'), 500_000)].join(FRAME_SEPARATOR));
    for (const command_id of ['c1', 'c2', 'c3'])
      expect(await peer.next('result_ack')).toMatchObject({ command_id, recorded: 'recorded' });
  });
});

describe('a hello that would be refused again', () => {
  const header = `{"type":"hello","token":"${ALICE}","client_id":"tab","instance_id":"i1","client_type":"web"}`;

  test('says that it is too large, and that it shall not come back', async () => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    peer.raw(frameOf(header, MAX_FRAME_BYTES + 1));
    expect(await peer.next('refused')).toMatchObject({
      ...{ code: 'payload_too_large', frame: 'hello' },
      message: expect.stringContaining(`${MAX_FRAME_BYTES + 1} bytes`),
    });
    expect(await peer.end()).toMatchObject({ code: 4413, bye: { code: 4413, reconnect: false } });
  });

  test('names the wrong member, and that it shall not come back', async () => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    peer.raw(`${header}\n{"actions":[{"name":"a","summary":5}]}`);
    expect(await peer.next('refused')).toMatchObject({ code: 'invalid_argument', frame: 'hello' });
    expect(await peer.end()).toMatchObject({ code: 4400, bye: { reconnect: false } });
  });
});

test('the fifth frame that cannot be read closes the link, which may come back', async () => {
  await using at = await startGateway();
  const peer = await client(at);
  for (let i = 0; i < BAD_FRAMES; i++) peer.raw('{"type":');
  expect(await peer.end()).toMatchObject({ code: 4400, bye: { reconnect: true, after_ms: 5_000 } });
});

test('welcome says how deep a payload may be', async () => {
  await using at = await startGateway();
  expect((await client(at)).welcome).toMatchObject({ max_depth: JSON_DEPTH, max_frame_bytes: MAX_FRAME_BYTES });
});
