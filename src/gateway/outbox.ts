import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/** Runs what was handed in during this turn of the event loop, once, at its end. */
export interface TurnEnd {
  add(run: () => void): void;
}

export function createTurnEnd(): TurnEnd {
  let runs: (() => void)[] = [];
  const flush = (): void => {
    const ready = runs;
    runs = [];
    for (const run of ready) run();
  };
  return {
    add(run) {
      if (runs.push(run) === 1) setImmediate(flush);
    },
  };
}

/** What one socket is still to be sent. The frames of one turn leave in one write. */
export class Outbox {
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #turnEnd: TurnEnd;
  #frames: string[] = [];
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
    this.#frames.push(frame);
    this.#chars += frame.length;
    if (this.#frames.length === 1) this.#turnEnd.add(() => this.flush());
  }

  /** Writes everything now. */
  flush(): void {
    const frames = this.#frames;
    this.#frames = [];
    this.#chars = 0;
    if (frames.length === 0) return;
    this.#socket.cork();
    for (const frame of frames) this.#ws.send(frame, ignore);
    this.#socket.uncork();
  }
}

/** A frame that a dying socket did not take is no news: its close says it. */
function ignore(): void {}
