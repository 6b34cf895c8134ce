import { WebSocket } from 'ws';
import type { SocketConstructor } from '../clients/runtime/index.ts';

/** A WebSocket whose network fails: each one is cut without a goodbye some time after it was opened. */
export function flakySocket(livesMs: () => number): SocketConstructor {
  return class FlakySocket extends WebSocket {
    constructor(url: string, protocols: string) {
      super(url, protocols);
      const timer = setTimeout(() => this.terminate(), livesMs());
      this.once('close', () => clearTimeout(timer));
    }
  };
}
