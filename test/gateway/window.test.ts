/** Tests the in-flight window of a link. */
import { describe, expect, test } from 'vitest';
import { client, startGateway, invoke } from './kit/test-gateway.ts';

describe('the window of a link', () => {
  test('holds 32 commands; the next is sent when one ends, in the order of admission', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const all = Array.from({ length: 40 }, (_, i) => invoke(at, `c${i}`));
    for (let i = 0; i < 32; i++) expect((await peer.next('command')).command_id).toBe(`c${i}`);
    await peer.sync();
    expect(peer.seen('command')).toHaveLength(32);
    for (let i = 0; i < 8; i++) {
      peer.send({ type: 'result', command_id: `c${i}` }, i);
      expect((await peer.next('command')).command_id).toBe(`c${32 + i}`);
    }
    expect(peer.seen('command')).toHaveLength(40);
    for (let i = 8; i < 40; i++) peer.send({ type: 'result', command_id: `c${i}` }, i);
    const ends = await Promise.all(all);
    expect(ends.map((end) => end.kind === 'outcome' && end.result)).toEqual(ends.map((_, i) => String(i)));
  });

  test('does not count reports of commands in flight as unsolicited, however many commands run', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    for (let round = 0; round < 5; round++) {
      const all = Array.from({ length: 200 }, (_, i) => invoke(at, `r${round}c${i}`));
      for (let i = 0; i < 200; i++) {
        const { command_id } = await peer.next('command');
        peer.send({ type: 'ack', command_id });
        peer.send({ type: 'progress', command_id }, i);
        peer.send({ type: 'result', command_id }, i);
      }
      await Promise.all(all);
    }
    expect(peer.seen('refused')).toEqual([]);
  });

  test('counts a second ack, and progress after the end, as unsolicited', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    void invoke(at, 'c1');
    await peer.next('command');
    for (let i = 0; i < 202; i++) peer.send({ type: 'ack', command_id: 'c1' });
    expect(await peer.next('refused')).toMatchObject({ code: 'rate_limited', command_id: 'c1' });
  });

  test("does not remember a client's unanswered commands forever", async () => {
    await using at = await startGateway();
    const peer = await client(at);
    for (let round = 0; round < 9; round++) {
      const calls = Array.from({ length: 32 }, (_, i) => invoke(at, `r${round}c${i}`, { respondWithinMs: 1_000 }));
      for (let i = 0; i < 32; i++) await peer.next('command');
      await at.clock.advance(2_000);
      for (const { kind } of await Promise.all(calls)) expect(kind).toBe('outcome');
    }
    for (let i = 0; i < 250; i++) peer.send({ type: 'progress', command_id: 'r8c0' });
    await peer.sync();
    expect(peer.seen('refused').filter(({ frame }) => frame === 'progress')).toEqual([]);
    for (let i = 0; i < 201; i++) peer.send({ type: 'progress', command_id: 'r0c0' });
    expect(await peer.next('refused')).toMatchObject({ code: 'rate_limited', command_id: 'r0c0' });
  });

  test('counts endless progress of one command as a flood', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    void invoke(at, 'c1');
    await peer.next('command');
    for (let i = 0; i < 14_000; i++) peer.send({ type: 'progress', command_id: 'c1' });
    expect((await peer.end()).code).toBe(4429);
  });
});
