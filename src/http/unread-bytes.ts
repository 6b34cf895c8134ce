/** Counts and bounds the bytes that wait in sockets until their peers read them. */
import type { Principal } from '../core/auth/principal.ts';
import { CallboardError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Cancel, Clock, Log } from '../core/ports.ts';
import { holderOf } from '../core/shares/holder.ts';
import { SHARE_MESSAGE, BORROWED_PART } from '../core/shares/share-bounds.ts';
import type { Holdings, Shares } from '../core/shares/shares.ts';
import type { HttpSocket } from '../web/request.ts';

export const RETRY_MS = 5_000;

/**
 * Returns the number of bytes that the operating system has accepted for the peer so far, including the finished part
 * of a large write. No public property of a socket includes that part. So this function reads the socket's internal
 * handle: the bytes passed to it minus the bytes that it still holds. Without such a handle, only complete writes
 * count.
 */
export function takenBytes(socket: HttpSocket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const given = numberOf(handle, 'bytesWritten');
  const waiting = numberOf(handle, 'writeQueueSize');
  return given === null || waiting === null ? socket.bytesWritten - socket.writableLength : given - waiting;
}

function numberOf(holder: unknown, name: string): number | null {
  if (typeof holder !== 'object' || holder === null) return null;
  const value: unknown = Reflect.get(holder, name);
  return typeof value === 'number' ? value : null;
}

/** The interval at which the unread bytes of all sockets are counted, in milliseconds. */
const SAMPLE_MS = 1_000;
/**
 * A response of at least this many bytes is counted when it is written. Smaller responses are counted only by the
 * sampling.
 */
const LARGE_BYTES = 64 * 1024;

/** The members of a socket that this file uses. */
interface Writable {
  readonly writableLength: number;
  destroy(): unknown;
  on(event: 'close', listener: (this: Writable) => void): unknown;
  off(event: 'close', listener: (this: Writable) => void): unknown;
}

/** The requester of a socket's last request; null before authentication, and for a request without a token. */
type SocketRequester = { readonly requester: Principal | null };

type Reader = { requester: SocketRequester | null; holdings: Holdings | null; bytes: number };

type UnreadOptions = {
  readonly shares: Shares;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
};

/**
 * Limits the bytes that wait in the server's sockets (responses, event streams and links) until their peers read them:
 * the share `unread_bytes`. They count for the user of the socket's last request or of its link. They are counted once
 * a second and after each large response. Above three quarters of the total, users over their guarantee lose the
 * sockets with the most unread bytes. Above the total, any user may lose sockets.
 */
export class UnreadBytes {
  readonly #options: UnreadOptions;
  readonly #readers = new Map<Writable, Reader>();
  readonly #stop: Cancel;
  /** One listener for all sockets, so that an idle link does not need one of its own. */
  readonly #onClose: (this: Writable) => void;
  /** The number of unread bytes above which users over their guarantee lose sockets and have requests refused. */
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

  /** Called when a socket no longer counts here, because the host program uses it now. */
  released(socket: Writable): void {
    this.#forget(socket);
    socket.off('close', this.#onClose);
  }

  /** Sets the requester of a socket, when a request arrives over it or its link is welcomed. */
  serves(socket: Writable, requester: SocketRequester): void {
    const reader = this.#readers.get(socket);
    if (reader) reader.requester = requester;
  }

  /**
   * Throws `share_exceeded` if unread bytes exceed three quarters of the total and the requester holds more than the
   * guarantee.
   */
  requireRoom(requester: Principal | null): void {
    const { shares } = this.#options;
    if (shares.used('unread_bytes') <= this.#short) return;
    if (shares.of(holderOf(requester)).held('unread_bytes') > shares.bounds.unread_bytes.guarantee) throw exceeded();
  }

  /** Returns the error to send instead of a response of this many bytes; null if the response may be sent. */
  refusal(socket: Writable, bytes: number): CallboardError | null {
    const reader = bytes < LARGE_BYTES ? undefined : this.#readers.get(socket);
    if (!reader) return null;
    const { shares } = this.#options;
    if (shares.used('unread_bytes') + bytes <= this.#short) return null;
    const held = this.#holdingsOf(reader).held('unread_bytes');
    return held + bytes > shares.bounds.unread_bytes.guarantee ? exceeded() : null;
  }

  /** Counts the socket's unread bytes after a large write, without waiting for the next sample. */
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
    this.#cutBehind(this.#short, (holdings) => holdings.held('unread_bytes') > shares.bounds.unread_bytes.guarantee);
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
    const holder = holderOf(requester?.requester ?? null);
    return holdings?.userId === holder ? holdings : this.#options.shares.of(holder);
  }

  /**
   * Closes sockets until at most `most` bytes are unread in total: those with the most unread bytes first, and only
   * those of users for which `mayCut` returns true.
   */
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
    log.info(
      { holder: holdings?.userId, bytes },
      'a connection was closed: its user leaves more bytes unread than the share allows',
    );
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

function exceeded(): CallboardError {
  const details = { share: 'unread_bytes', retryAfterMs: RETRY_MS };
  return new CallboardError('share_exceeded', SHARE_MESSAGE.share_exceeded, details);
}
