/** Configures `ws`, and turns its events into calls of a handler. Knows no frames of this protocol. */
import { WebSocket, WebSocketServer, type RawData, type Server, type ServerOptions } from 'ws';
import { MAX_FRAME_BYTES } from '../core/limits.ts';
import { CLOSE, type CloseReason } from '../protocol/close.ts';
import { SUBPROTOCOL } from '../protocol/frame.ts';

/** How long a peer may take to answer a close frame before its socket is destroyed, in milliseconds. */
const CLOSE_HANDSHAKE_MS = 3_000;
/**
 * The most fragments of a message: enough for the largest frame in fragments of 1 KiB. Honest peers use larger
 * fragments.
 */
const MAX_FRAGMENTS = 1024;

/**
 * Our close reasons by the codes with which `ws` closes if received bytes violate RFC 6455 or the configured limits.
 */
const REASON_OF_FAULT: ReadonlyMap<number | undefined, CloseReason> = new Map([
  [1009, 'frame_too_large'],
  [1002, 'protocol_error'],
  [1003, 'protocol_error'],
  [1007, 'protocol_error'],
  [1008, 'protocol_error'],
]);

/**
 * A server-side socket. When received bytes cannot be read, its link closes it, so that `bye` and our close codes are
 * sent.
 */
export class LinkSocket extends WebSocket {
  #handler: SocketHandler | null = null;

  /** Sends all further events to the handler. Call it once. */
  tell(handler: SocketHandler): void {
    this.#handler = handler;
  }

  /**
   * Calls the handler instead of listeners. A socket with listeners holds a table of them, which takes 280 bytes of an
   * idle link.
   */
  override emit(event: string | symbol, ...values: unknown[]): boolean {
    const handler = this.#handler;
    if (handler === null) return super.emit(event, ...values);
    if (event === 'message') handler.message(values[0] as RawData, values[1] === true);
    else if (event === 'close') handler.gone();
    else if (event === 'error') handler.failed(values[0] as Error);
    else if (event === 'ping' || event === 'pong') handler.control(event);
    else return super.emit(event, ...values);
    return true;
  }

  override close(code?: number, data?: string | Buffer): void {
    // `ws` itself closes with a code and without data only when its receiver fails.
    const reason = data === undefined ? REASON_OF_FAULT.get(code) : undefined;
    if (reason === undefined) {
      // `ws` calls this as soon as it reads the peer's close frame, which may be seconds before the socket is gone. It
      // passes no code if the frame has none.
      this.#handler?.ending(code ?? null);
      super.close(code, data);
    } else if (this.#handler) this.#handler.unreadable(reason);
    else super.close(CLOSE[reason].code, reason);
  }
}

/** Receives the events of a socket. */
export interface SocketHandler {
  message(data: RawData, isBinary: boolean): void;
  /** A WebSocket ping or pong control frame arrived. */
  control(frame: 'ping' | 'pong'): void;
  /** Received bytes cannot be read. The handler must close the socket. */
  unreadable(reason: CloseReason): void;
  failed(error: Error): void;
  /**
   * Either side has started to close the WebSocket: the peer does not read anything written after this. `code`: that of
   * the close frame; null if it has none.
   */
  ending(code: number | null): void;
  /** The socket is gone. Neither side has sent a close frame if `ending` was not called before. */
  gone(): void;
}

/** Adds `closeTimeout`, which the types of `ws` do not have yet. */
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
