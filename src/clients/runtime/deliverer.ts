/** Delivers the ends of commands to the relay, and repeats them until the relay acknowledges them. */
import type { Clock } from '../link/clock.ts';
import type { LinkFrame } from '../link/session.ts';
import { endFrame, failure, type EndReport } from './ends.ts';
import { RunLedger } from './ledger.ts';
import { MAX_FRAME_BYTES, RESEND_AT_ONCE, RESEND_MS } from './limits.ts';
import { createOutbox, type Outbox } from './outbox.ts';

export type Refused = Extract<LinkFrame, { type: 'refused' }>;

/** The codes of temporary refusals. What the relay refused with such a code is sent again later. */
export const TEMPORARY_CODES: ReadonlySet<string> = new Set([
  'store_unavailable',
  'draining',
  'rate_limited',
  'internal',
]);

/** Returns the error that `onError` receives for a refused frame. */
export function refusalError({ code, message, share, frame = 'a frame' }: Refused): Error {
  const why = share === undefined ? code : `${code} (${share})`;
  return new Error(`The relay refused ${frame}: ${why}: ${message}`);
}

const END_FRAMES: ReadonlySet<string | undefined> = new Set(['result', 'error', 'cancelled']);

export type DelivererOptions = {
  readonly clock: Clock;
  /** Returns false when there is no link. */
  send(text: string): boolean;
  /** Called for an end that the relay will never receive. */
  dropped(commandId: string, reason: string): void;
  /** Called whenever the deliverer may have become empty. */
  onTaken(): void;
};

/**
 * Delivers the ends of commands. Keeps each end, and sends it again on each new link, until the relay acknowledges it.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #ledger = new RunLedger();
  readonly #outbox: Outbox;
  /** The largest frame in bytes, from the last `welcome`. */
  maxFrame = MAX_FRAME_BYTES;
  #closed = false;
  #resending = false;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#outbox = createOutbox((commandId) => options.dropped(commandId, 'outbox_full'));
  }

  /** The number of ends that the relay has not acknowledged. */
  get size(): number {
    return this.#outbox.size;
  }

  /**
   * Looks up a received command. `new`: it is unknown and now marked as running. `running`: it already runs. `ended`:
   * it has ended, and its end is sent again.
   */
  begin(commandId: string): 'new' | 'running' | 'ended' {
    const known = this.#ledger.get(commandId);
    if (!known) {
      this.#ledger.begin(commandId);
      return 'new';
    }
    if (known.state === 'running') return 'running';
    const gone = failure('result_unavailable', 'The command ran before, and its end is no longer kept.');
    this.#deliver(commandId, known.text ?? endFrame(commandId, gone, this.maxFrame));
    return 'ended';
  }

  end(commandId: string, end: EndReport): void {
    const text = endFrame(commandId, end, this.maxFrame);
    this.#ledger.end(commandId, text);
    this.#deliver(commandId, text);
  }

  taken(commandId: string): void {
    this.#outbox.remove(commandId);
    this.#options.onTaken();
  }

  /** Handles the refusal of an end. Ignores refusals of other frames. */
  refused({ code, frame, command_id, retry_after_ms }: Refused): void {
    if (command_id === undefined || !END_FRAMES.has(frame)) return;
    if (TEMPORARY_CODES.has(code)) return this.#resendIn(Math.max(RESEND_MS, retry_after_ms ?? 0));
    if (this.#outbox.remove(command_id)) this.#options.dropped(command_id, code);
    this.#options.onTaken();
  }

  /** Sends the oldest kept ends, at most RESEND_AT_ONCE. If there are more, it calls itself again after RESEND_MS. */
  resend(): void {
    const texts = this.#outbox.texts();
    for (const text of texts.slice(0, RESEND_AT_ONCE)) this.#options.send(text);
    if (texts.length > RESEND_AT_ONCE) this.#resendIn(RESEND_MS);
  }

  /** Drops all kept ends. Called when the link is closed permanently. */
  close(): void {
    this.#closed = true;
    for (const commandId of this.#outbox.clear()) this.#options.dropped(commandId, 'closed');
  }

  #deliver(commandId: string, text: string): void {
    if (this.#closed) return this.#options.dropped(commandId, 'closed');
    this.#outbox.put(commandId, text);
    this.#options.send(text);
  }

  #resendIn(ms: number): void {
    if (this.#resending) return;
    this.#resending = true;
    this.#options.clock.after(ms, () => {
      this.#resending = false;
      this.resend();
    });
  }
}
