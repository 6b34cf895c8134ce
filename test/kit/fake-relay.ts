/** Runs a relay on which a test writes the relay's side of each link itself. */
import { once } from 'node:events';
import { WebSocketServer, type WebSocket } from 'ws';
import { CLOSE, type CloseReason, reconnectAfter } from '../../src/protocol/codes.ts';
import { FRAME_SEPARATOR, joinFrame, isFault, parseUp } from '../../src/protocol/frame-codec.ts';
import { SUBPROTOCOL, type DownHeader, type UpFrame, type UpType } from '../../src/protocol/frames.ts';
type Up<K extends UpType> = Extract<UpFrame, { type: K }>;
type Welcome = Omit<Extract<DownHeader, { type: 'welcome' }>, 'type'>;

const WELCOME: Welcome = {
  node_id: 'n1',
  user_id: 'alice',
  epoch: 1,
  ping_ms: 20_000,
  dead_ms: 60_000,
  max_frame_bytes: 1024 * 1024,
  in_flight: 32,
};

/** A queue whose next item can be awaited before it arrives. */
class Arrivals<T> {
  readonly #items: T[] = [];
  readonly #waiting: ((item: T) => void)[] = [];

  push(item: T): void {
    const next = this.#waiting.shift();
    if (next) next(item);
    else this.#items.push(item);
  }

  next(): Promise<T> {
    const item = this.#items.shift();
    return item === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(item);
  }

  get waiting(): number {
    return this.#items.length;
  }
}

/**
 * The relay's side of one link, which the test controls. It parses frames with the real parsers. It answers only
 * `hello` and `closing` by itself.
 */
export class FakeLink {
  readonly hello: Up<'hello'>;
  readonly #socket: WebSocket;
  readonly #arrivals = new Map<UpType, Arrivals<UpFrame>>();
  /** Every frame that was received after the hello, in order. */
  readonly frames: UpFrame[] = [];
  readonly closed: Promise<void>;
  /** Whether the link answers `closing` by itself. If it is false, the test must answer. */
  letsGo = true;

  constructor(socket: WebSocket, hello: Up<'hello'>) {
    this.#socket = socket;
    this.hello = hello;
    this.closed = new Promise((resolve) => socket.on('close', () => resolve()));
  }

  take(frame: UpFrame): void {
    this.frames.push(frame);
    this.#of(frame.type).push(frame);
    if (frame.type === 'closing' && this.letsGo) this.send({ type: 'closed' }, { commands: [] });
  }

  /** Resolves with the next frame of this type that has not been taken. */
  async next<K extends UpType>(type: K): Promise<Up<K>> {
    const frame = await this.#of(type).next();
    if (!is(frame, type)) throw new Error(`${type} expected, not ${frame.type}`);
    return frame;
  }

  /** Returns the number of frames of this type that have not been taken, after the client has answered a ping. */
  async untaken(type: UpType): Promise<number> {
    this.send({ type: 'ping' });
    await this.next('pong');
    return this.#of(type).waiting;
  }

  send(header: DownHeader, payload: unknown = undefined): void {
    this.#socket.send(joinFrame(header, payload === undefined ? null : JSON.stringify(payload)));
  }

  sendText(text: string): void {
    this.#socket.send(text);
  }

  command(commandId: string, action: string, params: unknown = undefined, remainingMs = 30_000): void {
    this.send({ type: 'command', command_id: commandId, action, remaining_ms: remainingMs }, params);
  }

  acknowledge(commandId: string): void {
    this.send({ type: 'result_ack', command_id: commandId, recorded: 'recorded' });
  }

  /** Closes the link as the relay does: with `bye`, then the close code. */
  bye(reason: CloseReason, afterMs?: number): void {
    const [code, reconnect] = [CLOSE[reason], reconnectAfter(reason)];
    const after = afterMs === undefined ? {} : { after_ms: afterMs };
    this.send({ type: 'bye', code, reason, reconnect: reconnect === 'yes', ...after });
    this.#socket.close(code, reason);
  }

  close(code: number): void {
    this.#socket.close(code);
  }

  /** Breaks the connection without a close frame. */
  drop(): void {
    this.#socket.terminate();
  }

  #of(type: UpType): Arrivals<UpFrame> {
    const arrivals = this.#arrivals.get(type) ?? new Arrivals<UpFrame>();
    this.#arrivals.set(type, arrivals);
    return arrivals;
  }
}

export type FakeRelay = AsyncDisposable & {
  readonly url: string;
  /** The faults of received frames. There are none for a correct client. */
  readonly faults: readonly string[];
  /** The texts of all received messages. */
  readonly messages: readonly string[];
  readonly connections: number;
  /** Resolves with the next link that sent its hello. */
  link(): Promise<FakeLink>;
};

export type Admission = Partial<Welcome> | CloseReason | 'silence';

/**
 * Starts a relay on 127.0.0.1 that the test controls. `admit` returns members to override in the `welcome`, a close
 * reason to refuse with, or `silence` for no answer.
 */
export async function startFakeRelay(admit: (hello: Up<'hello'>) => Admission = () => ({})): Promise<FakeRelay> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, path: '/connect', handleProtocols: choose });
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const links = new Arrivals<FakeLink>();
  const faults: string[] = [];
  const messages: string[] = [];
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    let link: FakeLink | null = null;
    socket.on('error', () => {});
    const received = (text: string): void => {
      const frame = parseUp(text);
      if (isFault(frame)) return void faults.push(`${frame.frame}: ${frame.detail}`);
      if (link) return link.take(frame);
      if (frame.type !== 'hello') return void faults.push(`${frame.type} before hello`);
      link = new FakeLink(socket, frame);
      welcome(link, admit(frame));
      links.push(link);
    };
    socket.on('message', (data: Buffer) => {
      messages.push(data.toString('utf8'));
      data.toString('utf8').split(FRAME_SEPARATOR).forEach(received);
    });
  });
  return {
    url: `ws://127.0.0.1:${address.port}/connect`,
    faults,
    messages,
    get connections() {
      return connections;
    },
    link: () => links.next(),
    async [Symbol.asyncDispose]() {
      for (const socket of server.clients) socket.terminate();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

function welcome(link: FakeLink, admission: Admission): void {
  if (admission === 'silence') return;
  if (typeof admission === 'string') return link.bye(admission);
  const { client_id } = link.hello;
  link.send({ type: 'welcome', ...WELCOME, ...(client_id === undefined ? {} : { client_id }), ...admission });
}

function choose(offered: Set<string>): string | false {
  return offered.has(SUBPROTOCOL) && SUBPROTOCOL;
}

function is<K extends UpType>(frame: UpFrame, type: K): frame is Up<K> {
  return frame.type === type;
}
