/** Collects the frames that one link sends in a turn of the event loop, and writes them together. */
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { encodeFrames } from './encode.ts';

export interface Flushable {
  flush(): void;
}

/** Flushes, at the end of a turn of the event loop, each item that was added during the turn. */
export interface TurnEnd {
  add(item: Flushable): void;
}

export function createTurnEnd(): TurnEnd {
  let items: Flushable[] = [];
  const flush = (): void => {
    const ready = items;
    items = [];
    for (const item of ready) item.flush();
  };
  return {
    add(item) {
      if (items.push(item) === 1) setImmediate(flush);
    },
  };
}

/** The frames that wait to be written to one socket. All frames of one turn go out in one write. */
export class FrameBuffer implements Flushable {
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #turnEnd: TurnEnd;
  /** The waiting frames, as `FrameParts`; null if there are none. */
  #parts: (string | null)[] | null = null;
  #chars = 0;

  constructor(ws: WebSocket, socket: Duplex, turnEnd: TurnEnd) {
    this.#ws = ws;
    this.#socket = socket;
    this.#turnEnd = turnEnd;
  }

  /**
   * The number of bytes that the socket has not accepted yet. Frames that were added in this turn of the event loop
   * count by characters.
   */
  get backlog(): number {
    return this.#ws.bufferedAmount + this.#chars;
  }

  push(header: string, payload: string | null): void {
    this.#chars += header.length + (payload === null ? 0 : payload.length + 1);
    if (this.#parts) return void this.#parts.push(header, payload);
    this.#parts = [header, payload];
    this.#turnEnd.add(this);
  }

  /** Writes all frames now. Drops them if the socket is closing or closed: its close event tells the link. */
  flush(): void {
    const parts = this.#parts;
    this.#parts = null;
    this.#chars = 0;
    if (!parts || this.#ws.readyState !== WebSocket.OPEN || !this.#socket.writable) return;
    // Bypasses `ws`, which would create two chunks and a callback for each frame. Compression is off, so `ws` itself
    // queues nothing. Corked, because otherwise a large write that the kernel accepts at once emits no `drain`, for
    // which the link waits.
    this.#socket.cork();
    this.#socket.write(encodeFrames(parts));
    this.#socket.uncork();
  }
}
