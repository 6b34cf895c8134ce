/** Gives a client library sockets whose events the test makes, so that a frame can arrive at any moment. */
import type { SocketConstructor, SocketEvent, SocketLike } from '../../../src/clients/link/platform.ts';
import { isFault, joinFrame, parseUp } from '../../../src/protocol/frame-codec.ts';
import type { DownHeader, UpFrame } from '../../../src/protocol/frames.ts';

type Listener = (event: SocketEvent) => void;

const WELCOME = {
  ...{ type: 'welcome', node_id: 'n1', user_id: 'alice', epoch: 1, ping_ms: 20_000, dead_ms: 60_000 },
  ...{ max_frame_bytes: 1024 * 1024, in_flight: 32 },
} as const satisfies DownHeader;

/** A socket that does nothing by itself. */
export class FakeSocket implements SocketLike {
  readonly url: string;
  readonly bufferedAmount = 0;
  readonly sent: UpFrame[] = [];
  closed = false;
  readonly #listeners = new Map<string, Listener[]>();

  constructor(url: string) {
    this.url = url;
  }

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  send(text: string): void {
    const frame = parseUp(text);
    if (isFault(frame)) throw new Error(frame.detail);
    this.sent.push(frame);
  }

  close(): void {
    this.closed = true;
  }

  emit(type: string, event: Omit<SocketEvent, 'type'> = {}): void {
    for (const listener of this.#listeners.get(type) ?? []) listener({ type, ...event });
  }

  open(): void {
    this.emit('open');
  }

  receive(header: DownHeader, payload: unknown = undefined): void {
    this.emit('message', { data: joinFrame(header, payload === undefined ? null : JSON.stringify(payload)) });
  }

  welcome(over: Partial<Extract<DownHeader, { type: 'welcome' }>> = {}): void {
    this.receive({ ...WELCOME, ...over });
  }

  command(commandId: string, action: string, over: Partial<Extract<DownHeader, { type: 'command' }>> = {}): void {
    this.receive({ type: 'command', command_id: commandId, action, remaining_ms: 30_000, ...over });
  }

  /** The frames of this type that were sent. */
  of<K extends UpFrame['type']>(type: K): readonly Extract<UpFrame, { type: K }>[] {
    return this.sent.filter((frame): frame is Extract<UpFrame, { type: K }> => frame.type === type);
  }

  get hello(): Extract<UpFrame, { type: 'hello' }> {
    const [hello] = this.of('hello');
    if (!hello) throw new Error('no hello was sent');
    return hello;
  }
}

/** The sockets that a library has opened, each of which is taken once. */
export class FakeSockets {
  readonly Socket: SocketConstructor;
  #made: FakeSocket[] = [];
  #wake = (): void => {};

  constructor() {
    const made = (socket: FakeSocket): void => {
      this.#made.push(socket);
      this.#wake();
    };
    this.Socket = class extends FakeSocket {
      constructor(url: string) {
        super(url);
        made(this);
      }
    };
  }

  /** How many sockets were opened and are not taken. */
  get waiting(): number {
    return this.#made.length;
  }

  /** Resolves with the next socket that is opened. */
  async next(): Promise<FakeSocket> {
    for (;;) {
      const socket = this.#made.shift();
      if (socket) return socket;
      await new Promise<void>((wake) => (this.#wake = wake));
    }
  }
}
