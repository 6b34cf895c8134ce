/** Delivers the ends of commands to the relay, and repeats them until the relay acknowledges them. */
import type { LinkFrame } from '../link/link.ts';
import type { Clock } from '../link/platform.ts';
import {
  LEDGER_BYTES,
  LEDGER_IDS,
  MAX_FRAME_BYTES,
  OUTBOX_BYTES,
  OUTBOX_ENDS,
  RESEND_AT_ONCE,
  RESEND_MS,
  byteLength,
  endFrame,
  failure,
  type EndReport,
} from './ends.ts';

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

type DelivererOptions = {
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

// Keeps the ends of commands that the relay has not acknowledged, within a limit.

/**
 * Holds the frames that end commands until the relay acknowledges them, oldest first. Holds at most OUTBOX_ENDS frames
 * and OUTBOX_BYTES bytes: beyond that the oldest is dropped, and `dropped` is called with its command id.
 */
interface Outbox {
  readonly size: number;
  put(commandId: string, text: string): void;
  /** Removes the end of a command. Returns false when there is none. */
  remove(commandId: string): boolean;
  texts(): readonly string[];
  clear(): readonly string[];
}

function createOutbox(dropped: (commandId: string) => void): Outbox {
  const ends = new Map<string, { readonly text: string; readonly bytes: number }>();
  let bytes = 0;

  function remove(commandId: string): boolean {
    bytes -= ends.get(commandId)?.bytes ?? 0;
    return ends.delete(commandId);
  }

  return {
    get size() {
      return ends.size;
    },
    remove,
    put(commandId, text) {
      remove(commandId);
      const end = { text, bytes: byteLength(text) };
      ends.set(commandId, end);
      bytes += end.bytes;
      for (const oldest of ends.keys()) {
        if (ends.size <= OUTBOX_ENDS && bytes <= OUTBOX_BYTES) break;
        remove(oldest);
        dropped(oldest);
      }
    },
    texts: () => Array.from(ends.values(), ({ text }) => text),
    clear() {
      const ids = [...ends.keys()];
      ends.clear();
      bytes = 0;
      return ids;
    },
  };
}

// Remembers in memory which commands ran, so that none runs twice.

/** What is remembered of one command. `ended` with `text` null: the command ran, and its end is no longer kept. */
type LedgerEntry =
  { readonly state: 'running' } | { readonly state: 'ended'; readonly text: string | null; readonly bytes: number };

/**
 * The commands that this instance ran, so that none runs twice and a repeated command is answered with its end. Bounded
 * by LEDGER_IDS ids and LEDGER_BYTES bytes of ends.
 */
class RunLedger {
  /**
   * All remembered commands. Ended commands are in the order of their ends. A running command keeps the position that
   * it got when it began.
   */
  readonly #entries = new Map<string, LedgerEntry>();
  #bytes = 0;

  get(commandId: string): LedgerEntry | undefined {
    return this.#entries.get(commandId);
  }

  begin(commandId: string): void {
    this.#entries.set(commandId, { state: 'running' });
    this.#forgetIds();
  }

  end(commandId: string, text: string): void {
    const bytes = byteLength(text);
    this.#entries.delete(commandId);
    this.#entries.set(commandId, { state: 'ended', text, bytes });
    this.#bytes += bytes;
    this.#forgetTexts();
  }

  /** Removes the oldest ended commands above the limit; never a running one. */
  #forgetIds(): void {
    for (const [commandId, entry] of this.#entries) {
      if (this.#entries.size <= LEDGER_IDS) return;
      if (entry.state !== 'ended') continue;
      this.#entries.delete(commandId);
      this.#bytes -= entry.bytes;
    }
  }

  #forgetTexts(): void {
    for (const [commandId, entry] of this.#entries) {
      if (this.#bytes <= LEDGER_BYTES) return;
      if (entry.state !== 'ended') continue;
      this.#bytes -= entry.bytes;
      this.#entries.set(commandId, { state: 'ended', text: null, bytes: 0 });
    }
  }
}
