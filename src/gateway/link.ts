import type { Duplex } from 'node:stream';
import type { RawData } from 'ws';
import type { Principal } from '../core/auth/principal.ts';
import type { DisconnectCause } from '../core/connections/connection.ts';
import { HEADER_CHARS, HELLO_MS } from '../core/limits.ts';
import type { CloseReason } from '../protocol/close.ts';
import { isFault, parseUp, type UpFrame } from '../protocol/frames.ts';
import { SocketLink, type SocketLinkOwner } from './client-link.ts';
import { causeOfReason, reasonOfRefusal } from './close.ts';
import { FrameLimits } from './frame-limits.ts';
import { FrameRouter } from './frame-router.ts';
import { Inbound } from './inbound.ts';
import { openLink, type HelloFrame, type Handshake } from './handshake.ts';
import type { LinkParts, OpenLink } from './parts.ts';
import { Heartbeat } from './heartbeat.ts';
import { aboutFrame, refusalOf, type About } from './refusal.ts';
import { Reports } from './reports.ts';
import type { LinkSocket, SocketHandler } from './socket.ts';
import { FrameWriter, type FrameWriterOwner } from './frame-writer.ts';

/** Disconnect causes after which the link still takes ends that were in transit. */
const TAKES_LATE: ReadonlySet<DisconnectCause | null> = new Set<DisconnectCause>(['replaced', 'node_drained']);

/** The raw socket of a link and its peer's address. */
export type LinkOrigin = { readonly socket: Duplex; readonly address: string };

/** One WebSocket of a client or a caller, from its upgrade to its end. No received frame makes it throw. */
export class Link implements SocketHandler, OpenLink, FrameWriterOwner, SocketLinkOwner {
  readonly #parts: LinkParts;
  readonly #socket: Duplex;
  readonly #address: string;
  readonly #ws: LinkSocket;
  /** The byte rate of the user; null before `welcome` and for an administrator. */
  #inbound: Inbound | null = null;
  readonly #wire: FrameWriter;
  readonly #conduct: FrameLimits;
  readonly #reports: Reports;
  readonly #pulse: Heartbeat;
  #cancelHelloTimer: (() => void) | null;
  #phase: 'hello' | 'opening' | FrameRouter = 'hello';
  #owesDrained = false;
  #hearsDrain = false;
  /** Why the link ended; null while it is open. */
  #end: DisconnectCause | null = null;
  /** Must settle before the link reports itself done: the opening, or the recording of its end. */
  #pending: Promise<void> | null = null;

  constructor(ws: LinkSocket, { socket, address }: LinkOrigin, parts: LinkParts) {
    const { clock, metrics, turnEnd } = parts;
    this.#parts = parts;
    this.#ws = ws;
    this.#socket = socket;
    this.#address = address;
    this.#wire = new FrameWriter({ ws, socket, turnEnd, metrics, owner: this });
    this.#conduct = new FrameLimits(clock, this.#wire);
    this.#reports = new Reports(this.#wire, this.#conduct);
    this.#pulse = new Heartbeat(parts.beat());
    this.#cancelHelloTimer = clock.after(HELLO_MS, () => this.close('hello_timeout'));
    ws.tell(this);
  }

  /** Sends `bye` and closes. */
  close(reason: CloseReason): void {
    this.#wire.close(reason);
  }

