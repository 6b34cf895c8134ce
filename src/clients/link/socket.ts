/** Finds the WebSocket class that the client libraries use, and defines the part of it that they need. */

/** The part of the standard WebSocket that the clients use. Browsers, Node and `ws` provide it. */
export interface SocketLike {
  readonly bufferedAmount: number;
  addEventListener(type: 'open' | 'message' | 'close' | 'error', listener: (event: SocketEvent) => void): void;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

export type SocketEvent = {
  readonly type: string;
  readonly data?: unknown;
  readonly code?: number;
  readonly reason?: string;
};

export type SocketConstructor = new (url: string, protocols: string) => SocketLike;

/** Returns the given constructor, or the platform's. Throws TypeError when there is neither. */
export function socketConstructor(given: SocketConstructor | undefined): SocketConstructor {
  const found = given ?? globalThis.WebSocket;
  if (!found) throw new TypeError('This platform has no WebSocket: pass one as the option WebSocket.');
  return found;
}
