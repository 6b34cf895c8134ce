/** Runs one WebSocket from its upgrade to its end: timers, phases, order of events. frame-router.ts handles frames. */
import type { Duplex } from 'node:stream';
import type { RawData } from 'ws';
import type { DisconnectCause, LinkEnd } from '../core/connections/connection.ts';
import { HEADER_CHARS, HELLO_MS } from '../core/limits.ts';
import type { CloseReason } from '../protocol/close.ts';
import { isFault, parseUp, type UpFrame } from '../protocol/frames.ts';
import { SocketLink, type SocketLinkOwner } from './client-link.ts';
import { causeOfReason, causeOfSocket, reasonOfRefusal } from './close.ts';
import { FrameLimits, isHeaderTooLong } from './frame-limits.ts';
import { FrameRouter } from './frame-router.ts';
import { limitInbound, type Inbound } from './inbound.ts';
import { openLink, type HelloFrame, type Handshake } from './handshake.ts';
import type { GatewayParts, LinkPeer, OpenLink } from './parts.ts';
import { Heartbeat } from './heartbeat.ts';
import { framesIn } from './message-frames.ts';
import { aboutFrame, refusalOf, type OffendingFrame } from './refusal.ts';
import { Reports } from './reports.ts';
import type { LinkSocket, SocketHandler } from './socket.ts';
import { FrameWriter, type FrameWriterOwner } from './frame-writer.ts';

/** The disconnect causes after which ends of commands that the client still sends are recorded. */
const TAKES_LATE_ENDS: ReadonlySet<DisconnectCause | undefined> = new Set<DisconnectCause>([
  'replaced',
  'node_drained',
]);

/** The raw socket of a link and its peer's address. */
export type LinkOrigin = { readonly socket: Duplex; readonly address: string };

/** One WebSocket of a client or a caller, from its upgrade to its end. No received frame makes it throw. */
export class Link implements SocketHandler, OpenLink, FrameWriterOwner, SocketLinkOwner {
  readonly #parts: GatewayParts;
  readonly #socket: Duplex;
  readonly #address: string;
  readonly #ws: LinkSocket;
  /** The byte rate of the user; null before `welcome` and for an administrator. */
  #inbound: Inbound | null = null;
  /** The number of bytes received before `hello` was checked. They are charged to the user once the user is known. */
  #uncharged = 0;
  readonly #writer: FrameWriter;
  readonly #limits: FrameLimits;
  readonly #reports: Reports;
  readonly #heartbeat: Heartbeat;
  #cancelHelloTimer: (() => void) | null;
  #phase: 'hello' | 'opening' | FrameRouter = 'hello';
  #drainedDue = false;
  #listensForDrain = false;
  /** How the link ended; null while it is open. */
  #end: LinkEnd | null = null;
  /** The opening of the session, or the recording of its end. The link is done only after this promise has settled. */
  #pending: Promise<void> | null = null;

  constructor(ws: LinkSocket, { socket, address }: LinkOrigin, parts: GatewayParts) {
    const { clock, metrics, turnEnd } = parts;
    this.#parts = parts;
    this.#ws = ws;
    this.#socket = socket;
    this.#address = address;
    this.#writer = new FrameWriter({ ws, socket, turnEnd, metrics, owner: this });
    this.#limits = new FrameLimits(clock, this.#writer);
    this.#reports = new Reports(this.#writer, this.#limits);
    this.#heartbeat = new Heartbeat(parts.beat());
    this.#cancelHelloTimer = clock.after(HELLO_MS, () => this.close('hello_timeout'));
    ws.tell(this);
  }

  /** Sends `bye` and closes. */
  close(reason: CloseReason): void {
    this.#writer.close(reason);
  }

