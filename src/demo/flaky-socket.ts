/** Imitates an unreliable network for clients of the demo. */
import { WebSocket } from 'ws';
import type { SocketConstructor } from '../clients/runtime/index.ts';

/**
 * Returns a WebSocket class that imitates an unreliable network. Each socket is terminated without a close frame,
 * `livesMs()` milliseconds after its creation.
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
