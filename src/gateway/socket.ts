import { WebSocket, WebSocketServer, type RawData, type Server, type ServerOptions } from 'ws';
import { MAX_FRAME_BYTES } from '../core/limits.ts';
import { CLOSE, type CloseReason } from '../protocol/close.ts';
import { SUBPROTOCOL } from '../protocol/frame.ts';

/** How long a peer may take to answer a close before its socket is cut. */
const CLOSE_HANDSHAKE_MS = 3_000;
/** A frame of the largest size in pieces of 1 KiB; smaller pieces serve nobody but an attacker. */
const MAX_FRAGMENTS = 1024;

/** What `ws` closes with when bytes break the rules of RFC 6455 or the bounds below, in our words. */
const REASON_OF_FAULT: ReadonlyMap<number | undefined, CloseReason> = new Map([
  [1009, 'frame_too_large'],
  [1002, 'protocol_error'],
  [1003, 'protocol_error'],
  [1007, 'protocol_error'],
  [1008, 'protocol_error'],
]);

/** A server-side socket that asks its link how to close when what it received cannot be read, so that `bye` and our codes are sent then too. */
export class LinkSocket extends WebSocket {
  #handler: SocketHandler | null = null;

  /** From now on the handler is told. The listeners are shared by all sockets: ten thousand idle links hold none of their own. Call it once. */
  tell(handler: SocketHandler): void {
    this.#handler = handler;
    this.on('message', onMessage).on('close', onClose).on('error', onError).on('ping', onPing).on('pong', onPong);
  }

  get handler(): SocketHandler | null {
    return this.#handler;
  }

  override close(code?: number, data?: string | Buffer): void {
    // Only `ws` itself closes with a code and no data: on a fault of its receiver.
    const reason = data === undefined ? REASON_OF_FAULT.get(code) : undefined;
    if (reason === undefined) {
      // Called by `ws` as soon as the peer's close frame is read, which may be seconds before the socket is gone.
      this.#handler?.ending();
      super.close(code, data);
    } else if (this.#handler) this.#handler.unreadable(reason);
    else super.close(CLOSE[reason].code, reason);
  }
}

/** Whom a socket tells what comes over it. */
export interface SocketHandler {
  message(data: RawData, isBinary: boolean): void;
  /** A ping or pong of the WebSocket itself. */
  control(frame: 'ping' | 'pong'): void;
  /** What was received cannot be read: the handler closes. */
  unreadable(reason: CloseReason): void;
  failed(error: Error): void;
  /** Either side has closed the WebSocket: the peer reads nothing that is written from now on. */
  ending(): void;
  /** The socket is gone. */
  gone(): void;
}

function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
  handlerOf(this)?.message(data, isBinary);
}

function onClose(this: WebSocket): void {
  handlerOf(this)?.gone();
}

function onError(this: WebSocket, error: Error): void {
  handlerOf(this)?.failed(error);
}

function onPing(this: WebSocket): void {
  handlerOf(this)?.control('ping');
}

function onPong(this: WebSocket): void {
  handlerOf(this)?.control('pong');
}

function handlerOf(socket: WebSocket): SocketHandler | null {
  return socket instanceof LinkSocket ? socket.handler : null;
}

/** What the types of `ws` do not name yet. */
type Options = ServerOptions<typeof LinkSocket> & { readonly closeTimeout: number };

export function createSocketServer(): Server<typeof LinkSocket> {
  const options: Options = {
    noServer: true,
    WebSocket: LinkSocket,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    maxFragments: MAX_FRAGMENTS,
    closeTimeout: CLOSE_HANDSHAKE_MS,
    handleProtocols: () => SUBPROTOCOL,
  };
  return new WebSocketServer(options);
}
