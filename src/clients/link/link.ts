/**
 * Keeps a WebSocket link to the relay: reconnects it, renews its token, and joins frames into messages. Knows no
 * commands: `onFrame` receives the frames.
 */
import { CLOSE, closeReasonOf } from '../../protocol/codes.ts';
import {
  FRAME_SEPARATOR,
  SUBPROTOCOL,
  isFault,
  joinFrame,
  parseDown,
  type DownFrame,
  type UpHeader,
} from '../../protocol/frames.ts';
import {
  checkLinkUrl,
  checkToken,
  guarded,
  linkAdvice,
  warn,
  STABLE_MS,
  reconnectMs,
  renewInMs,
  socketConstructor,
  systemClock,
  takeToken,
  type Clock,
  type ErrorSink,
  type LinkStatus,
  type SocketConstructor,
  type SocketEvent,
  type SocketLike,
  type TokenSource,
  type Welcome,
} from './platform.ts';

/** The options of every library that keeps a link. */
export type LinkOptions = {
  /** The relay's `/connect`, or the address that a proxy maps to it; `ws://` or `wss://`. */
  readonly url: string;
  /**
   * A token, or a function that returns one. The function is called before each connection and each renewal. A constant
   * token that the relay refuses closes the link permanently. If the function throws, `onError` receives the error, and
   * the link tries again later (`token_failed`). Undefined, such as an environment variable that is not set, is refused
   * at once.
   */
  readonly token: TokenSource | undefined;
  /**
   * Called at each change of the status. `onError` receives what this callback throws. Where nothing receives the
   * status, the library warns on the console of an attempt that failed, once until the next link, and of an end that
   * the program did not cause.
   */
  readonly onStatus?: (status: LinkStatus) => void;
  /**
   * Receives errors that no call reports: a callback or the token function threw, or the relay refused a frame. What
   * this callback throws is ignored.
   */
  readonly onError?: ErrorSink;
  /** The class of the sockets. Default: the platform's. If it throws, the link tries again (`connect_failed`). */
  readonly WebSocket?: SocketConstructor;
  /** The source of time and timers. Default: the system's. */
  readonly clock?: Clock;
  /** A source of random numbers from 0 (included) to 1 (excluded), for jitter. Default `Math.random`. */
  readonly random?: () => number;
};

type LinkUser = {
  /** Whose link it is, such as `client tab`. Warnings begin with it. */
  readonly who: string;
  /** Whether the program receives this status or caused it. If so, nothing is printed. */
  isHeard(status: LinkStatus): boolean;
  /** Returns the text of the hello frame for a new connection. */
  hello(token: string): string;
  onFrame(frame: LinkFrame): void;
  onStatus(status: LinkStatus): void;
};

/**
 * A link that reconnects by itself, one socket at a time, until it is closed permanently. Only the constructor throws:
 * TypeError for wrong options, or when there is no WebSocket.
 */