  /** Runs once per gateway beat. Sends pings. Closes a silent link, one too long behind, and one whose token expired. */
  onBeat(): void {
    if (!this.#writer.open || this.#expired()) return;
    // While reading is paused, the peer's frames cannot arrive: its silence does not count.
    if (this.#inbound?.paused) this.#heartbeat.frameArrived(this.#parts.beat());
    const due = this.#heartbeat.due(this.#parts.beat(), this.#writer.behind);
    if (due === 'ping') this.#ping();
    else if (due !== 'nothing') this.close(due);
    if (this.#heartbeat.becameSilent(this.#parts.beat())) this.#router?.tell('silent');
    this.#drained();
  }

  /** Who is at the other end; null before `welcome`. */
  get peer(): LinkPeer | null {
    return this.#router?.peer ?? null;
  }

  message(data: RawData, isBinary: boolean): void {
    const message = Buffer.isBuffer(data) ? data : Buffer.from(data.toString());
    if (this.#inbound) this.#inbound.charge(message.length);
    else this.#uncharged += message.length;
    if (isBinary) this.#receiveFrame('', true);
    else for (const text of framesIn(message)) this.#receiveFrame(text, false);
  }

  /** Handles one frame. An error is answered with a refusal, so that it does not affect the frames that follow. */
  #receiveFrame(text: string, isBinary: boolean): void {
    try {
      this.#receive(text, isBinary);
    } catch (error) {
      this.#writer.refuse(refusalOf(error, this.#parts), {});
    }
  }

  control(frame: 'ping' | 'pong'): void {
    if (this.#writer.open) this.#limits.countUnsolicited({ frame });
  }

  closing(reason: CloseReason): void {
    this.#over({ cause: causeOfReason(reason), closeCode: null });
  }

  /** Adds the `drain` listener on first use only, because most links are never behind. */
  onBehind(): void {
    this.#drainedDue = true;
    if (this.#listensForDrain) return;
    this.#listensForDrain = true;
    this.#socket.on('drain', () => this.#drained());
  }

  unreadable(reason: CloseReason): void {
    this.close(reason);
  }

  failed(error: Error): void {
    this.#parts.log.debug({ err: error }, 'a link could not be read');
  }

  ending(code: number | null): void {
    this.#leave('client_closed', code);
  }

  gone(): void {
    // `ws` reports no errors of the socket.
    this.#leave(causeOfSocket(this.#socket.errored), null);
    this.#inbound?.release();
    void (this.#pending ?? Promise.resolve()).then(() => this.#parts.onDone(this));
  }

  #receive(text: string, isBinary: boolean): void {
    if (!this.#writer.open) return this.#receiveLate(text, isBinary);
    if (this.#expired()) return;
    const router = this.#router;
    if (this.#heartbeat.frameArrived(this.#parts.beat())) router?.touch();
    if (isBinary) this.#refuseBadFrame('binary frames are not part of this protocol', {});
    else if (isHeaderTooLong(text))
      this.#refuseBadFrame(`the first line is longer than ${HEADER_CHARS} characters`, {});
    else {
      const frame = parseUp(text);
      if (isFault(frame)) this.#refuseBadFrame(frame.detail, frame);
      else this.#take(frame, router);
    }
  }

  #receiveLate(text: string, isBinary: boolean): void {
    const router = this.#router;
    if (isBinary || !router || !TAKES_LATE_ENDS.has(this.#end?.cause) || isHeaderTooLong(text)) return;
    const frame = parseUp(text);
    if (!isFault(frame)) router.takeLate(frame);
  }

  #take(frame: UpFrame, router: FrameRouter | null): void {
    if (frame.type === 'hello') {
      if (this.#phase === 'hello') this.#open(frame);
      else this.#refuseBadFrame('hello may be sent only once', aboutFrame(frame));
    } else if (router) {
      if (frame.type === 'pong') this.#heartbeat.ponged(this.#parts);
      router.take(frame);
    } else this.#refuseBadFrame('only hello may be sent before welcome', aboutFrame(frame));
  }

  /** Refuses a bad frame. Before `hello` is accepted, one bad frame closes the link. */
  #refuseBadFrame(detail: string, about: OffendingFrame): void {
    this.#limits.refuseBadFrame(detail, about);
    if (this.#phase === 'hello') this.close('protocol_error');
  }

  #open(hello: HelloFrame): void {
    this.#phase = 'opening';
    this.#stopHelloTimer();
    const link = new SocketLink(this.#writer, this.#reports, this);
    const helloBytes = this.#uncharged;
    this.#uncharged = 0;
    this.#pending = openLink({ ...this.#parts, address: this.#address, helloBytes }, hello, link)
      .then((opened) => this.#opened(opened))
      .catch((error: unknown) => this.#refused(error));
  }

  #opened(opened: Handshake): Promise<void> | undefined {
    const outputs = { writer: this.#writer, limits: this.#limits, reports: this.#reports };
    const router = new FrameRouter({ parts: this.#parts, outputs, address: this.#address }, opened);
    this.#phase = router;
    if (!opened.session) this.#parts.metrics.count('links_opened', 'caller');
    // If the link ended while core was opening the session, core learns of the end only now.
    if (this.#end !== null) return router.end(this.#end);
    for (const command of opened.session?.unfinished ?? []) this.#reports.expect(command);
    this.#parts.onWelcome(this.#socket, opened.principal);
    this.#inbound = limitInbound(opened.principal, this.#ws, this.#parts);
    this.#inbound?.charge(this.#uncharged);
    this.#writer.send(opened.welcome);
    opened.session?.begin();
    this.#pending = null;
    return undefined;
  }

  #refused(error: unknown): void {
    const refusal = refusalOf(error, this.#parts);
    this.#writer.refuse(refusal, { frame: 'hello' });
    this.#writer.close(reasonOfRefusal(refusal.code));
  }

  /** Called when the peer, or the network between, has ended the link. Changes nothing if the relay was first. */
  #leave(cause: DisconnectCause, closeCode: number | null): void {
    this.#writer.lost();
    this.#inbound?.readOn();
    this.#over({ cause, closeCode });
  }

  #over(end: LinkEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#inbound?.readOn();
    this.#stopHelloTimer();
    const router = this.#router;
    if (router) this.#pending = router.end(end);
  }

  /** Cancels the timer and drops the reference to it. */
  #stopHelloTimer(): void {
    this.#cancelHelloTimer?.();
    this.#cancelHelloTimer = null;
  }

  #expired(): boolean {
    if (!this.#router?.expired) return false;
    this.close('unauthenticated');
    return true;
  }

  #ping(): void {
    // No frame is sent before `welcome`.
    if (!this.#router) return;
    this.#writer.send({ type: 'ping' });
    this.#heartbeat.pinged(this.#parts.clock.monotonic());
  }

  #drained(): void {
    if (!this.#drainedDue || this.#writer.behind || !this.#writer.open) return;
    this.#drainedDue = false;
    this.#router?.tell('drained');
  }

  get #router(): FrameRouter | null {
    return typeof this.#phase === 'string' ? null : this.#phase;
  }
}
