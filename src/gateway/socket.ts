import { WebSocket, WebSocketServer, type Server, type ServerOptions } from 'ws';
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
  onUnreadable: ((reason: CloseReason) => void) | null = null;

  override close(code?: number, data?: string | Buffer): void {
    // Only `ws` itself closes with a code and no data: on a fault of its receiver.
    const reason = data === undefined ? REASON_OF_FAULT.get(code) : undefined;
    if (reason === undefined) super.close(code, data);
    else if (this.onUnreadable) this.onUnreadable(reason);
    else super.close(CLOSE[reason].code, reason);
  }
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
