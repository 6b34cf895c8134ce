/** Tests several frames in one message. */
import { describe, expect, test } from 'vitest';
import { FRAME_SEPARATOR, FRAMES_PER_MESSAGE } from '../../src/protocol/frame-codec.ts';
import { framesIn } from '../../src/gateway/link.ts';
import { caller, client, Peer, startGateway } from './kit/test-gateway.ts';

const invoke = (n: number): string =>
  `{"type":"invoke","ref":"r${n}","client_id":"tab","action":"open","command_id":"c${n}"}\n{"n":"${n} é \\u001e"}`;
const result = (n: number): string => `{"type":"result","command_id":"c${n}"}\n"done ${n}"`;

describe('a message of several frames', () => {
  test('is handled as if each frame had been a message, in order', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.raw([invoke(1), invoke(2), invoke(3)].join(FRAME_SEPARATOR));
    for (const n of [1, 2, 3])
      expect(await peer.next('command')).toMatchObject({ command_id: `c${n}`, payload: `{"n":"${n} é \\u001e"}` });
    peer.raw([result(3), result(1), result(2)].join(FRAME_SEPARATOR));
    for (const n of [3, 1, 2])
      expect(await requester.next('outcome')).toMatchObject({ ref: `r${n}`, payload: `"done ${n}"` });
  });

  test('loses no frame because another one is bad', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    const bad = '{"type":"invoke","ref":"bad","client_id":"tab","action":"open"}\n{"cut';
    requester.raw([invoke(1), bad, '', invoke(2)].join(FRAME_SEPARATOR));
    expect(await peer.next('command')).toMatchObject({ command_id: 'c1' });
    expect(await peer.next('command')).toMatchObject({ command_id: 'c2' });
    expect(await requester.next('refused')).toMatchObject({ code: 'invalid_argument', ref: 'bad' });
    expect(await requester.next('refused')).toMatchObject({ code: 'invalid_argument' });
  });

  test('has a bounded number of frames: what exceeds it is one bad frame', async () => {
    await using at = await startGateway();
    const requester = await caller(at);
    const cancels = Array.from(
      { length: FRAMES_PER_MESSAGE + 2 },
      (_, n) => `{"type":"cancel","ref":"r${n}","client_id":"tab","command_id":"none"}`,
    );
    requester.raw(cancels.join(FRAME_SEPARATOR));
    const refused = [];
    while (refused.length < FRAMES_PER_MESSAGE) refused.push(await requester.next('refused'));
    const codes = Map.groupBy(refused, ({ code }) => code);
    await requester.sync();
    expect(requester.seen('refused')).toHaveLength(FRAMES_PER_MESSAGE + 1);
    expect(codes.get('not_found')).toHaveLength(FRAMES_PER_MESSAGE - 1);
    expect(codes.get('invalid_argument')).toHaveLength(1);
  });

  test('may not begin a link: what follows hello is refused', async () => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    peer.raw(`{"type":"hello","token":"admin"}${FRAME_SEPARATOR}${invoke(1)}`);
    expect(await peer.next('refused')).toMatchObject({ code: 'invalid_argument', ref: 'r1' });
    expect(await peer.next('welcome')).toMatchObject({ frames_per_message: FRAMES_PER_MESSAGE });
  });
});

test('the frames of a message are split at the separator alone', () => {
  const many = Array.from({ length: FRAMES_PER_MESSAGE }, (_, n) => `f${n}`);
  expect(framesIn(Buffer.from('one é\n2'))).toEqual(['one é\n2']);
  expect(framesIn(Buffer.from(many.join(FRAME_SEPARATOR)))).toEqual(many);
  expect(framesIn(Buffer.from([...many, 'x', 'y'].join(FRAME_SEPARATOR)))).toEqual([
    ...many.slice(0, -1),
    [many.at(-1), 'x', 'y'].join(FRAME_SEPARATOR),
  ]);
});
