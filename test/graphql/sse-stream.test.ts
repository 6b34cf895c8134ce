/** Tests writing of event streams, and members of a group that stop reading. */
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { SSE_MERGE_CHARS, SUBSCRIPTION_QUEUE } from '../../src/core/limits.ts';
import type { LiveEvent } from '../../src/core/live.ts';
import { createGroups, type EventEncoder } from '../../src/web/sse-group.ts';
import { SseStream } from '../../src/web/sse.ts';
import { systemLoop } from '../../src/platform/system.ts';
import { FakeClock, settle } from '../kit/clock.ts';

// Opens an event stream whose two ends a test can stop, read and close.

/** A stream, seen from the relay and from the reader. */
export type Ends = {
  readonly stream: SseStream;
  readonly res: ServerResponse;
  /** The relay's side of the connection. */
  readonly socket: Socket;
  /** Returns how many times the response was written to. The head does not count. */
  writes(): number;
  /** Returns what the reader has received, chunks included. Long runs of `x` are left out. */
  text(): string;
  until(part: string): Promise<void>;
  readonly reader: Socket;
};

type Streaming = AsyncDisposable & {
  readonly clock: FakeClock;
  /**
   * Opens a stream. `paused`: the reader reads nothing until it is resumed. `before`: runs at the relay before the
   * stream is opened.
   */
  open(options?: {
    readonly request?: string;
    readonly paused?: boolean;
    readonly direct?: boolean;
    readonly before?: (socket: Socket) => void;
  }): Promise<Ends>;
};

export const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