export class RelayLink {
  readonly #options: LinkOptions & LinkUser;
  readonly #Socket: SocketConstructor;
  readonly #clock: Clock;
  #status: LinkStatus = {
    state: 'disconnected',
    reason: 'not_connected',
    message: 'Call connect().',
    retryInMs: null,
  };
  #session: Session | null = null;
  #attempt = 0;
  #upSince = 0;
  #token = '';
  /** The last token that the relay refused. It is not tried again. */
  #refusedToken: string | null = null;
  /** Whether a failed attempt was printed since the last link. */
  #warned = false;
  #cancelTimer = (): void => {};

  constructor(options: LinkOptions & LinkUser) {
    checkLinkUrl(options.url);
    checkToken(options.token);
    this.#options = options;
    this.#Socket = socketConstructor(options.WebSocket);
    this.#clock = options.clock ?? systemClock;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** Whether the current socket has sent its hello, so that the relay may count this client as connected. */
  get greeted(): boolean {
    return this.#session?.greeted ?? false;
  }

  /** Starts connecting. Afterwards the link reconnects by itself; further calls do nothing. */
  connect(): void {
    if (this.#status.state === 'disconnected' && this.#status.retryInMs === null) void this.#open();
  }

  /** Sends a frame. Returns false when there is no link; the frame is then discarded. */
  send(header: UpHeader, payload: string | null = null): boolean {
    return this.sendText(upFrame(header, payload));
  }

  sendText(text: string): boolean {
    return this.#session?.send(text) ?? false;
  }

  flush(): void {
    this.#session?.flush();
  }

  /**
   * Returns how much waits to be sent: the bytes in the socket's buffer, plus the characters of frames that wait to be
   * joined.
   */
  backlog(): number {
    return this.#session?.backlog() ?? 0;
  }

  close(reason = 'client_closed'): void {
    this.#session?.close(1000, reason);
    this.#shut(reason, 'This program closed the link.');
  }

  async #open(): Promise<void> {
    this.#set({ state: 'connecting', attempt: this.#attempt });
    let token: string;
    try {
      token = await takeToken(this.#options.token);
    } catch (error) {
      this.#report(error);
      return this.#retry({ reason: 'token_failed', said: String(error) });
    }
    if (this.#status.state !== 'connecting') return;
    if (token === this.#refusedToken) return this.#retry({ reason: 'unauthenticated', said: null });
    this.#token = token;
    this.#start();
  }

  #start(): void {
    try {
      this.#session = new Session({
        socket: new this.#Socket(this.#options.url, SUBPROTOCOL),
        clock: this.#clock,
        hello: () => this.#options.hello(this.#token),
        onWelcome: (welcome) => this.#up(welcome),
        onFrame: (frame) => this.#frame(frame),
        onEnd: (end) => this.#ended(end),
      });
    } catch (error) {
      this.#report(error);
      this.#retry({ reason: 'connect_failed', said: String(error) });
    }
  }

  #up(welcome: Welcome): void {
    this.#upSince = this.#clock.now();
    this.#refusedToken = null;
    this.#warned = false;
    this.#renewBefore(welcome.token_expires_at);
    this.#set({ state: 'connected', welcome });
  }

  #frame(frame: LinkFrame): void {
    if (frame.type === 'renewed') this.#renewBefore(frame.token_expires_at);
    guarded(() => this.#options.onFrame(frame), this.#options.onError);
  }

  #ended(end: SessionEnd): void {
    this.#session = null;
    this.#cancelTimer();
    if (this.#status.state === 'connected' && this.#clock.now() - this.#upSince >= STABLE_MS) this.#attempt = 0;
    const verdict = verdictOf(end);
    if (verdict === 'no' || (verdict === 'renew' && typeof this.#options.token === 'string')) {
      const message = this.#advice(end);
      this.#warn({ state: 'closed', reason: end.reason, message });
      return this.#shut(end.reason, message);
    }
    if (verdict === 'renew') this.#refusedToken = this.#token;
    this.#retry(end, end.bye?.after_ms ?? 0);
  }

  #retry(end: Why, afterMs = 0): void {
    if (this.#status.state === 'closed') return;
    const retryInMs = reconnectMs(this.#attempt++, afterMs, this.#options.random);
    this.#cancelTimer = this.#clock.after(retryInMs, () => void this.#open());
    const status = { state: 'disconnected', reason: end.reason, message: this.#advice(end), retryInMs } as const;
    if (this.#status.state === 'connecting' && !this.#warned) this.#warn(status);
    this.#set(status);
  }

  #advice({ reason, said }: Why): string {
    return linkAdvice({ url: this.#options.url, reason, said, accepted: this.#status.state === 'connected' });
  }

  #warn(status: Exclude<LinkStatus, { state: 'connecting' | 'connected' }>): void {
    this.#warned = true;
    const then = status.state === 'disconnected' ? ' It tries again.' : '';
    if (!this.#options.isHeard(status)) warn(this.#options.who, status.message + then);
  }

  #renewBefore(expiresAt: number | undefined): void {
    this.#cancelTimer();
    if (expiresAt === undefined || typeof this.#options.token === 'string') return;
    const inMs = renewInMs(expiresAt, this.#clock.now());
    this.#cancelTimer = this.#clock.after(inMs, () => void this.#renew(expiresAt));
  }

  async #renew(expiresAt: number): Promise<void> {
    const session = this.#session;
    const token = await takeToken(this.#options.token).catch((error: unknown) => void this.#report(error));
    if (session === null || this.#session !== session) return;
    if (token === undefined || token === this.#token) return this.#renewBefore(expiresAt);
    this.#token = token;
    this.send({ type: 'auth', token });
  }

  #shut(reason: string, message: string): void {
    if (this.#status.state === 'closed') return;
    this.#session = null;
    this.#cancelTimer();
    this.#set({ state: 'closed', reason, message });
  }

  #set(status: LinkStatus): void {
    this.#status = status;
    guarded(() => this.#options.onStatus(status), this.#options.onError);
  }

  #report(error: unknown): void {
    guarded(() => this.#options.onError?.(error), undefined);
  }
}

/**
 * Returns whether to reconnect after a session has ended (`renew`: only with another token). As PROTOCOL.md says in
 * section 9, a `bye` frame overrides the close code, unless the close code says `renew`.
 */
function verdictOf({ code, bye }: SessionEnd): 'yes' | 'renew' | 'no' {
  const reason = code === null ? undefined : closeReasonOf(code);
  const row = reason === undefined ? 'yes' : CLOSE[reason].reconnect;
  if (row === 'renew' || bye === null) return row;
  return bye.reconnect ? 'yes' : 'no';
}

type Bye = Extract<DownFrame, { type: 'bye' }>;
/** The frames that the session passes on; it handles the others itself. */
export type LinkFrame = Exclude<DownFrame, { type: 'welcome' | 'ping' | 'bye' }>;

/** Why a link is down. `said`: what the relay or the token function said about it; null if nothing. */
type Why = { readonly reason: string; readonly said: string | null };

/** The end of a session. `code` is that of `bye`, otherwise the socket's close code, otherwise null. */
type SessionEnd = Why & { readonly code: number | null; readonly bye: Bye | null };

type SessionOptions = {
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

/** One socket from opening to end. Sends the hello, answers pings, and gives the socket up when the relay is silent. */
class Session {
  readonly #options: SessionOptions;
  #phase: 'opening' | 'welcome' | 'over' = 'opening';
  #deadMs = OPEN_MS;
  #heardAt: number;
  #cancelWatch: () => void;
  greeted = false;
  /** Why the relay refuses the hello. */
  #said: string | null = null;
  readonly #batch = new FrameBatch((text) => this.#write(text));

  constructor(options: SessionOptions) {
    const { socket, clock } = options;
    this.#options = options;
    this.#heardAt = clock.now();
    this.#cancelWatch = clock.after(OPEN_MS, () => this.#watch());
    socket.addEventListener('open', () => void (this.greeted = this.#write(options.hello())));
    socket.addEventListener('message', (event) => this.#received(event));
    // The event `close` follows and ends the session. Without an error listener, some sockets throw.
    socket.addEventListener('error', () => {});
    socket.addEventListener('close', (event) => this.#over(endOf(event)));
  }

  /**
   * Sends a frame. Returns false before `welcome`, after the end, and when the socket throws at once. If the relay
   * accepts several frames in one message, the frames of one event-loop turn are sent together, after its microtasks.
   */
  send(text: string): boolean {
    return this.#phase === 'welcome' && this.#batch.send(text);
  }

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

  #over(end: Omit<SessionEnd, 'said'>): void {
    if (this.#stop(1000, '')) this.#options.onEnd({ ...end, said: this.#said });
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
    else if (frame.type === 'refused') this.#said = frame.message;
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

function endOf({ code }: SocketEvent): Omit<SessionEnd, 'said'> {
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

/** The most bytes that one UTF-16 code unit takes in UTF-8. */
const UNIT_BYTES = 3;

/**
 * Joins frames into messages. Before `allow` is called, each frame is sent alone and immediately. If the relay
 * accepts only one frame in a message, this stays so.
 */
export class FrameBatch {
  readonly #write: (message: string) => boolean;
  #texts: string[] = [];
  #chars = 0;
  #mostFrames = 1;
  #mostChars = 0;

  /** `write` returns false when the message cannot be sent. */
  constructor(write: (message: string) => boolean) {
    this.#write = write;
  }

  /** The total length of the frames that are not sent yet, in UTF-16 code units. */
  get chars(): number {
    return this.#chars;
  }

  /** Sets the limits of a message from the relay's `welcome`. */
  allow({ frames_per_message: frames = 1, max_frame_bytes: bytes }: Welcome): void {
    this.#mostFrames = frames;
    this.#mostChars = Math.floor(bytes / UNIT_BYTES);
  }

  /**
   * Sends a frame, or keeps it for the next message and returns true. Returns false when it cannot be sent. Frames are
   * sent in the order of the calls.
   */
  send(text: string): boolean {
    if (this.#mostFrames <= 1) return this.#write(text);
    if (this.#texts.length >= this.#mostFrames || this.#chars + text.length >= this.#mostChars) this.flush();
    this.#texts.push(text);
    this.#chars += text.length + FRAME_SEPARATOR.length;
    if (this.#texts.length === 1) this.#flushAfter(0);
    return true;
  }

  /**
   * Sends the waiting frames after the first round of microtasks that adds no frame. One round is not enough, because
   * the frames of one turn come from chains of promises of different lengths. `frames`: how many frames waited before
   * the last round.
   */
  #flushAfter(frames: number): void {
    queueMicrotask(() => {
      const { length } = this.#texts;
      if (length > frames) this.#flushAfter(length);
      else this.flush();
    });
  }

  flush(): void {
    if (this.#texts.length === 0) return;
    const message = this.#texts.join(FRAME_SEPARATOR);
    this.#texts = [];
    this.#chars = 0;
    this.#write(message);
  }
}

/** Returns the text of a frame to the relay. `payload` must be JSON text. */
export const upFrame: (header: UpHeader, payload?: string | null) => string = joinFrame;
