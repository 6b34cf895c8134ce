/**
 * Keeps a WebSocket link to the relay: reconnects it, renews its token, and joins frames into messages. Knows no
 * commands: `onFrame` receives the frames.
 */
import { longerThan } from '../../protocol/bounds.ts';
import { closeReasonOf, reconnectAfter, type Reconnect } from '../../protocol/codes.ts';
import { FRAME_SEPARATOR, SUBPROTOCOL, joinFrame, type DownFrame, type UpHeader } from '../../protocol/frames.ts';
import { followPage } from './page.ts';
import { FUNCTION, LINK_URL, OBJECT, TOKEN, type MembersOf } from './options.ts';
import {
  BOUNDS,
  boundsOf,
  elapsed,
  guarded,
  linkAdvice,
  type LinkHelp,
  warn,
  STABLE_MS,
  reconnectMs,
  renewInMs,
  reportTo,
  socketConstructor,
  systemClock,
  takeTokenInTime,
  type Clock,
  type ErrorSink,
  type LinkBounds,
  type LinkStatus,
  type SocketConstructor,
  type SocketEvent,
  type SocketLike,
  type TokenSource,
  type Welcome,
} from './platform.ts';

/** The options of every library that keeps a link. */
export type LinkOptions = {
  /**
   * The relay's `/connect`, or the address that a proxy maps to it; `ws://` or `wss://`. Of several addresses of one
   * deployment, the next one is tried when a link ends or cannot be opened, with one backoff for all.
   */
  readonly url: string | readonly string[];
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

export const LINK_MEMBERS: MembersOf<LinkOptions> = [
  { url: LINK_URL, token: TOKEN },
  { onStatus: FUNCTION, onError: FUNCTION, WebSocket: FUNCTION, clock: OBJECT, random: FUNCTION },
];

type LinkUser = {
  /** Whose link it is, such as `client tab`. Warnings begin with it. */
  readonly who: string;
  /** Reads a frame that is for this user. */
  readonly parse: (text: string) => DownFrame | null;
  /** Whether the program receives this status or caused it. If so, nothing is printed. */
  isHeard(status: LinkStatus): boolean;
  /** What helps where only this kind of link ends so. */
  readonly help?: LinkHelp;
  /**
   * Returns the text of the hello frame for a new connection. `attempt`: its number, from 1. Called when all earlier
   * sockets are given up: no frame that they still receive is handled any more.
   */
  hello(token: string, attempt: number): string;
  /** `ageMs`: how long ago the relay sent it, beyond the shortest delay of this link; null: the relay does not say. */
  onFrame(frame: LinkFrame, ageMs: number | null): void;
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
  readonly #urls: readonly string[];
  #moves = 0;
  #stopFollowing = (): void => {};
  #attempt = 0;
  /** How many sockets were opened. */
  #sockets = 0;
  #upSince = 0;
  #token = '';
  /** When the token of the link expires, as the relay says. */
  #expiresAt: number | undefined;
  /** The last token that the relay refused. It is not tried again. */
  #refusedToken: string | null = null;
  /** Whether a failed attempt was printed since the last link. */
  #warned = false;
  #cancelTimer = (): void => {};
  /** The bounds of the last `welcome`. */
  bounds: LinkBounds = BOUNDS;

  constructor(options: LinkOptions & LinkUser) {
    this.#options = options;
    this.#urls = [options.url].flat();
    this.#Socket = socketConstructor(options.WebSocket);
    this.#clock = options.clock ?? systemClock;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** The address in use, or the one that is tried next. */
  get url(): string {
    return this.#urls[this.#moves % this.#urls.length] ?? '';
  }

  /** Whether the current socket has sent its hello, so that the relay may count this client as connected. */
  get greeted(): boolean {
    return this.#session?.greeted ?? false;
  }

  /** Starts connecting. Afterwards the link reconnects by itself; further calls do nothing. */
  connect(): void {
    if (this.#status.state !== 'disconnected' || this.#status.retryInMs !== null) return;
    this.#stopFollowing();
    this.#stopFollowing = followPage({
      hidden: () => this.#hide(),
      shown: () => this.connect(),
      woke: () => this.#wake(),
    });
    void this.#open();
  }

  /** Ends the link: a page that runs no code must not be taken for a client that is there. */
  #hide(): void {
    // A page that goes into the cache is frozen too.
    if ('reason' in this.#status && this.#status.reason === HIDDEN) return;
    this.#session?.close(HIDDEN);
    this.#session = null;
    this.#cancelTimer();
    this.#attempt = 0;
    const message = 'The page is frozen or in the back-forward cache. The link opens when it is shown again.';
    this.#set({ state: 'disconnected', reason: HIDDEN, message, retryInMs: null });
  }

  /** Tries again at once, or finds out whether the link is still there: the relay answers a token. */
  #wake(): void {
    const isWaiting = this.#status.state === 'disconnected' && this.#status.retryInMs !== null;
    if (isWaiting) {
      this.#cancelTimer();
      void this.#open();
    }
    if (this.#session?.expectAnswer()) this.send({ type: 'auth', token: this.#token });
  }

  /** Sends a frame. Returns false when there is no link; the frame is then discarded. */
  send(header: UpHeader, payload: string | null = null): boolean {
    return this.sendText(upFrame(header, payload));
  }

  /** Does the same with the text of a frame. A frame that the present relay does not accept is not sent either. */
  sendText(text: string): boolean {
    return this.#session !== null && !longerThan(text, this.bounds.maxFrameBytes) && this.#session.send(text);
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
    this.#session?.close(reason);
    this.#shut(reason, 'This program closed the link.');
  }

  async #open(): Promise<void> {
    this.#set({ state: 'connecting', attempt: this.#attempt });
    let token: string;
    try {
      token = await takeTokenInTime(this.#options.token, this.#clock);
    } catch (error) {
      if (this.#status.state !== 'connecting') return;
      this.#report(error);
      return this.#retry({ reason: 'token_failed', said: String(error) });
    }
    if (this.#status.state !== 'connecting') return;
    if (token === this.#refusedToken) return this.#retry({ reason: 'unauthenticated', said: null });
    this.#token = token;
    this.#start();
  }

  #start(): void {
    const attempt = ++this.#sockets;
    try {
      this.#session = new Session({
        socket: new this.#Socket(this.url, SUBPROTOCOL),
        clock: this.#clock,
        parse: this.#options.parse,
        hello: () => this.#options.hello(this.#token, attempt),
        onWelcome: (welcome) => this.#up(welcome),
        onFrame: (frame, ageMs) => this.#frame(frame, ageMs),
        onEnd: (end) => this.#ended(end),
      });
    } catch (error) {
      this.#report(error);
      this.#retry({ reason: 'connect_failed', said: String(error) });
    }
  }

  #up(welcome: Welcome): void {
    this.#upSince = elapsed(this.#clock);
    this.bounds = boundsOf(welcome);
    this.#refusedToken = null;
    this.#warned = false;
    this.#renewBefore(welcome.token_expires_at);
    this.#set({ state: 'connected', welcome });
  }

  #frame(frame: LinkFrame, ageMs: number | null): void {
    if (frame.type === 'renewed') this.#renewBefore(frame.token_expires_at);
    if (frame.type === 'refused' && frame.frame === 'auth') this.#renewBefore(this.#expiresAt);
    guarded(() => this.#options.onFrame(frame, ageMs), this.#options.onError);
  }

  #ended(end: SessionEnd): void {
    this.#session = null;
    this.#cancelTimer();
    if (this.#status.state === 'connected' && elapsed(this.#clock) - this.#upSince >= STABLE_MS) this.#attempt = 0;
    // Before the welcome only the hello was sent, and it would be too large again.
    const isTooLarge = end.reason === 'frame_too_large' && this.#status.state === 'connecting';
    const reconnect = isTooLarge ? 'no' : end.reconnect;
    if (reconnect === 'no' || (reconnect === 'renew' && typeof this.#options.token === 'string')) {
      const message = this.#advice(end);
      this.#warn({ state: 'closed', reason: end.reason, message });
      return this.#shut(end.reason, message);
    }
    if (reconnect === 'renew') this.#refusedToken = this.#token;
    this.#retry(end, end.afterMs);
  }

  #retry(end: Why, afterMs = 0): void {
    if (this.#status.state === 'closed') return;
    const retryInMs = reconnectMs(this.#attempt++, afterMs, this.#options.random);
    this.#cancelTimer = this.#clock.after(retryInMs, () => void this.#open());
    const status = { state: 'disconnected', reason: end.reason, message: this.#advice(end), retryInMs } as const;
    this.#moves++;
    if (this.#status.state === 'connecting' && !this.#warned) this.#warn(status);
    this.#set(status);
  }

  #advice({ reason, said }: Why): string {
    const { help } = this.#options;
    return linkAdvice({ url: this.url, reason, said, help, accepted: this.#status.state === 'connected' });
  }

  #warn(status: Exclude<LinkStatus, { state: 'connecting' | 'connected' }>): void {
    this.#warned = true;
    const then = status.state === 'disconnected' ? ' It tries again.' : '';
    if (!this.#options.isHeard(status)) warn(this.#options.who, status.message + then);
  }

  #renewBefore(expiresAt: number | undefined): void {
    this.#cancelTimer();
    this.#expiresAt = expiresAt;
    if (expiresAt === undefined || typeof this.#options.token === 'string') return;
    const inMs = renewInMs(expiresAt, this.#clock.now());
    this.#cancelTimer = this.#clock.after(inMs, () => void this.#renew(expiresAt));
  }

  async #renew(expiresAt: number): Promise<void> {
    const session = this.#session;
    const token = await takeTokenInTime(this.#options.token, this.#clock).catch(
      (error: unknown) => void this.#report(error),
    );
    if (session === null || this.#session !== session) return;
    if (token === undefined || token === this.#token) return this.#renewBefore(expiresAt);
    this.#token = token;
    this.send({ type: 'auth', token });
  }

  #shut(reason: string, message: string): void {
    if (this.#status.state === 'closed') return;
    this.#session = null;
    this.#cancelTimer();
    this.#stopFollowing();
    this.#set({ state: 'closed', reason, message });
  }

  #set(status: LinkStatus): void {
    this.#status = status;
    guarded(() => this.#options.onStatus(status), this.#options.onError);
  }

  #report(error: unknown): void {
    reportTo(this.#options.onError, error);
  }
}

type Bye = Extract<DownFrame, { type: 'bye' }>;
/** The frames that the session passes on; it handles the others itself. */
export type LinkFrame = Exclude<DownFrame, { type: 'welcome' | 'ping' | 'bye' }>;

/** Why a link is down. `said`: what the relay or the token function said about it; null if nothing. */
type Why = { readonly reason: string; readonly said: string | null };

/** The end of a session. `afterMs`: the least delay that the relay asks for. */
type SessionEnd = Why & { readonly reconnect: Reconnect; readonly afterMs: number };

type SessionOptions = {
  readonly socket: SocketLike;
  readonly clock: Clock;
  readonly parse: LinkUser['parse'];
  /** Returns the text of the hello frame. Called once, when the socket is open. */
  hello(): string;
  onWelcome(welcome: Welcome): void;
  onFrame(frame: LinkFrame, ageMs: number | null): void;
  /** Called at most once, after all other callbacks. */
  onEnd(end: SessionEnd): void;
};

/** Why a link is down while its page runs no code. */
const HIDDEN = 'page_hidden';
/** The time from the start of a connection within which `welcome` must arrive, in milliseconds. */
const OPEN_MS = 15_000;
/** How long an answer may take that shows that a socket is alive, in milliseconds. */
const ANSWER_MS = 5_000;
/** How far the wall clock must run ahead of elapsed time, in milliseconds, to show that the machine has slept. */
const ASLEEP_MS = 2_000;

/** One socket from opening to end. Sends the hello, answers pings, and gives the socket up when the relay is silent. */
class Session {
  readonly #options: SessionOptions;
  #phase: 'opening' | 'welcome' | 'over' = 'opening';
  #deadMs = OPEN_MS;
  #heardAt: number;
  /** The wall time at which something was last heard. */
  #heardWall: number;
  /** The least difference of arrival and sending that was seen, by elapsed time of either side. */
  #leastMs = Infinity;
  #cancelWatch: () => void;
  greeted = false;
  #isAsking = false;
  /** Why the relay refuses the hello. */
  #said: string | null = null;
  readonly #batch = new FrameBatch((text) => this.#write(text));

  constructor(options: SessionOptions) {
    const { socket, clock } = options;
    this.#options = options;
    this.#heardAt = elapsed(clock);
    this.#heardWall = clock.now();
    this.#cancelWatch = clock.after(OPEN_MS, () => this.#watch());
    socket.addEventListener('open', () => {
      // A socket that was given up opens too late: what its hello would say is no longer true.
      if (this.#phase === 'opening') this.greeted = this.#write(options.hello());
    });
    socket.addEventListener('message', (event) => this.#received(event));
    // The event `close` follows and ends the session. Without an error listener, some sockets throw.
    socket.addEventListener('error', () => {});
    socket.addEventListener('close', ({ code }) => this.#over(closeReasonOf(code) ?? 'connection_lost'));
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
  close(reason: string): void {
    this.#batch.flush();
    this.#stop(reason);
  }

  /**
   * Gives the socket up unless something is heard within ANSWER_MS. Returns false if that is expected already.
   */
  expectAnswer(): boolean {
    const { clock } = this.#options;
    const heardAt = this.#heardAt;
    if (this.#phase !== 'welcome' || this.#isAsking || elapsed(clock) - heardAt < ANSWER_MS) return false;
    this.#isAsking = true;
    clock.after(ANSWER_MS, () => {
      this.#isAsking = false;
      if (this.#heardAt === heardAt) this.#over('heartbeat_lost');
    });
    return true;
  }

  #watch(): void {
    const { clock } = this.#options;
    const silent = elapsed(clock) - this.#heardAt;
    if (silent < this.#deadMs) {
      this.#cancelWatch = clock.after(this.#deadMs - silent, () => this.#watch());
      return;
    }
    this.#over(this.#phase === 'opening' ? 'connect_timeout' : 'heartbeat_lost');
  }

  #stop(reason: string): boolean {
    if (this.#phase === 'over') return false;
    this.#phase = 'over';
    this.#cancelWatch();
    // A half-open socket may take long to close. Nothing waits for it, and what it still receives is ignored.
    attempt(() => this.#options.socket.close(1000, reason));
    return true;
  }

  #over(reason: string, reconnect = reconnectAfter(reason), afterMs = 0): void {
    if (this.#stop('')) this.#options.onEnd({ reason, said: this.#said, reconnect, afterMs });
  }

  /** Ends the session as the relay says. PROTOCOL.md, section 9: `bye` overrides the close code, unless that says `renew`. */
  #bye({ code, reason, reconnect, after_ms }: Bye): void {
    const usual = reconnectAfter(closeReasonOf(code));
    this.#over(reason, usual === 'renew' ? usual : reconnect ? 'yes' : 'no', after_ms);
  }

  #write(text: string): boolean {
    return this.#phase !== 'over' && attempt(() => this.#options.socket.send(text));
  }

  #received(event: SocketEvent): void {
    if (this.#phase === 'over' || typeof event.data !== 'string') return;
    if (this.#slept()) return this.#over('heartbeat_lost');
    const frame = this.#options.parse(event.data);
    // An unknown frame comes from a newer relay and is ignored.
    if (frame) this.#take(frame);
  }

  /**
   * Notes that something was heard. Returns whether this program, or its machine, has slept for so long that what the
   * socket has received may be older than it seems. Then the socket is given up, and the relay writes what
   * never arrived to the next link.
   */
  #slept(): boolean {
    const { clock } = this.#options;
    const silentMs = elapsed(clock) - this.#heardAt;
    const stoodMs = clock.now() - this.#heardWall - silentMs;
    this.#heardAt += silentMs;
    this.#heardWall = clock.now();
    return silentMs >= this.#deadMs || stoodMs >= ASLEEP_MS;
  }

  /** Returns the age of a frame that was sent at this time; null if the relay does not say. */
  #age(atMs: number | undefined): number | null {
    if (atMs === undefined) return null;
    const delay = this.#heardAt - atMs;
    this.#leastMs = Math.min(this.#leastMs, delay);
    return delay - this.#leastMs;
  }

  #take(frame: DownFrame): void {
    const age = 'at_ms' in frame ? this.#age(frame.at_ms) : null;
    if (frame.type === 'bye') this.#bye(frame);
    else if (frame.type === 'ping') this.#write(upFrame({ type: 'pong' }));
    else if (frame.type === 'welcome') this.#welcome(frame);
    else if (this.#phase === 'welcome') this.#options.onFrame(frame, age);
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