export async function streaming(): Promise<Streaming> {
  const clock = new FakeClock();
  const arrived: ((res: ServerResponse) => void)[] = [];
  const server = createServer((_, res) => arrived.shift()?.(res));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    clock,
    async open({ request = REQUEST, paused = false, direct = true, before } = {}) {
      const taken = new Promise<ServerResponse>((resolve) => arrived.push(resolve));
      const reader = connect(port, '127.0.0.1');
      let text = '';
      const waiting = new Set<() => void>();
      reader.on('error', () => {});
      reader.on('data', (chunk) => {
        // Padding is long, and no test looks at it.
        text += chunk.toString('latin1').replace(/x{100,}/g, '');
        waiting.forEach((wake) => wake());
        waiting.clear();
      });
      if (paused) reader.pause();
      reader.write(request);
      const res = await taken;
      const { socket } = res.req;
      before?.(socket);
      let writes = 0;
      const write = res.write.bind(res);
      res.write = (chunk: unknown) => {
        writes++;
        return write(chunk);
      };
      const host = { clock, direct, onClose: () => {} };
      const stream = new SseStream(res, {
        host,
        options: { onClose: () => {}, expiresAt: null, lastChunk: null },
      });
      const until = async (part: string): Promise<void> => {
        while (!text.includes(part)) await new Promise<void>((done) => waiting.add(done));
      };
      return { stream, res, socket, reader, writes: () => writes, text: () => text, until };
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Returns the body of a raw response, without its chunked encoding if it has one. */
export function bodyOf(text: string): string {
  const at = text.indexOf('\r\n\r\n') + 4;
  if (!/transfer-encoding: chunked/i.test(text.slice(0, at))) return text.slice(at);
  let body = '';
  for (let rest = text.slice(at); rest !== '';) {
    const [size = ''] = rest.split('\r\n', 1);
    const begin = size.length + 2;
    const length = Number.parseInt(size, 16);
    if (!/^[0-9a-f]+$/.test(size) || rest.slice(begin + length, begin + length + 2) !== '\r\n')
      throw new Error(`no chunk: ${rest}`);
    body += rest.slice(begin, begin + length);
    rest = rest.slice(begin + length + 2);
  }
  return body;
}

const PAD = 'x'.repeat(20_000);

/** Creates a group of streams of numbers, and records the events that are encoded for it. */
function numbers() {
  const encoded: LiveEvent<number>[] = [];
  let push = (_: number): void => {};
  const encoder: EventEncoder<number> = {
    encode(live) {
      encoded.push(live);
      return `<${live.event}:${live.missed}>${PAD}`;
    },
    envelope: (id) => ({ head: id === null ? '' : `${id}=`, tail: ';' }),
    last: () => 'over',
  };
  const groups = createGroups<number>({ sharing: true, loop: systemLoop });
  const listen = (to: (event: number) => void): (() => void) => {
    push = to;
    return () => {};
  };
  return {
    encoded,
    groups,
    push: (event: number) => push(event),
    join(stream: SseStream, id: string | null = null) {
      const lifetime = { endWith() {}, close() {} };
      return groups.join(
        { shared: { key: 'k', listen, lifetime: lifetime }, encoder: () => encoder },
        { stream, id, onEnd: () => {} },
      );
    },
  };
}
const seen = (text: string): [number, number][] =>
  [...text.matchAll(/<(\d+):(\d+)>/g)].map(([, event, missed]) => [Number(event), Number(missed)]);

describe('a stream', () => {
  it('writes ready chunks to its socket, past the response, and ends the body correctly', async () => {
    await using at = await streaming();
    const { stream, writes, until, text, reader } = await at.open();
    stream.send('a€😀');
    stream.ping();
    stream.end();
    await until('0\r\n\r\n');
    expect(bodyOf(text())).toBe(`:\n\n${Buffer.from('a€😀').toString('latin1')}:\n\n`);
    expect(writes()).toBe(0);
    // The connection stays usable for another request.
    expect([reader.destroyed, text().toLowerCase().includes('connection: close')]).toEqual([false, false]);
  });

  it.each([
    ['of HTTP/1.0', { request: 'GET / HTTP/1.0\r\n\r\n' }],
    ['over TLS', { before: (socket: object) => void Object.assign(socket, { encrypted: true }) }],
    ['told to', { direct: false }],
  ])('leaves the framing to the response %s, with the same bytes', async (_, options) => {
    await using at = await streaming();
    const { stream, writes, until, text } = await at.open(options);
    stream.send('one');
    stream.send('two');
    stream.end();
    await until('two');
    await until(text().includes('chunked') ? '0\r\n\r\n' : 'two');
    expect([bodyOf(text()), writes()]).toEqual([':\n\nonetwo', 3]);
  });

  it('waits for its turn behind an unfinished response', async () => {
    await using at = await streaming();
    const first = await at.open({ request: REQUEST });
    const held = first.res;
    const second = at.open({ request: '' });
    first.reader.write(REQUEST);
    const { stream, writes } = await second;
    stream.send('late');
    expect(writes()).toBe(2);
    await settle();
    expect(first.text()).not.toContain('late');
    held.end();
    await first.until('late');
    expect(first.text().split('HTTP/1.1 200')).toHaveLength(3);
    stream.end();
    await first.until('late\r\n0\r\n\r\n');
  });

  it('notices that its reader left before it was opened', async () => {
    await using at = await streaming();
    const { stream } = await at.open({ before: (socket) => void socket.destroy() });
    await until(() => stream.closed);
  });

  it('frees the request and the head, except what the access log reads', async () => {
    await using at = await streaming();
    const { res } = await at.open({ request: 'GET /a?b HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\n\r\n' });
    expect([res.req.headers, res.req.rawHeaders, res.req.url]).toEqual([{}, [], '']);
    expect([res.headersSent, res.statusCode, res.req.method]).toEqual([true, 200, 'GET']);
  });
});

describe('a member of a group that stops reading', () => {
  it.each([null, 'op'])(
    'costs two merges in its socket and a queue, gets the count of missed events, and an encoding of its own (id %s)',
    async (id) => {
      await using at = await streaming();
      const all = numbers();
      const [fast, slow] = [await at.open(), await at.open({ paused: true })];
      all.join(fast.stream);
      all.join(slow.stream, id);
      const most = 2 * SSE_MERGE_CHARS + 2 * PAD.length;
      let count = 0;
      for (; count < 600; count++) {
        all.push(count);
        if (count % 10 === 9) await settle();
        expect(slow.socket.writableLength).toBeLessThan(most);
      }
      await fast.until(`<${count - 1}:0>`);
      expect(slow.stream.blocked).toBe(true);
      expect(all.encoded).toHaveLength(count);
      slow.reader.resume();
      await slow.until(`<${count - 1}:0>`);
      all.push(count);
      await Promise.all([slow.until(`<${count}:0>`), fast.until(`<${count}:0>`)]);
      expect(seen(fast.text())).toEqual(Array.from({ length: count + 1 }, (_, i) => [i, 0]));
      const got = seen(slow.text());
      const gaps = got.filter(([, missed]) => missed > 0);
      // There is one gap, before the hundred events that were queued.
      expect(gaps).toEqual([[count - SUBSCRIPTION_QUEUE, count - got.length + 1]]);
      expect(all.encoded).toHaveLength(count + 2);
    },
  );

  it('still ends at once, and does not affect the others', async () => {
    await using at = await streaming();
    const all = numbers();
    const [fast, slow] = [await at.open(), await at.open({ paused: true })];
    all.join(fast.stream);
    const member = all.join(slow.stream);
    for (let i = 0; !slow.stream.blocked; i++) {
      all.push(i);
      await settle();
    }
    all.push(1_000_000);
    await settle();
    member.complete();
    expect(slow.stream.closed).toBe(true);
    slow.reader.resume();
    await slow.until('over');
    await fast.until('<1000000:0>');
    expect(slow.text()).not.toContain('<1000000');
    expect(all.groups.size).toBe(1);
  });

  it('does not delay the other operations of its stream', async () => {
    await using at = await streaming();
    const [one, two] = [numbers(), numbers()];
    const { stream, reader, until } = await at.open({ paused: true });
    one.join(stream, 'one');
    two.join(stream, 'two');
    for (let i = 0; i < 400; i++) {
      one.push(i);
      two.push(i);
      if (i % 10 === 9) await settle();
    }
    expect(stream.blocked).toBe(true);
    reader.resume();
    await Promise.all([until('one=<399:0>'), until('two=<399:0>')]);
  });
});

async function until(met: () => boolean): Promise<void> {
  while (!met()) await new Promise((done) => setImmediate(done));
}
