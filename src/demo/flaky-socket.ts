import { WebSocket } from 'ws';
import type { SocketConstructor } from '../clients/runtime/index.ts';

/**
 * A WebSocket with an unreliable network: each socket is terminated without a close frame some time after it was
 * created.
 */
export function flakySocket(livesMs: () => number): SocketConstructor {
  return class FlakySocket extends WebSocket {
    constructor(url: string, protocols: string) {
      super(url, protocols);
      const timer = setTimeout(() => this.terminate(), livesMs());
      this.once('close', () => clearTimeout(timer));
    }
  };
}
