/**
 * Runs one WebSocket from its upgrade to its end: timers, states, order of events, and the byte rate of its user.
 *
 * router.ts handles the frames.
 */
import { Buffer } from 'node:buffer';
import type { RawData } from 'ws';
import type { Principal } from '../core/auth/principal.ts';
import type { DisconnectCause, LinkEnd } from '../core/connections/connection.ts';
import type { ClientKey } from '../core/ids.ts';
import { BACK_PRESSURE_MS, DEAD_MS, HELLO_MS, LARGE_MESSAGE_BYTES, MAX_FRAME_BYTES, STALE_MS } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Cancel, Clock } from '../core/ports.ts';
import type { HeldRate } from '../core/shares/turns.ts';
import type { CloseReason } from '../protocol/codes.ts';
import { overlong, unreadable, type FrameFault } from '../protocol/frame-fault.ts';
import { FRAMES_PER_MESSAGE, FRAME_SEPARATOR, isFault, parseUp } from '../protocol/frame-codec.ts';
import type { UpFrame } from '../protocol/frames.ts';
import { CAUSE_OF_REASON, aboutFrame, causeOfSocket, reasonOfRefusal, refusalOf } from './refusals.ts';
import { FrameWriter, type MessageSocket, type SocketHandler } from './socket.ts';
import { FrameRouter, type LinkPeer } from './router.ts';
import type { HelloFrame, RouterServices } from './services.ts';
import { openLink, type Handshake } from './hello.ts';

/** The causes of a disconnect after which ends of commands are still recorded, if the client sends them late. */
const TAKES_LATE_ENDS: ReadonlySet<DisconnectCause | undefined> = new Set<DisconnectCause>([
  'replaced',
  'node_drained',
]);

/**
 * The length of a beat, in milliseconds. The gateway has one timer for all its links, and a link measures silence in
 * beats. No beats occur while the process is blocked, so a peer does not count as dead if its frames are only waiting
 * to be read.
 */
export const BEAT_MS = 1_000;
const DEAD = DEAD_MS / BEAT_MS;
const BEHIND = BACK_PRESSURE_MS / BEAT_MS;
/**
 * The number of beats after which a peer counts as silent. It is two beats longer than STALE_MS: the last frame arrived
 * during a beat, and the store recorded it a little later. So the store already shows the connection as stale when the
 * link reports the silence.
 */
const SILENT = STALE_MS / BEAT_MS + 2;

/** Returns the number of whole beats in `ms` milliseconds, at least one. */
function beatsIn(ms: number): number {
  return Math.max(1, Math.floor(ms / BEAT_MS));
}

/** The services that all links of a gateway share. */
export type GatewayServices = RouterServices & {
  /** The number of the current beat; it grows by one every BEAT_MS. */
  readonly beat: () => number;
  /** Called once for each welcomed link, with its socket and its principal. */
  readonly onWelcome: (socket: MessageSocket, principal: Principal) => void;
  /**
   * Called once for each link, after its socket is gone and core has recorded its end (or failed to). It is one shared
   * function, so that no link holds a promise of its own.
   */
  readonly onDone: (link: Link) => void;
};

type Message = { readonly message: Buffer; readonly isBinary: boolean };

/**
 * The state of a link. `waiting`: no `hello` has arrived. `opening`: core is opening the session. Afterwards the router
 * handles the frames. A link may end in each state. If it ends while its session is being opened, it still gets a
 * router, which records the end.
 */
type LinkState =
  | { readonly kind: 'waiting'; readonly cancelTimer: Cancel }
  | { readonly kind: 'opening' }
  | { readonly kind: 'open'; readonly router: FrameRouter }
  | { readonly kind: 'ended'; readonly end: LinkEnd; readonly router: FrameRouter | null };
const OPENING: LinkState = { kind: 'opening' };

