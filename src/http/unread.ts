import type { Principal } from '../core/auth/principal.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import { CallboardError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { BORROWED_PART } from '../core/shares/bounds.ts';
import { holderOf } from '../core/shares/holders.ts';
import { SHARE_MESSAGE, type Holdings, type Shares } from '../core/shares/shares.ts';

const SAMPLE_MS = 1_000;
/** Smaller answers are counted by the samples alone. */
const LARGE_BYTES = 64 * 1024;
const RETRY_MS = 5_000;

/** As much of a socket as is needed here. */
export interface Writable {
  readonly writableLength: number;
  destroy(): unknown;
  on(event: 'close', listener: (this: Writable) => void): unknown;
}

/** Who the last request of a socket came from, as far as it is known yet. */
export type Requester = { readonly who: Principal | null };

type Reader = { requester: Requester | null; holdings: Holdings | null; bytes: number };

export type UnreadOptions = {
  readonly shares: Shares;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
};

/**
 * The share `unread_bytes`: what waits in the sockets of the server, answers, event streams and links alike, until its reader takes it. It counts for
 * the user of the last request of the socket (or of its link) and is looked at once a second, and after each large answer. Above three
 * quarters of the total, users over their guarantee lose the sockets that are furthest behind; above the total, everybody does.
 */
export class UnreadBytes {
  readonly #options: UnreadOptions;
  readonly #readers = new Map<Writable, Reader>();
  readonly #stop: Cancel;
  /** One listener for all: an idle link holds none of its own. */
  readonly #onClose: (this: Writable) => void;
  /** Above it, users over their guarantee are cut and refused. */
  readonly #short: number;

  constructor(options: UnreadOptions) {
    this.#options = options;
    this.#short = (options.shares.bounds.unread_bytes.total ?? Infinity) * BORROWED_PART;
    const forget = (socket: Writable): void => this.#forget(socket);
    this.#onClose = function () {
      forget(this);
    };
    this.#stop = options.clock.every(SAMPLE_MS, () => this.#sample());
  }

  accepted(socket: Writable): void {
    this.#readers.set(socket, { requester: null, holdings: null, bytes: 0 });
    socket.on('close', this.#onClose);
  }

  /** A request came over the socket, or its link was welcomed. */
  serves(socket: Writable, requester: Requester): void {
    const reader = this.#readers.get(socket);
    if (reader) reader.requester = requester;
  }

  /** Throws `share_exceeded` where the requester left too much unread for being answered anything now. */
  requireRoom(who: Principal | null): void {
    const { shares } = this.#options;
    if (shares.used('unread_bytes') <= this.#short) return;
    if (shares.of(holderOf(who)).held('unread_bytes') > shares.bounds.unread_bytes.guarantee) throw exceeded();
  }

  /** The error to answer in place of so many bytes: the requester is over the share, or would be; null: they may be written. */
  refusal(socket: Writable, bytes: number): CallboardError | null {
    const reader = bytes < LARGE_BYTES ? undefined : this.#readers.get(socket);
    if (!reader) return null;
    const refused = this.#holdingsOf(reader).refusal('unread_bytes', bytes) === 'share_exceeded';
    return refused ? exceeded() : null;
  }

  /** So many bytes were just written: counts what of them waits. */
  wrote(socket: Writable, bytes: number): void {
    const reader = bytes < LARGE_BYTES ? undefined : this.#readers.get(socket);
    if (reader) this.#count(reader, socket.writableLength);
  }

  close(): void {
    this.#stop();
  }

  #sample(): void {
    for (const [socket, reader] of this.#readers) this.#count(reader, socket.writableLength);
    const { shares } = this.#options;
    const { total } = shares.bounds.unread_bytes;
    if (shares.used('unread_bytes') <= this.#short) return;
    this.#cutBehind(this.#short, (holdings) => isOver(holdings, shares));
    this.#cutBehind(total ?? Infinity, () => true);
  }

  #count(reader: Reader, bytes: number): void {
    if (bytes === 0 && reader.bytes === 0) return;
    const holdings = this.#holdingsOf(reader);
    if (reader.holdings !== holdings) {
      reader.holdings?.release('unread_bytes', reader.bytes);
      reader.bytes = 0;
      reader.holdings = holdings;
    }
    if (bytes > reader.bytes) holdings.take('unread_bytes', bytes - reader.bytes);
    else holdings.release('unread_bytes', reader.bytes - bytes);
    reader.bytes = bytes;
  }

  #holdingsOf({ requester, holdings }: Reader): Holdings {
    const holder = holderOf(requester?.who ?? null);
    return holdings?.userId === holder ? holdings : this.#options.shares.of(holder);
  }

  /** Those that are furthest behind first, until no more than `most` is unread. */
  #cutBehind(most: number, mayCut: (holdings: Holdings) => boolean): void {
    const { shares } = this.#options;
    if (shares.used('unread_bytes') <= most) return;
    const behind = [...this.#readers].filter(([, { bytes }]) => bytes > 0).sort(([, a], [, b]) => b.bytes - a.bytes);
    for (const [socket, reader] of behind) {
      if (shares.used('unread_bytes') <= most) return;
      if (reader.holdings && mayCut(reader.holdings)) this.#cut(socket, reader);
    }
  }

  #cut(socket: Writable, reader: Reader): void {
    const { log, metrics } = this.#options;
    const { bytes, holdings } = reader;
    metrics.count('unread_cut');
    log.info({ holder: holdings?.userId, bytes }, 'a connection was cut: its user leaves more unread than their share');
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Writable): void {
    const reader = this.#readers.get(socket);
    if (!reader) return;
    this.#count(reader, 0);
    this.#readers.delete(socket);
  }
}

function isOver(holdings: Holdings, { bounds }: Shares): boolean {
  return holdings.held('unread_bytes') > bounds.unread_bytes.guarantee;
}

function exceeded(): CallboardError {
  const details = { share: 'unread_bytes', retryAfterMs: RETRY_MS };
  return new CallboardError('share_exceeded', SHARE_MESSAGE.share_exceeded, details);
}
