/** One socket of a link, from opening to end: its frames, heartbeat and silence, and the joining of frames into messages. */
import { closeReasonOf, reconnectAfter, type Reconnect } from '../../protocol/codes.ts';
import { FRAME_SEPARATOR, joinFrame } from '../../protocol/frame-codec.ts';
import type { DownFrame, UpHeader } from '../../protocol/frames.ts';
import type { Welcome } from './link-status.ts';
import { elapsed, type Clock, type SocketEvent, type SocketLike } from './platform.ts';

type Bye = Extract<DownFrame, { type: 'bye' }>;
/** The frames that the session passes on; it handles the others itself. */
export type LinkFrame = Exclude<DownFrame, { type: 'welcome' | 'ping' | 'bye' }>;

/** Why a link is down. `said`: what the relay or the token function said about it; null if nothing. */
export type Why = { readonly reason: string; readonly said: string | null };

/** The end of a session. `afterMs`: the least delay that the relay asks for. */
export type SessionEnd = Why & { readonly reconnect: Reconnect; readonly afterMs: number };

type SessionOptions = {
  readonly socket: SocketLike;
  readonly clock: Clock;
  /** Reads a frame that is for the user of the link. */
  readonly parse: (text: string) => DownFrame | null;
  /** Returns the text of the hello frame. Called once, when the socket is open. */
  hello(): string;
  onWelcome(welcome: Welcome): void;
  onFrame(frame: LinkFrame, ageMs: number | null): void;
  /** Called at most once, after all other callbacks. */
  onEnd(end: SessionEnd): void;
};

/** The time from the start of a connection within which `welcome` must arrive, in milliseconds. */
const OPEN_MS = 15_000;
/** How long an answer may take that shows that a socket is alive, in milliseconds. */
const ANSWER_MS = 5_000;
/** How far the wall clock must run ahead of elapsed time, in milliseconds, to show that the machine has slept. */
const ASLEEP_MS = 2_000;

/** One socket from opening to end. Sends the hello, answers pings, and gives the socket up when the relay is silent. */
export class Session {
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
    this.leave();
    this.#close(reason);
  }

  /** Takes nothing more from the socket, and sends nothing more. It stays open until `close`. `onEnd` is not called. */
  leave(): void {
    this.#batch.flush();
    this.#phase = 'over';
    this.#cancelWatch();
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

  /** A half-open socket may take long to close. Nothing waits for it, and what it still receives is ignored. */
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
