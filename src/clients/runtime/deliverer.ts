/** Sends the ends of commands to the relay, and repeats them until the relay acknowledges them. */
import { utf8Length } from '../../protocol/bounds.ts';
import type { LinkBounds } from '../link/link-status.ts';
import type { Clock } from '../link/platform.ts';
import type { LinkFrame } from '../link/session.ts';
import { endFrame, failure, type EndReport } from './end-reports.ts';

/** The most ends that wait for their `result_ack`, and the most bytes of them together. */
const OUTBOX_ENDS = 256;
const OUTBOX_BYTES = 1024 * 1024;
/** The most commands that are remembered, so that none runs twice. */
const LEDGER_IDS = 1000;
/** The most bytes of the ends that are remembered in order to send them again. */
const LEDGER_BYTES = 1024 * 1024;
/**
 * How many ends are sent again at once. The relay may not expect them on the new link, and limits frames that it does
 * not expect to 100 a second and 200 at once.
 */
const RESEND_AT_ONCE = 100;
/** The delay before more ends are sent again, or an end that the relay refused temporarily, in milliseconds. */
const RESEND_MS = 1_000;

export type Refused = Extract<LinkFrame, { type: 'refused' }>;

/** The codes of temporary refusals. A frame that was refused with such a code is sent again later. */
const TEMPORARY_CODES: ReadonlySet<string> = new Set(['store_unavailable', 'draining', 'rate_limited', 'internal']);

/** Returns after how many milliseconds a refused frame is sent again; null if the refusal is final. */
export function retryMs({ code, retry_after_ms }: Refused, more?: ReadonlySet<string>): number | null {
  return TEMPORARY_CODES.has(code) || more?.has(code) ? Math.max(RESEND_MS, retry_after_ms ?? 0) : null;
}

/** Makes the error that `onError` receives for a refused frame. */
export function refusalError({ code, message, share, frame = 'a frame' }: Refused): Error {
  const why = share === undefined ? code : `${code} (${share})`;
  return new Error(`The relay refused ${frame}: ${why}: ${message}`);
}

const END_FRAMES: ReadonlySet<string | undefined> = new Set(['result', 'error', 'cancelled']);

type DelivererOptions = {
  readonly clock: Clock;
  bounds(): LinkBounds;
  /** Sends a frame. Returns false if there is no link. */
  send(text: string): boolean;
  /** Called for an end that the relay will never receive. */
  dropped(commandId: string, reason: string): void;
  /** Called whenever the last waiting end may have been acknowledged or dropped. */
  onTaken(): void;
};

/** The frame of a command's end. `text`: null if the frame is no longer stored. */
type Ended = { readonly text: string | null; readonly bytes: number };

