/**
 * Keeps a WebSocket link to a relay: reconnects it, renews its token, and takes it to the relay that is nearest to the
 * user's data. Knows no commands: `onFrame` receives the frames.
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

/** The options of every library that keeps a link. */
export type LinkOptions = {
  /**
   * The relay's `/connect`, or the address that a proxy maps to it; `ws://` or `wss://`. Of several addresses of one
   * deployment, the next one is tried when a link ends or cannot be opened, with one backoff for all.
   */
  readonly url: string | readonly string[];
  /**
   * The hosts besides those of `url` to which the link may go when the relay names one as nearer to the user's data:
   * patterns such as `relay-*.example` or `10.0.0.*:4400`, in which `*` stands for any characters but dots and colons.
   * The port is absent if it is that of the scheme. From an address with TLS the link never goes to one without.
   */
  readonly homes?: readonly string[];
  /**
   * A token, or a function that returns one. The function is called before each connection and each renewal; a home gets
   * the token of the link that goes there. A constant token that the relay refuses closes the link permanently. If the
   * function throws, `onError` receives the error, and the link tries again later (`token_failed`). Undefined, such as an
   * environment variable that is not set, is refused at once.
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
  { homes: HOSTS, onStatus: FUNCTION, onError: FUNCTION, WebSocket: FUNCTION, clock: OBJECT, random: FUNCTION },
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

/** The upper bound of the delay before a link goes to the user's home, in milliseconds: others may go there too. */
const HOME_BASE_MS = 5_000;
/** The same after attempts that failed. */
const HOME_CAP_MS = 600_000;

/**
 * A link that reconnects by itself, one socket at a time, until it is closed permanently. If the relay names another one
 * as the user's home, the link goes there: it leaves its socket when that of the home is open. Only the constructor
 * throws: TypeError for wrong options, or when there is no WebSocket.
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
  /** Match the hosts to which the link may go. */
  readonly #hosts: readonly RegExp[];
  /** The address of the home that the link is at; null: it is at one of its own addresses. */
  #home: string | null = null;
  /** The socket that is being opened to a home. */
  #next: Session | null = null;
  /** The socket that this program leaves for the relay at another address, kept until that relay has answered. */
  #left: Session | null = null;
  /** How many homes in a row were no home in the end. */
  #failedHomes = 0;
  #stays = false;
  #cancelSeek = (): void => {};
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
    const own = this.#urls.map((url) => new URL(url).host);
    this.#hosts = [...own, ...(options.homes ?? [])].map(hostPattern);
    this.#Socket = socketConstructor(options.WebSocket);
    this.#clock = options.clock ?? systemClock;
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** The address in use, or the one that is tried next. */
  get url(): string {
    return this.#home ?? this.#urls[this.#moves % this.#urls.length] ?? '';
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
    this.#forgetHome();
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

  /** Keeps the link at the relay where it is: the program is about to leave. */
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

  /** Goes in a while to the relay that is nearest to the user's data, if the program allows it. */
  #seek(home: string | undefined): void {
    this.#stopSeeking();
    if (home === undefined || this.#stays || !mayGo(home, this.url, this.#hosts)) return;
    const { random = Math.random } = this.#options;
    const inMs = backoffMs(this.#failedHomes, { baseMs: HOME_BASE_MS, capMs: HOME_CAP_MS, random });
    this.#cancelSeek = this.#clock.after(inMs, () => this.#openHome(home));
  }

  /** Opens a socket to a home. Until it is open, everything goes on as before. */
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

  /** Leaves the present socket for that of a home. Returns the hello for the home. */
  #leaveFor(home: string, next: Session): string {
    this.#session?.leave();
    // It is not closed yet: then the client would count as disconnected until the home has welcomed it.
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
    // A home that names another one could send the link around.
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
    // It may be of another deployment. What the program must know, the relays that it named say too.
    if (this.#home !== null && this.#status.state === 'connecting') {
      this.#failedHomes++;
      return this.#retry(end);
    }
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
    // The relay that named the home was there.
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

/** Why a link is down while its page runs no code. */
const HIDDEN = 'page_hidden';

/** Returns the pattern of hosts that a program names. */
function hostPattern(host: string): RegExp {
  return new RegExp(`^${host.replace(/[.*+?^${}()|[\]\\]/g, (char) => (char === '*' ? '[^.:]*' : `\\${char}`))}$`, 'i');
}

/** Whether a link that is at one address may go to another one. */
function mayGo(home: string, from: string, hosts: readonly RegExp[]): boolean {
  if (!URL.canParse(home)) return false;
  const { protocol, host } = new URL(home);
  const isSafe = protocol === 'wss:' || (protocol === 'ws:' && new URL(from).protocol === protocol);
  return isSafe && hosts.some((pattern) => pattern.test(host));
}