  /**
   * Runs once per gateway beat: sends pings, and closes the link if it is silent, behind for too long or its token
   * expired.
   */
  onBeat(): void {
    if (!this.#wire.open || this.#expired()) return;
    // While reading is paused, the peer's frames cannot arrive: its silence does not count.
    if (this.#inbound?.paused) this.#pulse.hear(this.#parts.beat());
    const due = this.#pulse.due(this.#parts.beat(), this.#wire.behind);
    if (due === 'ping') this.#ping();
    else if (due !== 'nothing') this.close(due);
    this.#drained();
  }

  message(data: RawData, isBinary: boolean): void {
    this.#inbound?.charge(Buffer.isBuffer(data) ? data.length : data.toString().length);
    try {
      this.#receive(data.toString(), isBinary);
    } catch (error) {
      this.#wire.refuse(refusalOf(error, this.#parts), {});
    }
  }

  control(frame: 'ping' | 'pong'): void {
    if (this.#wire.open) this.#conduct.unsolicited({ frame });
  }

  closing(reason: CloseReason): void {
    this.#over(causeOfReason(reason));
  }

  /** Adds the `drain` listener on first use only, because most links are never behind. */
  askedBehind(): void {
    this.#owesDrained = true;
    if (this.#hearsDrain) return;
    this.#hearsDrain = true;
    this.#socket.on('drain', () => this.#drained());
  }

  unreadable(reason: CloseReason): void {
    this.close(reason);
  }

  failed(error: Error): void {
    this.#parts.log.debug({ err: error }, 'a link could not be read');
  }

  ending(): void {
    this.#wire.lost();
    this.#inbound?.release();
    this.#over('client_closed');
  }

  gone(): void {
    this.ending();
    void (this.#pending ?? Promise.resolve()).then(() => this.#parts.onDone(this));
  }

  #receive(text: string, isBinary: boolean): void {
    if (!this.#wire.open) return this.#receiveLate(text, isBinary);
    if (this.#expired()) return;
    const conversation = this.#conversation;
    if (this.#pulse.hear(this.#parts.beat())) conversation?.touch();
    if (isBinary) this.#misunderstood('binary frames are not part of this protocol', {});
    else if (headerLength(text) > HEADER_CHARS)
      this.#misunderstood(`the first line is longer than ${HEADER_CHARS} characters`, {});
    else {
      const frame = parseUp(text);
      if (isFault(frame)) this.#misunderstood(frame.detail, frame);
      else this.#take(frame, conversation);
    }
  }

  #receiveLate(text: string, isBinary: boolean): void {
    const conversation = this.#conversation;
    if (isBinary || !conversation || !TAKES_LATE.has(this.#end) || headerLength(text) > HEADER_CHARS) return;
    const frame = parseUp(text);
    if (!isFault(frame)) conversation.takeLate(frame);
  }

  #take(frame: UpFrame, conversation: FrameRouter | null): void {
    if (frame.type === 'hello') {
      if (this.#phase === 'hello') this.#open(frame);
      else this.#misunderstood('hello may be sent only once', aboutFrame(frame));
    } else if (conversation) conversation.take(frame);
    else this.#misunderstood('only hello may be sent before welcome', aboutFrame(frame));
  }

  /** Before `hello` is accepted, one bad frame closes the link. */
  #misunderstood(detail: string, about: About): void {
    this.#conduct.misunderstood(detail, about);
    if (this.#phase === 'hello') this.close('protocol_error');
  }

  #open(hello: HelloFrame): void {
    this.#phase = 'opening';
    this.#stopHelloTimer();
    const link = new SocketLink(this.#wire, this.#reports, this);
    this.#pending = openLink({ ...this.#parts, address: this.#address }, hello, link)
      .then((opened) => this.#opened(opened))
      .catch((error: unknown) => this.#refused(error));
  }

  #opened(opened: Handshake): Promise<void> | undefined {
    const ends = { wire: this.#wire, conduct: this.#conduct, reports: this.#reports };
    const conversation = new FrameRouter({ parts: this.#parts, ends, address: this.#address }, opened);
    this.#phase = conversation;
    if (!opened.session) this.#parts.metrics.count('links_opened', 'caller');
    // If the link ended while core was opening the session, core learns of the end only now.
    if (this.#end !== null) return conversation.end(this.#end);
    for (const command of opened.session?.unfinished ?? []) this.#reports.expect(command);
    this.#parts.onWelcome(this.#socket, opened.principal);
    this.#inbound = this.#limit(opened.principal);
    this.#wire.send(opened.welcome);
    opened.session?.begin();
    this.#pending = null;
    return undefined;
  }

  #limit(principal: Principal): Inbound | null {
    if (principal.kind !== 'user') return null;
    const { clock, metrics, inbound } = this.#parts;
    return new Inbound({ held: inbound.hold(principal.userId), socket: this.#ws, clock, metrics });
  }

  #refused(error: unknown): void {
    const refusal = refusalOf(error, this.#parts);
    this.#wire.refuse(refusal, { frame: 'hello' });
    this.#wire.close(reasonOfRefusal(refusal.code));
  }

  #over(cause: DisconnectCause): void {
    if (this.#end !== null) return;
    this.#end = cause;
    this.#inbound?.readOn();
    this.#stopHelloTimer();
    const conversation = this.#conversation;
    if (conversation) this.#pending = conversation.end(cause);
  }

  /** Cancels the timer and drops the reference to it. */
  #stopHelloTimer(): void {
    this.#cancelHelloTimer?.();
    this.#cancelHelloTimer = null;
  }

  #expired(): boolean {
    if (!this.#conversation?.expired) return false;
    this.close('unauthenticated');
    return true;
  }

  #ping(): void {
    // No frame is sent before `welcome`.
    if (this.#conversation) this.#wire.send({ type: 'ping' });
  }

  #drained(): void {
    if (!this.#owesDrained || this.#wire.behind || !this.#wire.open) return;
    this.#owesDrained = false;
    this.#conversation?.drained();
  }

  get #conversation(): FrameRouter | null {
    return typeof this.#phase === 'string' ? null : this.#phase;
  }
}

function headerLength(text: string): number {
  const cut = text.indexOf('\n');
  return cut < 0 ? text.length : cut;
}