/** One WebSocket of a client or a caller, from its upgrade to its end. It never throws, whatever frame it receives. */
export class Link implements SocketHandler {
  readonly #services: GatewayServices;
  readonly #socket: MessageSocket;
  readonly #address: string;
  readonly #writer: FrameWriter;
  /** The byte rate of the user; null before `welcome`, and for administrators, who are not limited. */
  #rate: HeldRate | null = null;
  /** Keeps the link within the rate; created when the rate is exceeded for the first time. */
  #inbound: Inbound | null = null;
  /** The number of bytes received before `hello` was checked. They are charged once the user is known. */
  #uncharged = 0;
  readonly #firstBeat: number;
  #lastFrameBeat: number;
  /** The last beat in which this link reported a sign of life to core; null if there was none. */
  #touchedBeat: number | null = null;
  /** The beat since which the socket has been behind; null if it is not behind. */
  #behindSince: number | null = null;
  /** When the unanswered ping was sent, by `Clock.monotonic`; null if every ping was answered. */
  #pingedAt: number | null = null;
  #state: LinkState;
  /** The messages that wait for their user's turn, in order; null if none wait, as for nearly all links. */
  #held: Message[] | null = null;
  #drainedDue = false;
  #listensForDrain = false;
  /** Opens the session, or records its end. The link is done only after this promise has settled. */
  #pending: Promise<void> | null = null;

  /** `address`: the address of the peer. */
  constructor(socket: MessageSocket, address: string, services: GatewayServices) {
    this.#services = services;
    this.#socket = socket;
    this.#address = address;
    this.#writer = new FrameWriter(socket, this, services);
    this.#firstBeat = this.#lastFrameBeat = services.beat();
    const cancelTimer = services.clock.after(HELLO_MS, () => this.close('hello_timeout'));
    this.#state = { kind: 'waiting', cancelTimer };
    socket.tell(this);
  }

  /** Sends `bye` and closes. */
  close(reason: CloseReason): void {
    this.#writer.end(reason);
  }

  /** Whether the peer is a caller or a client, and of which type; null before `welcome`. */
  get peer(): LinkPeer | null {
    return this.#router?.peer ?? null;
  }

