import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { encodeTexts } from './encode.ts';

export interface Flushable {
  flush(): void;
}

/** Flushes what was handed in during this turn of the event loop, once, at its end. */
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

/** What one socket is still to be sent. The frames of one turn leave in one write. */
export class Outbox implements Flushable {
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #turnEnd: TurnEnd;
  #frames: string[] | null = null;
  #chars = 0;

  constructor(ws: WebSocket, socket: Duplex, turnEnd: TurnEnd) {
    this.#ws = ws;
    this.#socket = socket;
    this.#turnEnd = turnEnd;
  }

  /** Bytes that the socket has not taken yet (those of this turn counted as characters). */
  get backlog(): number {
    return this.#ws.bufferedAmount + this.#chars;
  }

  push(frame: string): void {
    this.#chars += frame.length;
    if (this.#frames) return void this.#frames.push(frame);
    this.#frames = [frame];
    this.#turnEnd.add(this);
  }

  /** Writes everything now. What a dying socket does not take is no news: its close says it. */
  flush(): void {
    const frames = this.#frames;
    this.#frames = null;
    this.#chars = 0;
    if (!frames || this.#ws.readyState !== WebSocket.OPEN || !this.#socket.writable) return;
    // Past `ws`, which would make two chunks and a callback of each frame; nothing is compressed, so it holds nothing back either.
    // Corked, since a large write that the kernel takes at once would else say no `drain`, for which the link waits.
    this.#socket.cork();
    this.#socket.write(encodeTexts(frames));
    this.#socket.uncork();
  }
}
