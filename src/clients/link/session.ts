/**
 * Handles one socket of a link from its opening to its end: frames, heartbeat, silence, and the joining of frames into
 * messages.
 */
import { closeReasonOf, reconnectAfter, type Reconnect } from '../../protocol/codes.ts';
import { FRAME_SEPARATOR, joinFrame } from '../../protocol/frame-codec.ts';
import type { DownFrame, UpHeader } from '../../protocol/frames.ts';
import type { Welcome } from './link-status.ts';
import { elapsed, type Clock, type SocketEvent, type SocketLike } from './platform.ts';

type Bye = Extract<DownFrame, { type: 'bye' }>;
/** The frames that the session passes to its user. It handles all others itself. */
export type LinkFrame = Exclude<DownFrame, { type: 'welcome' | 'ping' | 'bye' }>;

/** Why a link is down. `said`: the message of the relay or of the token function; null if there is none. */
export type Why = { readonly reason: string; readonly said: string | null };

/** The end of a session. `afterMs`: the shortest delay before a reconnect that the relay requests. */
export type SessionEnd = Why & { readonly reconnect: Reconnect; readonly afterMs: number };

type SessionOptions = {
  readonly socket: SocketLike;
  readonly clock: Clock;
  /** Parses a frame for this kind of link; null if the frame is unknown. */
  readonly parse: (text: string) => DownFrame | null;
  /** Returns the text of the hello frame. Called once, when the socket opens. */
  hello(): string;
  onWelcome(welcome: Welcome): void;
  onFrame(frame: LinkFrame, ageMs: number | null): void;
  /** Called at most once, after all other callbacks. */
  onEnd(end: SessionEnd): void;
};

/** `welcome` must arrive within this time after the start of a connection, in milliseconds. */
const OPEN_MS = 15_000;
/** How long to wait for a sign of life after a check, in milliseconds. */
const ANSWER_MS = 5_000;
/** If the wall clock runs this much ahead of elapsed time, in milliseconds, the machine has slept. */
const ASLEEP_MS = 2_000;

/**
 * One socket from its opening to its end. Sends the hello, answers pings, and closes the socket if the relay is silent.
 */
export class Session {
  readonly #options: SessionOptions;
  #phase: 'opening' | 'welcome' | 'over' = 'opening';
  #deadMs = OPEN_MS;
  #heardAt: number;
  /** The wall time of the last sign of life. */
  #heardWall: number;
  /** The smallest difference between the arrival time of a frame and its sending time, each by its own side's clock. */
  #leastMs = Infinity;
  #cancelWatch: () => void;
  greeted = false;
  #isAsking = false;
  /** The message with which the relay refused the hello; null if it did not. */
  #said: string | null = null;
  readonly #batch = new FrameBatch((text) => this.#write(text));

  constructor(options: SessionOptions) {
    const { socket, clock } = options;
    this.#options = options;
    this.#heardAt = elapsed(clock);
    this.#heardWall = clock.now();
    this.#cancelWatch = clock.after(OPEN_MS, () => this.#watch());
    socket.addEventListener('open', () => {
      // If the session has ended, the socket opened too late: its hello would no longer be true.
      if (this.#phase === 'opening') this.greeted = this.#write(options.hello());
    });
    socket.addEventListener('message', (event) => this.#received(event));
    // Nothing to do: the event `close` follows and ends the session. But some sockets throw if there is no listener.
    socket.addEventListener('error', () => {});
    socket.addEventListener('close', ({ code }) => this.#over(closeReasonOf(code) ?? 'connection_lost'));
  }

  /**
   * Sends a frame. Returns false before `welcome`, after the end, and if the socket throws. If the relay accepts
   * several frames in one message, the frames of one turn of the event loop are sent together, after its microtasks.
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
    this.leave();
    this.#close(reason);
  }

  /** Stops using the socket, for receiving and for sending, but leaves it open until `close`. `onEnd` is not called. */
  leave(): void {
    this.#batch.flush();
    this.#phase = 'over';
    this.#cancelWatch();
  }

  /**
   * Ends the session if no sign of life arrives within ANSWER_MS. Returns false, without any effect, if the session is
   * not connected, if a check is under way, or if there was a sign of life within the last ANSWER_MS.
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

  /** Closes the socket without waiting for its end, because a half-open socket may take long to close. */
  #close(reason: string): void {
    attempt(() => this.#options.socket.close(1000, reason));
  }

  #over(reason: string, reconnect = reconnectAfter(reason), afterMs = 0): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#cancelWatch();
    this.#close('');
    this.#options.onEnd({ reason, said: this.#said, reconnect, afterMs });
  }

  /**
   * Ends the session as the relay requests. `bye` overrides the close code, unless that requires a token renewal
   * (PROTOCOL.md, section 9).
   */
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
   * Notes a sign of life. Returns whether this program or its machine has slept so long that received frames may be
   * older than they seem. The session then ends, and the relay writes what never arrived to the next link.
   */
  #slept(): boolean {
    const { clock } = this.#options;
    const silentMs = elapsed(clock) - this.#heardAt;
    const stoodMs = clock.now() - this.#heardWall - silentMs;
    this.#heardAt += silentMs;
    this.#heardWall = clock.now();
    return silentMs >= this.#deadMs || stoodMs >= ASLEEP_MS;
  }

  /** Returns the age of a frame that was sent at time `atMs` of the relay; null if the relay does not give the time. */
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
 * Calls `act`. Returns false if it throws: a socket throws if it is in the wrong state. It then also emits `close`,
 * which ends the session.
 */
function attempt(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

/** The most UTF-8 bytes of one UTF-16 code unit. */
const UNIT_BYTES = 3;

/**
 * Joins frames into messages. Before `allow` is called, and if the relay accepts only one frame per message, each frame
 * is sent alone and at once.
 */
export class FrameBatch {
  readonly #write: (message: string) => boolean;
  #texts: string[] = [];
  #chars = 0;
  #mostFrames = 1;
  #mostChars = 0;

  /** `write`: sends a message; returns false if it cannot be sent. */
  constructor(write: (message: string) => boolean) {
    this.#write = write;
  }

  /** The total length of the frames that wait, in UTF-16 code units. */
  get chars(): number {
    return this.#chars;
  }

  /** Sets the limits of a message from the relay's `welcome`. */
  allow({ frames_per_message: frames = 1, max_frame_bytes: bytes }: Welcome): void {
    this.#mostFrames = frames;
    this.#mostChars = Math.floor(bytes / UNIT_BYTES);
  }

  /**
   * Sends a frame, or keeps it for the next message. Returns false if it cannot be sent. Frames are sent in the order
   * of the calls.
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
   * Sends the waiting frames after the first round of microtasks in which no frame is added. One round is not enough,
   * because the frames of one turn come from promise chains of different lengths. `frames`: how many frames waited
   * before the last round.
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

/** Returns the text of a frame for the relay. `payload` must be JSON text. */
export const upFrame: (header: UpHeader, payload?: string | null) => string = joinFrame;