  /**
   * Runs once per beat of the gateway. Sends pings. Closes the link if it is silent, has been behind for too long, or
   * its token has expired.
   */
  onBeat(): void {
    if (!this.#writer.open || this.#expired()) return;
    const beat = this.#services.beat();
    // The peer's frames cannot arrive while reading is paused, so its silence does not count then.
    if (this.#inbound?.paused) this.#lastFrameBeat = this.#touchedBeat = beat;
    const fault = this.#faultAt(beat);
    if (fault !== null) this.close(fault);
    else if ((beat - this.#firstBeat) % beatsIn(this.#services.pingMs) === 0) this.#ping();
    if (beat - this.#lastFrameBeat === SILENT) this.#router?.tell('silent');
    this.#drained();
  }

  /** Returns why the link must be closed in this beat; null if it may stay open. */
  #faultAt(beat: number): CloseReason | null {
    if (beat - this.#lastFrameBeat >= DEAD) return 'heartbeat_lost';
    if (!this.#writer.behind) this.#behindSince = null;
    else if (this.#behindSince === null) this.#behindSince = beat;
    else if (beat - this.#behindSince >= BEHIND) return 'back_pressure';
    return null;
  }

  /** Called when the relay nearest to the data of these users may have changed. */
  tellHome(concerns: (userId: string) => boolean): void {
    this.#router?.tellHome(concerns);
  }

  /** Tells the client which pause covers all its calls (see `FrameRouter.tellPause`). */
  tellPause(concerns: (client: ClientKey) => boolean): void {
    this.#router?.tellPause(concerns);
  }

  /** Closes the link with `forbidden` if it is welcomed and the revocation covers it. Returns whether it was closed. */
  endIfRevoked(isCovered: (principal: Principal, clientId: string | null) => boolean): boolean {
    const router = this.#router;
    if (!router || !this.#writer.open || !router.isCovered(isCovered)) return false;
    this.close('forbidden');
    return true;
  }

  /** Closes the link with `node_lost` if a request of its caller is in progress. */
  endRequests(): void {
    if (this.#router?.hasUnanswered) this.close('node_lost');
  }

  message(data: RawData, isBinary: boolean): void {
    const message = Buffer.isBuffer(data) ? data : Buffer.from(data.toString());
    this.#charge(message.length);
    const router = this.#router;
    if (!router || (this.#held === null && message.length < LARGE_MESSAGE_BYTES))
      return this.#handle({ message, isBinary });
    (this.#held ??= []).push({ message, isBinary });
    const { messages } = this.#services.core;
    void messages.run(router.holder, () => this.#handleHeld(), message.length);
  }

  /** Handles the first message that waits for its user's turn. Does nothing if no message waits. */
  #handleHeld(): void {
    const first = this.#held?.shift();
    if (this.#held?.length === 0) this.#held = null;
    if (first) this.#handle(first);
  }

  #handle({ message, isBinary }: Message): void {
    if (isBinary) this.#receiveFrame(BINARY);
    else for (const frame of framesIn(message)) this.#receiveFrame(frame);
  }

  #charge(bytes: number): void {
    const rate = this.#rate;
    if (this.#inbound) return this.#inbound.charge(bytes);
    if (!rate) return void (this.#uncharged += bytes);
    const wait = rate.rate.charge(bytes);
    if (wait === 0 || this.#state.kind === 'ended') return;
    this.#inbound = new Inbound(rate, this.#socket, this.#services);
    this.#inbound.charged(bytes, wait);
  }

  /** Handles one frame. An error is answered with a refusal, so that later frames are still handled. */
  #receiveFrame(received: string | FrameFault): void {
    try {
      this.#receive(received);
    } catch (error) {
      this.#writer.refuse(refusalOf(error, this.#services), {});
    }
  }

  control(frame: 'ping' | 'pong'): void {
    if (this.#writer.open) this.#writer.countUnsolicited({ frame });
  }

  closing(reason: CloseReason): void {
    this.#over({ cause: CAUSE_OF_REASON[reason], closeCode: null });
  }

  /**
   * Tells core later that the socket has drained. The `drain` listener is added at the first call, because most links
   * are never behind.
   */
  behind(): void {
    this.#drainedDue = true;
    if (this.#listensForDrain) return;
    this.#listensForDrain = true;
    this.#socket.onDrain(() => this.#drained());
  }

  unreadable(reason: CloseReason): void {
    this.close(reason);
  }

  failed(error: Error): void {
    this.#services.log.debug({ err: error }, 'a link could not be read');
  }

  ending(code: number | null): void {
    this.#handleAllHeld();
    this.#leave('client_closed', code);
  }

  /** Handles the messages that arrived before the end of the link and still wait for their turn. */
  #handleAllHeld(): void {
    while (this.#held !== null) this.#handleHeld();
  }

  gone(): void {
    this.#handleAllHeld();
    // `ws` does not report the errors of the socket, so they are read here.
    this.#leave(causeOfSocket(this.#socket.errored), null);
    this.#inbound?.release();
    this.#rate?.release();
    void (this.#pending ?? Promise.resolve()).then(() => this.#services.onDone(this));
  }

  #receive(received: string | FrameFault): void {
    if (!this.#writer.open) return this.#receiveLate(received);
    if (this.#expired()) return;
    const router = this.#router;
    const beat = this.#services.beat();
    this.#lastFrameBeat = beat;
    if (this.#touchedBeat !== beat) {
      this.#touchedBeat = beat;
      router?.touch();
    }
    const frame = typeof received === 'string' ? parseUp(received) : received;
    if (isFault(frame)) this.#takeFaulty(frame, router);
    else this.#take(frame, router);
  }

  #receiveLate(received: string | FrameFault): void {
    const state = this.#state;
    if (state.kind !== 'ended' || !state.router || !TAKES_LATE_ENDS.has(state.end.cause)) return;
    const { router } = state;
    const frame = typeof received === 'string' ? parseUp(received) : received;
    if (isFault(frame)) router.takeFaulty(frame);
    else router.takeLate(frame);
  }

  #take(frame: UpFrame, router: FrameRouter | null): void {
    if (frame.type === 'hello') {
      if (this.#state.kind === 'waiting') this.#open(frame, this.#state.cancelTimer);
      else this.#refuseFrame('hello may be sent only once', frame);
    } else if (router) {
      if (frame.type === 'pong') this.#ponged();
      router.take(frame);
    } else this.#refuseFrame('only hello may be sent before welcome', frame);
  }

  /** Handles a frame that is invalid as a whole. If it is a report, its command ends; any other frame is refused. */
  #takeFaulty(fault: FrameFault, router: FrameRouter | null): void {
    if (!router?.takeFaulty(fault)) this.#writer.refuseFaulty(fault);
    this.#endIfFirst(fault.fault === 'payload_too_large' ? 'frame_too_large' : 'protocol_error');
  }

  #refuseFrame(detail: string, frame: UpFrame): void {
    this.#writer.refuseFaulty({ fault: 'invalid_argument', detail, ...aboutFrame(frame) });
    this.#endIfFirst('protocol_error');
  }

  /**
   * Closes the link if its first frame was refused. Tells the peer not to reconnect, because it would send the same
   * frame again.
   */
  #endIfFirst(reason: CloseReason): void {
    if (this.#state.kind === 'waiting') this.#writer.end(reason, false);
  }

  #open(hello: HelloFrame, cancelTimer: Cancel): void {
    cancelTimer();
    this.#state = OPENING;
    const helloBytes = this.#uncharged;
    this.#uncharged = 0;
    this.#pending = openLink(this.#services, { hello, address: this.#address, helloBytes }, this.#writer)
      .then((opened) => this.#opened(opened))
      .catch((error: unknown) => this.#refused(error));
  }

  #opened(opened: Handshake): Promise<void> | undefined {
    const services = this.#services;
    const { principal } = opened;
    const router = new FrameRouter({ services, writer: this.#writer, address: this.#address }, opened);
    if (!opened.session) services.metrics.count('links_opened', 'caller');
    if (this.#state.kind === 'ended') {
      this.#state = { ...this.#state, router };
      return router.end(this.#state.end);
    }
    this.#state = { kind: 'open', router };
    // The token may have been revoked since it was authenticated. Such a link is not welcomed and gets no commands.
    const isRevoked = this.endIfRevoked((token, clientId) => services.core.revocations.find(token, clientId) !== null);
    if (isRevoked) return this.#pending ?? undefined;
    for (const command of opened.session?.unfinished ?? []) this.#writer.expect(command);
    services.onWelcome(this.#socket, principal);
    if (principal.kind === 'user') {
      this.#rate = services.inbound.hold(principal.userId);
      this.#charge(this.#uncharged);
    }
    this.#writer.welcome(opened.welcome);
    opened.session?.begin();
    this.#pending = null;
    // A pause may have begun since `welcome` was built.
    router.tellPause(() => true);
    return undefined;
  }

  #refused(error: unknown): void {
    const refusal = refusalOf(error, this.#services);
    this.#writer.refuse(refusal, { frame: 'hello' });
    const reason = reasonOfRefusal(refusal.code);
    // The same hello would be refused again. A client that counts its attempts sends a later attempt, so it may
    // reconnect.
    const reconnect = reason === 'protocol_error' ? false : refusal.code === 'stale_instance' || undefined;
    this.#writer.end(reason, reconnect);
  }

  /** Called when the peer or the network has ended the link. If the relay ended it first, the relay's cause stays. */
  #leave(cause: DisconnectCause, closeCode: number | null): void {
    this.#writer.lost();
    this.#inbound?.readOn();
    this.#over({ cause, closeCode });
  }

  #over(end: LinkEnd): void {
    const before = this.#state;
    if (before.kind === 'ended') return;
    const router = this.#router;
    this.#state = { kind: 'ended', end, router };
    this.#inbound?.readOn();
    if (before.kind === 'waiting') before.cancelTimer();
    if (router) this.#pending = router.end(end);
  }

  #expired(): boolean {
    if (!this.#router?.expired) return false;
    this.close('unauthenticated');
    return true;
  }

  #ping(): void {
    // No frame may be sent before `welcome`.
    if (!this.#router) return;
    this.#writer.ping();
    this.#pingedAt = this.#services.clock.monotonic();
  }

  /** Measures the round trip if this pong answers a ping. */
  #ponged(): void {
    const { clock, metrics } = this.#services;
    if (this.#pingedAt !== null) metrics.observe('client_rtt_seconds', clock.monotonic() - this.#pingedAt);
    this.#pingedAt = null;
  }

  #drained(): void {
    if (!this.#drainedDue || this.#writer.behind || !this.#writer.open) return;
    this.#drainedDue = false;
    this.#router?.tell('drained');
  }

  get #router(): FrameRouter | null {
    return 'router' in this.#state ? this.#state.router : null;
  }
}

/** The reading side of a link's socket. */
type Readable = { pause(): void; resume(): void };
type InboundOptions = { readonly clock: Clock; readonly metrics: Metrics };

/**
 * Keeps a link within its user's byte rate. Above the rate, reading is paused for as long as the rate requires, so that
 * back pressure slows the peer and no frame is lost. Frames that were read before the pause are still handled. The
 * paused links of a user resume one after another, because each charges the size of its last message in advance when it
 * resumes. If they resumed together, their messages would arrive together and stall the event loop.
 */
export class Inbound {
  readonly #held: HeldRate;
  readonly #socket: Readable;
  readonly #options: InboundOptions;
  #cancel: Cancel | null = null;
  #over = false;
  /** The size of the last message, in bytes. */
  #last = 0;
  /** The number of bytes charged in advance for the next message. */
  #reserved = 0;

  constructor(held: HeldRate, socket: Readable, options: InboundOptions) {
    this.#held = held;
    this.#socket = socket;
    this.#options = options;
  }

  get paused(): boolean {
    return this.#cancel !== null;
  }

  /** Charges a received message, in bytes, and pauses reading if the rate is exceeded. */
  charge(bytes: number): void {
    this.charged(bytes, this.#held.rate.charge(bytes - this.#reserved));
  }

  /**
   * Does what `charge` does after charging, for a message that is already charged. `wait`: the wait that the rate
   * requires.
   */
  charged(bytes: number, wait: number): void {
    this.#last = bytes;
    this.#reserved = 0;
    if (wait > 0 && !this.#over && this.#cancel === null) this.#pause(wait);
  }

  /**
   * Resumes reading for good because the link is closing, so that the last frames and the close frame of the peer are
   * read.
   */
  readOn(): void {
    this.#over = true;
    this.#resume();
  }

  /**
   * Resumes reading for good, and gives back the bytes that were charged in advance. Call it when the socket is gone.
   */
  release(): void {
    this.readOn();
    this.#held.rate.charge(-this.#reserved);
    this.#reserved = 0;
  }

  #pause(ms: number): void {
    this.#options.metrics.count('inbound_limited', 'link');
    this.#socket.pause();
    this.#cancel = this.#options.clock.after(ms, () => this.#resumeOrWait());
  }

  /** Resumes reading. If other links of the user have used up the rate since, waits again instead. */
  #resumeOrWait(): void {
    const { rate } = this.#held;
    const wait = rate.charge(0);
    if (wait > 0) {
      this.#cancel = this.#options.clock.after(wait, () => this.#resumeOrWait());
      return;
    }
    this.#reserved = this.#last;
    rate.charge(this.#reserved);
    this.#resume();
  }

  #resume(): void {
    if (this.#cancel === null) return;
    this.#cancel();
    this.#cancel = null;
    this.#socket.resume();
  }
}

/** The byte between two frames of a message. In UTF-8 no other character contains this byte. */
const SEPARATOR = FRAME_SEPARATOR.charCodeAt(0);
const LINE_FEED = 0x0a;

const BINARY = unreadable('binary frames are not part of this protocol');

/**
 * Returns the texts of the frames in a message; nearly every message has one frame. Each text is a string of its own,
 * so that no frame keeps the whole message in memory. Only the first line of a frame that is too large is read, and the
 * frame is returned as a fault. Frames beyond FRAMES_PER_MESSAGE stay in the last text, which is then not a valid
 * frame.
 */
export function framesIn(message: Buffer): readonly (string | FrameFault)[] {
  const frames: (string | FrameFault)[] = [];
  let from = 0;
  for (let end = message.indexOf(SEPARATOR); end >= 0 && frames.length < FRAMES_PER_MESSAGE - 1;) {
    frames.push(frameIn(message, from, end));
    from = end + 1;
    end = message.indexOf(SEPARATOR, from);
  }
  frames.push(frameIn(message, from, message.length));
  return frames;
}

function frameIn(message: Buffer, from: number, to: number): string | FrameFault {
  const bytes = to - from;
  if (bytes <= MAX_FRAME_BYTES) return message.toString('utf8', from, to);
  const cut = message.indexOf(LINE_FEED, from);
  const detail = `this frame has ${bytes} bytes, and a frame may have at most ${MAX_FRAME_BYTES}`;
  return overlong(message.toString('utf8', from, cut < 0 ? to : Math.min(cut, to)), {
    fault: 'payload_too_large',
    detail,
  });
}
