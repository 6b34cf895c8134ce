/**
 * Keeps a WebSocket link to a relay: reconnects it, renews its token, and moves it to the relay that owns the user's
 * data. Passes received frames to `onFrame`.
 */
import { longerThan } from '../../protocol/bounds.ts';
import { SUBPROTOCOL, type DownFrame, type UpHeader } from '../../protocol/frames.ts';
import { followPage } from './page.ts';
import { FUNCTION, HOSTS, LINK_URL, OBJECT, TOKEN, type MembersOf } from './options.ts';
import { linkAdvice, type LinkHelp, warn } from './advice.ts';
import { guarded, reportTo, type ErrorSink } from './callbacks.ts';
import { BOUNDS, boundsOf, type LinkBounds, type LinkStatus, type Welcome } from './link-status.ts';
import { backoffMs, STABLE_MS, reconnectMs, renewInMs, takeTokenInTime, type TokenSource } from './reconnect.ts';
import { elapsed, socketConstructor, systemClock, type Clock, type SocketConstructor } from './platform.ts';
import { Session, upFrame, type LinkFrame, type SessionEnd, type Why } from './session.ts';

/** The options of all libraries that keep a link. */
export type LinkOptions = {
  /**
   * The address of the relay's `/connect`, or the address that a proxy maps to it: `ws://` or `wss://`. If there are
   * several addresses of one deployment, the next one is tried when a link ends or cannot be opened, with one backoff
   * for all of them.
   */
  readonly url: string | readonly string[];
  /**
   * The hosts, besides those of `url`, to which the link may move when the relay says that another relay owns the
   * user's data (its home). Patterns such as `relay-*.example` or `10.0.0.*:4400`, in which `*` stands for any
   * characters except dots and colons. Omit the port if it is the default of the scheme. The link never moves from an
   * address with TLS to one without.
   */
  readonly homes?: readonly string[];
  /**
   * A token, or a function that returns one. The function is called before each connection and each renewal. When the
   * link moves to a home, the same token is used there. If the relay refuses a constant token, the link is closed
   * permanently. If the function throws, `onError` receives the error and the link tries again later (`token_failed`).
   * Undefined, for example because an environment variable is not set, is refused at once.
   */
  readonly token: TokenSource | undefined;
  /**
   * Called at each change of the status. If it throws, `onError` receives the error. If the program has no callback for
   * the status, the library warns on the console: about a failed attempt, once until the next link, and about an end
   * that the program did not cause.
   */
  readonly onStatus?: (status: LinkStatus) => void;
  /**
   * Receives errors that no method reports: a callback or the token function threw, or the relay refused a frame. What
   * this callback throws is ignored.
   */
  readonly onError?: ErrorSink;
  /** The class for sockets. Default: the platform's. If it throws, the link tries again (`connect_failed`). */
  readonly WebSocket?: SocketConstructor;
  /** The source of time and timers. Default: the system's. */
  readonly clock?: Clock;
  /** A source of random numbers from 0 (included) to 1 (excluded), for jitter. Default `Math.random`. */
  readonly random?: () => number;
};

export const LINK_MEMBERS: MembersOf<LinkOptions> = [
  { url: LINK_URL, token: TOKEN },
  { homes: HOSTS, onStatus: FUNCTION, onError: FUNCTION, WebSocket: FUNCTION, clock: OBJECT, random: FUNCTION },
];

type LinkUser = {
  /** The name of the link's user in warnings, such as `client tab`. */
  readonly who: string;
  /** Parses a frame for this kind of link; null if the frame is unknown. */
  readonly parse: (text: string) => DownFrame | null;
  /** Whether the program learns of this status, or has caused it. If so, no warning is printed. */
  isHeard(status: LinkStatus): boolean;
  /** Advice for reasons of an end that only this kind of link has. */
  readonly help?: LinkHelp;
  /**
   * Returns the text of the hello frame for a new connection. `attempt`: the number of the connection, from 1. When
   * this is called, all earlier sockets have been given up, and frames that they still receive are ignored.
   */
  hello(token: string, attempt: number): string;
  /**
   * `ageMs`: how long ago the relay sent the frame, minus the shortest delay that this link has seen; null if the relay
   * does not say.
   */
  onFrame(frame: LinkFrame, ageMs: number | null): void;
  onStatus(status: LinkStatus): void;
};

/**
 * The upper bound of the random delay before a link moves to the user's home, in milliseconds. The delay is random
 * because many links may move there at the same time.
 */
const HOME_BASE_MS = 5_000;
/** The upper bound of this delay after several failed attempts, in milliseconds. */
const HOME_CAP_MS = 600_000;

