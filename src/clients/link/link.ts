/**
 * Keeps a WebSocket link to the relay: reconnects it and renews its token. It knows no commands; frames go to
 * `onFrame`.
 */
import { CLOSE, closeReasonOf } from '../../protocol/close.ts';
import { SUBPROTOCOL } from '../../protocol/frame.ts';
import type { UpHeader } from '../../protocol/frames.ts';
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS, backoffMs } from './backoff.ts';
import { systemClock, type Clock } from './clock.ts';
import { upFrame } from './frame.ts';
import { guarded, type ErrorSink } from './guard.ts';
import { Session, type LinkFrame, type SessionEnd } from './session.ts';
import { socketConstructor, type SocketConstructor } from './socket.ts';
import type { LinkStatus, Welcome } from './status.ts';
import { renewInMs, takeToken, type TokenSource } from './token.ts';

export type LinkOptions = {
  /** The relay's `/connect`: `ws://`, `wss://`, `http://` or `https://`. */
  readonly url: string;
  readonly token: TokenSource;
  readonly WebSocket?: SocketConstructor | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
  readonly onError?: ErrorSink | undefined;
  /** Returns the text of the hello frame for a new connection. */
  hello(token: string): string;
  onFrame(frame: LinkFrame): void;
  onStatus(status: LinkStatus): void;
};

/** A link that was up for this time, in milliseconds, resets the backoff. */
const STABLE_MS = 10_000;
/** The longest delay before a reconnect that the relay may ask for, in milliseconds. */
const LONGEST_AFTER_MS = 300_000;

/**
 * A link that reconnects by itself, one socket at a time, until it is closed permanently. Only the constructor throws:
 * TypeError for a wrong URL, or when there is no WebSocket.
 */
export class RelayLink {
  readonly #options: LinkOptions;
  readonly #Socket: SocketConstructor;
  readonly #clock: Clock;
  #status: LinkStatus = { state: 'disconnected', reason: 'not_connected', retryInMs: null };
  #session: Session | null = null;
  #attempt = 0;
  #upSince = 0;
  #token = '';
  /** The last token that the relay refused. It is not tried again. */
  #refusedToken: string | null = null;
  #cancelTimer = (): void => {};

  constructor(options: LinkOptions) {
    if (!/^(ws|http)s?:$/.test(new URL(options.url).protocol)) throw new TypeError('url: ws:// or wss:// expected');
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

  /** Sends the waiting frames at once. */
  flush(): void {
    this.#session?.flush();
  }

  /** Returns the number of bytes that wait in the socket's send buffer. */
  backlog(): number {
    return this.#session?.backlog() ?? 0;
  }

  close(reason = 'client_closed'): void {
    this.#session?.close(1000, reason);
    this.#shut(reason);
  }

  async #open(): Promise<void> {
    this.#set({ state: 'connecting', attempt: this.#attempt });
    let token: string;
    try {
      token = await takeToken(this.#options.token);
    } catch (error) {
      this.#report(error);
      return this.#retry('token_failed', 0);
    }
    if (this.#status.state !== 'connecting') return;
    if (token === this.#refusedToken) return this.#retry('unauthenticated', 0);
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
      this.#retry('connect_failed', 0);
    }
  }

  #up(welcome: Welcome): void {
    this.#upSince = this.#clock.now();
    this.#refusedToken = null;
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
    if (verdict === 'no') return this.#shut(end.reason);
    if (verdict === 'renew' && typeof this.#options.token === 'string') return this.#shut(end.reason);
    if (verdict === 'renew') this.#refusedToken = this.#token;
    this.#retry(end.reason, end.bye?.after_ms ?? 0);
  }

  #retry(reason: string, afterMs: number): void {
    if (this.#status.state === 'closed') return;
    const random = this.#options.random ?? Math.random;
    const jitter = backoffMs(this.#attempt++, { baseMs: BACKOFF_BASE_MS, capMs: BACKOFF_CAP_MS, random });
    const retryInMs = Math.min(LONGEST_AFTER_MS, Math.max(0, afterMs)) + jitter;
    this.#cancelTimer = this.#clock.after(retryInMs, () => void this.#open());
    this.#set({ state: 'disconnected', reason, retryInMs });
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

  #shut(reason: string): void {
    if (this.#status.state === 'closed') return;
    this.#session = null;
    this.#cancelTimer();
    this.#set({ state: 'closed', reason });
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
