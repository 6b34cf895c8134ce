/** Runs one WebSocket from its opening to its end. Reconnecting is the job of link.ts. */
import { closeReasonOf } from '../../protocol/close.ts';
import { FrameBatch } from './frame-batch.ts';
import { isFault, parseDown, type DownFrame } from '../../protocol/frames.ts';
import type { Clock } from './clock.ts';
import { upFrame } from './frame.ts';
import type { SocketEvent, SocketLike } from './socket.ts';
import type { Welcome } from './status.ts';

type Bye = Extract<DownFrame, { type: 'bye' }>;
/** The frames that the session passes on; it handles the others itself. */
export type LinkFrame = Exclude<DownFrame, { type: 'welcome' | 'ping' | 'bye' }>;

/** The end of a session and its reason. `code` is that of `bye`, otherwise the socket's close code, otherwise null. */
export type SessionEnd = { readonly code: number | null; readonly reason: string; readonly bye: Bye | null };

export type SessionOptions = {
  readonly socket: SocketLike;
  readonly clock: Clock;
  /** Returns the text of the hello frame. Called once, when the socket is open. */
  hello(): string;
  onWelcome(welcome: Welcome): void;
  onFrame(frame: LinkFrame): void;
  /** Called at most once, after all other callbacks. */
  onEnd(end: SessionEnd): void;
};

/** The time from the start of a connection within which `welcome` must arrive, in milliseconds. */
const OPEN_MS = 15_000;

/**
 * One socket from opening to end. Sends the hello, answers pings, and abandons the socket when the relay stays silent.
 */
export class Session {
  readonly #options: SessionOptions;
  #phase: 'opening' | 'welcome' | 'over' = 'opening';
  #deadMs = OPEN_MS;
  #heardAt: number;
  #cancelWatch: () => void;
  #greeted = false;
  readonly #batch = new FrameBatch((text) => this.#write(text));

  constructor(options: SessionOptions) {
    const { socket, clock } = options;
    this.#options = options;
    this.#heardAt = clock.now();
    this.#cancelWatch = clock.after(OPEN_MS, () => this.#watch());
    socket.addEventListener('open', () => void (this.#greeted = this.#write(options.hello())));
    socket.addEventListener('message', (event) => this.#received(event));
    // The event `close` follows and ends the session. Without an error listener, some sockets throw.
    socket.addEventListener('error', () => {});
    socket.addEventListener('close', (event) => this.#over(endOf(event)));
  }

  /** Whether the hello was sent. */
  get greeted(): boolean {
    return this.#greeted;
  }

  /**
   * Sends a frame. Returns false before `welcome`, after the end, and when the socket throws. If the relay accepts
   * several frames in one message, the frames of one event-loop turn are sent together, after its microtasks.
   */
  send(text: string): boolean {
    return this.#phase === 'welcome' && this.#batch.send(text);
  }

  /** Sends the waiting frames at once. */
  flush(): void {
    this.#batch.flush();
  }

  backlog(): number {
    return this.#options.socket.bufferedAmount + this.#batch.chars;
  }

  /** Ends the session at once. `onEnd` is not called. */
  close(code: number, reason: string): void {
    this.#batch.flush();
    this.#stop(code, reason);
  }

  #watch(): void {
    const { clock } = this.#options;
    const silent = clock.now() - this.#heardAt;
    if (silent < this.#deadMs) {
      this.#cancelWatch = clock.after(this.#deadMs - silent, () => this.#watch());
      return;
    }
    const reason = this.#phase === 'opening' ? 'connect_timeout' : 'heartbeat_lost';
    this.#over({ code: null, reason, bye: null });
  }

  #stop(code: number, reason: string): boolean {
    if (this.#phase === 'over') return false;
    this.#phase = 'over';
    this.#cancelWatch();
    // A half-open socket may take long to close. Nothing waits for it, and what it still receives is ignored.
    attempt(() => this.#options.socket.close(code, reason));
    return true;
  }

  #over(end: SessionEnd): void {
    if (this.#stop(1000, '')) this.#options.onEnd(end);
  }

  #write(text: string): boolean {
    return this.#phase !== 'over' && attempt(() => this.#options.socket.send(text));
  }

  #received(event: SocketEvent): void {
    if (this.#phase === 'over' || typeof event.data !== 'string') return;
    this.#heardAt = this.#options.clock.now();
    const frame = parseDown(event.data);
    // An unknown frame comes from a newer relay and is ignored.
    if (!isFault(frame)) this.#take(frame);
  }

  #take(frame: DownFrame): void {
    if (frame.type === 'bye') this.#over({ code: frame.code, reason: frame.reason, bye: frame });
    else if (frame.type === 'ping') this.#write(upFrame({ type: 'pong' }));
    else if (frame.type === 'welcome') this.#welcome(frame);
    else if (this.#phase === 'welcome') this.#options.onFrame(frame);
  }

  #welcome(frame: Welcome): void {
    if (this.#phase !== 'opening') return;
    this.#phase = 'welcome';
    this.#batch.allow(frame);
    this.#deadMs = Math.max(1_000, frame.dead_ms);
    this.#cancelWatch();
    this.#cancelWatch = this.#options.clock.after(this.#deadMs, () => this.#watch());
    this.#options.onWelcome(frame);
  }
}

function endOf({ code }: SocketEvent): SessionEnd {
  const reason = code === undefined ? undefined : closeReasonOf(code);
  return { code: code ?? null, reason: reason ?? 'connection_lost', bye: null };
}

/**
 * Runs `act`, and returns false if it throws. A socket throws when it is in the wrong state. It then also emits
 * `close`, which ends the session.
 */
function attempt(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}
