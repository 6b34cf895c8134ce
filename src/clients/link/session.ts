import { closeReasonOf } from '../../protocol/close.ts';
import { isFault, parseDown, type DownFrame } from '../../protocol/frames.ts';
import type { Clock } from './clock.ts';
import { upFrame } from './frame.ts';
import type { SocketEvent, SocketLike } from './socket.ts';
import type { Welcome } from './status.ts';

type Bye = Extract<DownFrame, { type: 'bye' }>;
/** The frames that are left to whoever uses the link. */
export type LinkFrame = Exclude<DownFrame, { type: 'welcome' | 'ping' | 'bye' }>;

/** Why a socket's life ended. `code`: of `bye`, else of the socket, else null. */
export type SessionEnd = { readonly code: number | null; readonly reason: string; readonly bye: Bye | null };

export type SessionOptions = {
  readonly socket: SocketLike;
  readonly clock: Clock;
  /** Asked once, when the socket is open. */
  hello(): string;
  onWelcome(welcome: Welcome): void;
  onFrame(frame: LinkFrame): void;
  /** At most once; nothing is called after it. */
  onEnd(end: SessionEnd): void;
};

/** From the start of a connection to its `welcome`. */
const OPEN_MS = 15_000;

/** One socket from its opening to its end: says hello, answers pings, and gives the socket up when it stays silent. */
export class Session {
  readonly #options: SessionOptions;
  #phase: 'opening' | 'welcome' | 'over' = 'opening';
  #deadMs = OPEN_MS;
  #heardAt: number;
  #cancelWatch: () => void;
  #greeted = false;

  constructor(options: SessionOptions) {
    const { socket, clock } = options;
    this.#options = options;
    this.#heardAt = clock.now();
    this.#cancelWatch = clock.after(OPEN_MS, () => this.#watch());
    socket.addEventListener('open', () => void (this.#greeted = this.#write(options.hello())));
    socket.addEventListener('message', (event) => this.#received(event));
    // `close` follows, and is what counts; without a listener, some sockets throw.
    socket.addEventListener('error', () => {});
    socket.addEventListener('close', (event) => this.#over(endOf(event)));
  }

  /** Whether the hello was sent. */
  get greeted(): boolean {
    return this.#greeted;
  }

  /** False: not welcome yet, or over. */
  send(text: string): boolean {
    return this.#phase === 'welcome' && this.#write(text);
  }

  backlog(): number {
    return this.#options.socket.bufferedAmount;
  }

  /** Ends at once on our side; `onEnd` is not called. */
  close(code: number, reason: string): void {
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
    // A half-open socket may take long to close: it is left to itself, and whatever it still says is not heard.
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
    // A frame that is not understood comes from a newer relay: it is not for us.
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

/** Sockets throw when they are not in the state for it; they then also say `close`, which is what counts. */
function attempt(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}
