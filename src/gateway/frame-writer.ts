/** Sends frames, refusals and `bye` over one link, and closes it. */
import type { Duplex } from 'node:stream';
import type { JsonText } from '../core/json.ts';
import { BACK_PRESSURE_BYTES, BACK_PRESSURE_CLOSE_BYTES } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import { CLOSE, type CloseReason } from '../protocol/close.ts';
import { joinFrame } from '../protocol/frame.ts';
import type { DownHeader } from '../protocol/frames.ts';
import { writeHeader } from '../protocol/write.ts';
import { byeFor } from './close.ts';
import { FrameBuffer, type TurnEnd } from './frame-buffer.ts';
import { refusedFrame, type OffendingFrame, type Refusal } from './refusal.ts';
import type { LinkSocket } from './socket.ts';

export type FrameWriterOptions = {
  readonly ws: LinkSocket;
  readonly socket: Duplex;
  readonly turnEnd: TurnEnd;
  readonly metrics: Metrics;
  readonly owner: FrameWriterOwner;
};

export interface FrameWriterOwner {
  /** Called once, before `bye` is written. */
  closing(reason: CloseReason): void;
}

/** The sending side of one link. Its methods do not throw, and send nothing after a close. */
export class FrameWriter {
  readonly #ws: LinkSocket;
  readonly #turnEnd: TurnEnd;
  readonly #metrics: Metrics;
  readonly #owner: FrameWriterOwner;
  readonly #buffer: FrameBuffer;
  #open = true;
  #closing = false;

  constructor({ ws, socket, turnEnd, metrics, owner }: FrameWriterOptions) {
    this.#ws = ws;
    this.#turnEnd = turnEnd;
    this.#metrics = metrics;
    this.#owner = owner;
    this.#buffer = new FrameBuffer(ws, socket, turnEnd);
  }

  /** False as soon as either side closes. */
  get open(): boolean {
    return this.#open;
  }

  get backlog(): number {
    return this.#open ? this.#buffer.backlog : 0;
  }

  /** Whether BACK_PRESSURE_BYTES or more wait, so that no further commands should be sent. */
  get behind(): boolean {
    return this.backlog >= BACK_PRESSURE_BYTES;
  }

  send(header: DownHeader, payload: JsonText | null = null): void {
    if (!this.#open) return;
    this.#buffer.push(writeHeader(header), payload);
    if (this.#buffer.backlog > BACK_PRESSURE_CLOSE_BYTES) this.close('back_pressure');
  }

  refuse(refusal: Refusal, about: OffendingFrame): void {
    if (!this.#open) return;
    this.#metrics.count('frames_refused', refusal.code);
    this.send(refusedFrame(refusal, about));
  }

  /**
   * Sends `bye` with the reason and closes; the peer has a few seconds to answer the close. The first reason counts.
   * For `draining` the close happens at the end of the turn: the command that the drain waited for has just ended, and
   * its answer is about to be sent.
   */
  close(reason: CloseReason): void {
    if (this.#closing) return;
    this.#closing = true;
    if (reason === 'draining') this.#turnEnd.add({ flush: () => this.#close(reason) });
    else this.#close(reason);
  }

  #close(reason: CloseReason): void {
    if (!this.#open) return;
    this.#open = false;
    this.#owner.closing(reason);
    this.#buffer.push(joinFrame(byeFor(reason)), null);
    this.#buffer.flush();
    this.#ws.close(CLOSE[reason].code, reason);
  }

  /** Called when either side has started to close the WebSocket: nothing more can be sent. */
  lost(): void {
    this.#open = false;
  }
}