/**
 * Sends the ends of commands. Stores each end, and sends it again on each new link, until the relay acknowledges it or
 * its room is needed for newer ends. Remembers the last LEDGER_IDS commands, so that none runs twice, and a repeated
 * command is answered with its end.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  /** The ends that the relay has not acknowledged, oldest first, by command id. */
  readonly #outbox = new Map<string, { readonly text: string; readonly bytes: number }>();
  #outboxBytes = 0;
  /**
   * The commands that were received. Ended commands are in the order of their ends, and a running one is where it
   * began.
   */
  readonly #ledger = new Map<string, 'running' | Ended>();
  #ledgerBytes = 0;
  /** The commands that were received and whose ends the relay has not acknowledged. */
  readonly received = new Set<string>();
  #closed = false;
  #resending = false;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** The number of ends that the relay has not acknowledged. */
  get size(): number {
    return this.#outbox.size;
  }

  /**
   * Looks up a received command. `new`: it was unknown, and is now marked as running. `running`: it is already running.
   * `ended`: it has ended. Its end is sent again; if the end is no longer stored, `result_unavailable` is sent.
   */
  begin(commandId: string): 'new' | 'running' | 'ended' {
    const known = this.#ledger.get(commandId);
    if (known === 'running') return 'running';
    if (!known) {
      this.#ledger.set(commandId, 'running');
      this.received.add(commandId);
      this.#forgetCommands();
      return 'new';
    }
    const gone = failure('result_unavailable', 'The command ran before, and its end is no longer kept.');
    this.#deliver(commandId, known.text ?? endFrame(commandId, gone, this.#options.bounds()));
    return 'ended';
  }

  end(commandId: string, end: EndReport): void {
    const text = endFrame(commandId, end, this.#options.bounds());
    const bytes = utf8Length(text);
    this.#ledger.delete(commandId);
    this.#ledger.set(commandId, { text, bytes });
    this.#ledgerBytes += bytes;
    this.#forgetTexts();
    this.#deliver(commandId, text);
  }

  taken(commandId: string): void {
    this.received.delete(commandId);
    this.#remove(commandId);
    this.#options.onTaken();
  }

  /** Handles the refusal of an end. Ignores refusals of other frames. */
  refused(refusal: Refused): void {
    const { code, frame, command_id } = refusal;
    if (command_id === undefined || !END_FRAMES.has(frame)) return;
    const ms = retryMs(refusal);
    if (ms !== null) return this.#resendIn(ms);
    if (this.#remove(command_id)) this.#options.dropped(command_id, code);
    this.#options.onTaken();
  }

  /**
   * Sends the oldest waiting ends again, at most RESEND_AT_ONCE. If there are more, calls itself again after RESEND_MS.
   */
  resend(): void {
    for (const { text } of [...this.#outbox.values()].slice(0, RESEND_AT_ONCE)) this.#options.send(text);
    if (this.size > RESEND_AT_ONCE) this.#resendIn(RESEND_MS);
  }

  /** Drops all waiting ends. Called when the link is closed permanently. */
  close(): void {
    this.#closed = true;
    const dropped = [...this.#outbox.keys()];
    this.#outbox.clear();
    this.#outboxBytes = 0;
    for (const commandId of dropped) this.#options.dropped(commandId, 'closed');
  }

  #deliver(commandId: string, text: string): void {
    if (this.#closed) return this.#options.dropped(commandId, 'closed');
    this.#remove(commandId);
    const bytes = utf8Length(text);
    this.#outbox.set(commandId, { text, bytes });
    this.#outboxBytes += bytes;
    for (const oldest of this.#outbox.keys()) {
      if (this.size <= OUTBOX_ENDS && this.#outboxBytes <= OUTBOX_BYTES) break;
      this.#remove(oldest);
      this.#options.dropped(oldest, 'outbox_full');
    }
    this.#options.send(text);
  }

  /** Removes a waiting end. Returns false if there is none. */
  #remove(commandId: string): boolean {
    this.#outboxBytes -= this.#outbox.get(commandId)?.bytes ?? 0;
    return this.#outbox.delete(commandId);
  }

  #resendIn(ms: number): void {
    if (this.#resending) return;
    this.#resending = true;
    this.#options.clock.after(ms, () => {
      this.#resending = false;
      this.resend();
    });
  }

  /** Forgets the oldest ended commands beyond LEDGER_IDS. A running command is never forgotten. */
  #forgetCommands(): void {
    for (const [commandId, entry] of this.#ledger) {
      if (this.#ledger.size <= LEDGER_IDS) return;
      if (entry === 'running') continue;
      this.#ledger.delete(commandId);
      this.received.delete(commandId);
      this.#ledgerBytes -= entry.bytes;
    }
  }

  /** Removes the oldest frames beyond LEDGER_BYTES. The commands themselves stay remembered as ended. */
  #forgetTexts(): void {
    for (const [commandId, entry] of this.#ledger) {
      if (this.#ledgerBytes <= LEDGER_BYTES) return;
      if (entry === 'running') continue;
      this.#ledgerBytes -= entry.bytes;
      this.#ledger.set(commandId, { text: null, bytes: 0 });
    }
  }
}
