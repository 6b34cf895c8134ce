/** Tests that a large answer is encoded in several turns of the event loop, and arrives whole. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReply } from '../../src/web/reply.ts';
import { systemLoop } from '../../src/platform/system.ts';

/** Texts whose characters take one to four bytes, at odd and even places, so that pieces end between halves. */
const TEXTS = [
  '€'.repeat(900_000),
  '😀'.repeat(600_000),
  `x${'😀'.repeat(600_000)}`,
  `${'é'.repeat(300_000)}"`,
  'a'.repeat(900_000),
];

describe('a large answer', () => {
  /** Whether each answer was complete in the turn in which it was made. */
  const ended: boolean[] = [];
  const server = createServer((request, response) => {
    const { socket } = request;
    const unread = { wrote() {}, refusal: () => null };
    const reply = createReply({ ...{ requestId: 'r1', socket, response }, unread, loop: systemLoop, refuse() {} });
    reply.json('application/json', TEXTS[Number(request.url?.slice(1))] ?? '');
    ended.push(response.writableEnded);
  });
  let url = '';

  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  it.each(TEXTS.map((text, index) => [index, text] as const))('is encoded in pieces: %i', async (index, text) => {
    const response = await fetch(`${url}/${index}`);
    expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    expect((await response.text()) === text).toBe(true);
    expect(ended.at(-1)).toBe(false);
  });

  it('stops when its reader is gone', async () => {
    const abort = new AbortController();
    const response = await fetch(`${url}/0`, { signal: abort.signal });
    abort.abort();
    await expect(response.text()).rejects.toThrow();
    expect((await fetch(`${url}/3`)).status).toBe(200);
  });
});
