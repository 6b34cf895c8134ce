/**
 * Delivers the ends of commands to the relay, and repeats them until the relay acknowledges them. Sizes are bytes of
 * UTF-8, times are milliseconds.
 */
import { utf8Length } from '../../protocol/bounds.ts';
import type { LinkBounds } from '../link/link-status.ts';
import type { Clock } from '../link/platform.ts';
import type { LinkFrame } from '../link/session.ts';
import { endFrame, failure, type EndReport } from './ends.ts';

/** The most ends that wait for their `result_ack`, and the most bytes of them together. */
const OUTBOX_ENDS = 256;
const OUTBOX_BYTES = 1024 * 1024;
/** The number of commands that are remembered, so that none runs twice. */
const LEDGER_IDS = 1000;
/** The most bytes of ends that are remembered, to send them again. */
const LEDGER_BYTES = 1024 * 1024;
/**
 * The number of kept ends that are sent again at once. They may be ends of commands that are not in flight on the new
 * link. The relay limits such frames to 100 a second and 200 at once.
 */
const RESEND_AT_ONCE = 100;
/** The delay before further kept ends, and frames that the relay refused temporarily, are sent again. */
const RESEND_MS = 1_000;

export type Refused = Extract<LinkFrame, { type: 'refused' }>;

/** The codes of temporary refusals. What the relay refused with such a code is sent again later. */
const TEMPORARY_CODES: ReadonlySet<string> = new Set(['store_unavailable', 'draining', 'rate_limited', 'internal']);

/** Returns after how many milliseconds a refused frame is sent again; null for a refusal that is not temporary. */
export function retryMs({ code, retry_after_ms }: Refused, more?: ReadonlySet<string>): number | null {
  return TEMPORARY_CODES.has(code) || more?.has(code) ? Math.max(RESEND_MS, retry_after_ms ?? 0) : null;
}

/** Returns the error that `onError` receives for a refused frame. */
export function refusalError({ code, message, share, frame = 'a frame' }: Refused): Error {
  const why = share === undefined ? code : `${code} (${share})`;
  return new Error(`The relay refused ${frame}: ${why}: ${message}`);
}

const END_FRAMES: ReadonlySet<string | undefined> = new Set(['result', 'error', 'cancelled']);

type DelivererOptions = {
  readonly clock: Clock;
  bounds(): LinkBounds;
  /** Returns false when there is no link. */
  send(text: string): boolean;
  /** Called for an end that the relay will never receive. */
  dropped(commandId: string, reason: string): void;
  /** Called whenever the deliverer may have become empty. */
  onTaken(): void;
};

/** The frame with which a command ended. `text` null: it is no longer kept. */
type Ended = { readonly text: string | null; readonly bytes: number };

/**
 * Delivers the ends of commands. Keeps each end, and sends it again on each new link, until the relay acknowledges it
 * or newer ends need the room. Also remembers the last LEDGER_IDS commands, so that none runs twice and a repeated
 * command is answered with its end.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  /** The ends that the relay has not acknowledged, oldest first. */
  readonly #outbox = new Map<string, { readonly text: string; readonly bytes: number }>();
  #outboxBytes = 0;
  /** What ran. Ended commands are in the order of their ends; a running one keeps the position of its beginning. */
  readonly #ledger = new Map<string, 'running' | Ended>();
  #ledgerBytes = 0;
  /** The commands that arrived and whose ends the relay has not acknowledged, ended or not. */
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
   * Looks up a received command. `new`: it is unknown and now marked as running. `running`: it already runs. `ended`:
   * it has ended, and its end is sent again, or `result_unavailable` if the end is no longer kept.
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

  /** Sends the oldest kept ends, at most RESEND_AT_ONCE. If there are more, it calls itself again after RESEND_MS. */
  resend(): void {
    for (const { text } of [...this.#outbox.values()].slice(0, RESEND_AT_ONCE)) this.#options.send(text);
    if (this.size > RESEND_AT_ONCE) this.#resendIn(RESEND_MS);
  }

  /** Drops all kept ends. Called when the link is closed permanently. */
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

  /** Removes an end that waits. Returns false when there is none. */
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

  /** Forgets the oldest ended commands above LEDGER_IDS; never a running one. */
  #forgetCommands(): void {
    for (const [commandId, entry] of this.#ledger) {
      if (this.#ledger.size <= LEDGER_IDS) return;
      if (entry === 'running') continue;
      this.#ledger.delete(commandId);
      this.received.delete(commandId);
      this.#ledgerBytes -= entry.bytes;
    }
  }

  /** Forgets the oldest ends above LEDGER_BYTES, but not that their commands ran. */
  #forgetTexts(): void {
    for (const [commandId, entry] of this.#ledger) {
      if (this.#ledgerBytes <= LEDGER_BYTES) return;
      if (entry === 'running') continue;
      this.#ledgerBytes -= entry.bytes;
      this.#ledger.set(commandId, { text: null, bytes: 0 });
    }
  }
}
