/** Opens an event stream whose two ends a test can stop, read and close. */
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { SseStream } from '../../../src/web/sse.ts';
import { FakeClock } from '../../kit/clock.ts';

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

export type Streaming = AsyncDisposable & {
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