/**
 * A link that reconnects by itself until it is closed permanently. It uses one socket at a time. If the relay names
 * another relay as the user's home, the link opens a socket there, and then leaves its present socket. Only the
 * constructor throws: TypeError for wrong options, or if there is no WebSocket.
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
  /** Match the hosts to which the link may move. */
  readonly #hosts: readonly RegExp[];
  /** The address of the home to which the link has moved; null if it is at one of its own addresses. */
  #home: string | null = null;
  /** The socket that is being opened to a home; null if there is none. */
  #next: Session | null = null;
  /**
   * The previous socket after a move to a home. It stays open until the home has answered, because closing it earlier
   * would count as a disconnect. Null if there is none.
   */
  #left: Session | null = null;
  /** How many attempts to move to a home have failed in a row. */
  #failedHomes = 0;
  #stays = false;
  #cancelSeek = (): void => {};
  #stopFollowing = (): void => {};
  #attempt = 0;
  /** How many sockets were opened. */
  #sockets = 0;
  #upSince = 0;
  #token = '';
  /** When the token of the link expires (epoch milliseconds), as the relay said. */
  #expiresAt: number | undefined;
  /** The last token that the relay refused. It is not used again. */
  #refusedToken: string | null = null;
  /** Whether a failed attempt was printed since the link was last connected. */
  #warned = false;
  #cancelTimer = (): void => {};
  /** The bounds from the last `welcome`. */
  bounds: LinkBounds = BOUNDS;

  constructor(options: LinkOptions & LinkUser) {
    this.#options = options;
    this.#urls = [options.url].flat();
    const own = this.#urls.map((url) => new URL(url).host);
    this.#hosts = [...own, ...(options.homes ?? [])].map(hostPattern);
    this.#Socket = socketConstructor(options.WebSocket);
    this.#clock = options.clock ?? systemClock;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** The address in use; while there is no link, the address that is tried next. */
  get url(): string {
    return this.#home ?? this.#urls[this.#moves % this.#urls.length] ?? '';
  }

  /** Whether the current socket has sent its hello. From then on the relay may count this client as connected. */
  get greeted(): boolean {
    return this.#session?.greeted ?? false;
  }

  /** Starts connecting. From then on the link reconnects by itself. Further calls do nothing. */
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

  /**
   * Closes the socket because the page is frozen and runs no code. Otherwise the relay would count a client as
   * connected that does not respond.
   */
  #hide(): void {
    // A page that enters the back-forward cache also gets a freeze event. Then this was already done.
    if ('reason' in this.#status && this.#status.reason === HIDDEN) return;
    this.#session?.close(HIDDEN);
    this.#session = null;
    this.#forgetHome();
    this.#cancelTimer();
    this.#attempt = 0;
    const message = 'The page is frozen or in the back-forward cache. The link opens when it is shown again.';
    this.#set({ state: 'disconnected', reason: HIDDEN, message, retryInMs: null });
  }

  /**
   * Called when the page or the machine wakes. If the link waits for its next attempt, connects at once. If it is
   * connected, checks that the relay still answers, by sending a token.
   */
  #wake(): void {
    const isWaiting = this.#status.state === 'disconnected' && this.#status.retryInMs !== null;
    if (isWaiting) {
      this.#cancelTimer();
      void this.#open();
    }
    if (this.#session?.expectAnswer()) this.send({ type: 'auth', token: this.#token });
  }

  /** Sends a frame. Returns false, and discards the frame, if there is no link. */
  send(header: UpHeader, payload: string | null = null): boolean {
    return this.sendText(upFrame(header, payload));
  }

  /**
   * Sends the text of a frame, like `send`. Returns false as well if the frame is larger than the present relay
   * accepts.
   */
  sendText(text: string): boolean {
    return this.#session !== null && !longerThan(text, this.bounds.maxFrameBytes) && this.#session.send(text);
  }

  flush(): void {
    this.#session?.flush();
  }

  /**
   * Returns how much has not been sent yet: the bytes in the socket's buffer, plus the characters of frames that wait
   * to be joined.
   */
  backlog(): number {
    return this.#session?.backlog() ?? 0;
  }

  /** Keeps the link at its present relay, because the program is about to close it. */
  stay(): void {
    this.#stays = true;
    this.#stopSeeking();
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
      this.#session = this.#sessionAt(this.url, {
        hello: () => this.#options.hello(this.#token, attempt),
        onEnd: (end) => this.#ended(end),
      });
    } catch (error) {
      this.#report(error);
      this.#retry({ reason: 'connect_failed', said: String(error) });
    }
  }

  #sessionAt(url: string, on: { hello(): string; onEnd(end: SessionEnd): void }): Session {
    return new Session({
      ...on,
      socket: new this.#Socket(url, SUBPROTOCOL),
      clock: this.#clock,
      parse: this.#options.parse,
      onWelcome: (welcome) => this.#up(welcome),
      onFrame: (frame, ageMs) => this.#frame(frame, ageMs),
    });
  }

  /** Schedules a move to the user's home, if the program's options allow that host. */
  #seek(home: string | undefined): void {
    this.#stopSeeking();
    if (home === undefined || this.#stays || !mayGo(home, this.url, this.#hosts)) return;
    const { random = Math.random } = this.#options;
    const inMs = backoffMs(this.#failedHomes, { baseMs: HOME_BASE_MS, capMs: HOME_CAP_MS, random });
    this.#cancelSeek = this.#clock.after(inMs, () => this.#openHome(home));
  }

  /** Opens a socket to a home. The present socket stays in use until the new one is open. */
  #openHome(home: string): void {
    const failed = (): void => {
      this.#next = null;
      this.#failedHomes++;
      this.#seek(home);
    };
    try {
      const next = this.#sessionAt(home, {
        hello: () => this.#leaveFor(home, next),
        onEnd: (end) => (this.#session === next ? this.#ended(end) : failed()),
      });
      this.#next = next;
    } catch (error) {
      this.#report(error);
      failed();
    }
  }

  /** Makes the socket to the home the current one, and stops using the previous one. Returns the hello for the home. */
  #leaveFor(home: string, next: Session): string {
    this.#session?.leave();
    // The previous socket is not closed yet. Otherwise the client would count as disconnected until the home welcomes
    // it.
    this.#left = this.#session;
    this.#session = next;
    this.#next = null;
    this.#home = home;
    this.#cancelTimer();
    this.#set({ state: 'connecting', attempt: this.#attempt });
    return this.#options.hello(this.#token, ++this.#sockets);
  }

  #stopSeeking(): void {
    this.#cancelSeek();
    this.#next?.close('');
    this.#next = null;
  }

  #closeLeft(): void {
    this.#left?.close('');
    this.#left = null;
  }

  #forgetHome(): void {
    this.#stopSeeking();
    this.#closeLeft();
    this.#home = null;
  }

  #up(welcome: Welcome): void {
    this.#closeLeft();
    if (welcome.home === undefined) this.#failedHomes = 0;
    // A home that names yet another home may be wrong, and following it could move the link in circles. So this counts
    // as a failed move.
    else if (this.#home !== null) this.#failedHomes++;
    this.#upSince = elapsed(this.#clock);
    this.bounds = boundsOf(welcome);
    this.#refusedToken = null;
    this.#warned = false;
    this.#renewBefore(welcome.token_expires_at);
    this.#set({ state: 'connected', welcome });
    if (this.#status.state === 'connected') this.#seek(welcome.home);
  }

  #frame(frame: LinkFrame, ageMs: number | null): void {
    if (frame.type === 'home') return this.#seek(frame.url);
    if (frame.type === 'renewed') this.#renewBefore(frame.token_expires_at);
    if (frame.type === 'refused' && frame.frame === 'auth') this.#renewBefore(this.#expiresAt);
    guarded(() => this.#options.onFrame(frame, ageMs), this.#options.onError);
  }

  #ended(end: SessionEnd): void {
    this.#session = null;
    this.#stopSeeking();
    this.#closeLeft();
    this.#cancelTimer();
    if (this.#status.state === 'connected' && elapsed(this.#clock) - this.#upSince >= STABLE_MS) this.#attempt = 0;
    // The home refused the link. It may belong to another deployment, so its reason is not final. If the reason
    // concerns the program, the link's own relays report it too.
    if (this.#home !== null && this.#status.state === 'connecting') {
      this.#failedHomes++;
      return this.#retry(end);
    }
    // Before the welcome only the hello was sent. It would be too large again, so another attempt is useless.
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
    // The next address is tried only if one of the link's own addresses failed. If a home failed, the link returns to
    // the address that named it.
    if (this.#home === null) this.#moves++;
    this.#home = null;
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
    this.#forgetHome();
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

/** The reason for which a link is down while its page is frozen. */
const HIDDEN = 'page_hidden';

/** Compiles a host pattern of the option `homes`. */
function hostPattern(host: string): RegExp {
  return new RegExp(`^${host.replace(/[.*+?^${}()|[\]\\]/g, (char) => (char === '*' ? '[^.:]*' : `\\${char}`))}$`, 'i');
}

/** Whether a link at address `from` may move to the address `home`. */
function mayGo(home: string, from: string, hosts: readonly RegExp[]): boolean {
  if (!URL.canParse(home)) return false;
  const { protocol, host } = new URL(home);
  const isSafe = protocol === 'wss:' || (protocol === 'ws:' && new URL(from).protocol === protocol);
  return isSafe && hosts.some((pattern) => pattern.test(host));
}
