/**
 * Tracks the server's open sockets: limits their number, evicts some for new ones, and closes stalled ones. It reads no
 * requests.
 */
import { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import { CallboardError } from '../core/errors.ts';
import { READ_NOTHING_MS } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Cancel, Clock, EventLoop, Log } from '../core/ports.ts';
import { LineLimit } from '../core/rates.ts';
import { holderOf } from '../core/shares/holder.ts';
import { SHARE_MESSAGE } from '../core/shares/share-bounds.ts';
import type { Holdings, Shares } from '../core/shares/shares.ts';
import { networkOf } from '../web/forwarded.ts';
import type { HttpSocket } from '../web/request.ts';
import { isEventStream } from '../web/sse.ts';
import { RETRY_MS, takenBytes } from './unread-bytes.ts';

/** The interval of the check for idle sockets and stalled readers, in milliseconds. */
const CHECK_MS = 1_000;
/**
 * An unauthenticated socket is idle if it has sent no byte of its next request for this long, in milliseconds. A slow
 * TLS handshake takes less.
 */
const IDLE_MS = 3_000;
/**
 * The rate at which evictions and refusals of sockets are logged. The next line states how many lines were suppressed.
 */
const LINES = { perSecond: 1, burst: 5 };
/** How long the sockets of a requester stay open after it has revoked its own token, in milliseconds. */
const BY_ITSELF_MS = 500;

export type SocketsOptions = {
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly shares: Pick<Shares, 'of'>;
  /**
   * The maximum number of unauthenticated sockets of one address. Null: no maximum, because all sockets come from one
   * proxy.
   */
  readonly perAddress: number | null;
  /** The maximum number of unauthenticated sockets of all addresses together. */
  readonly inAll: number;
};

/** One open socket of the server. */
type Watched = {
  /** The accepted socket, or the TLS socket that replaced it. */
  socket: HttpSocket;
  readonly address: string;
  /** The holdings of the last valid token's holder; null while the socket is unauthenticated. */
  holdings: Holdings | null;
  /** The requester of the last request with a valid token; null if there was none. */
  requester: Principal | null;
  /** Whether the gateway has taken over the socket. If so, the gateway limits the unread bytes of the peer. */
  upgraded: boolean;
  /** The number of requests in progress. */
  requests: number;
  /**
   * When the socket began to wait for a request (it was accepted, or its last request ended), and the number of bytes
   * received until then.
   */
  waitsSince: number;
  sent: number;
  /** The number of bytes that the operating system had accepted for the peer at `stalledSince`. */
  taken: number;
  /**
   * The time since which the peer has read nothing although bytes wait for it, by `Clock.monotonic`; null if it is not
   * stalled.
   */
  stalledSince: number | null;
};

/** Whether the socket waits for a request and has received no byte of it. */
function isSilent({ socket, requests, sent }: Watched): boolean {
  return requests === 0 && socket.bytesRead === sent;
}

/**
 * Unauthenticated sockets in the order of eviction: first idle ones, the longest idle first, and then the others, the
 * earliest accepted first. Activity does not move a socket back in this order. A peer that sends its request byte by
 * byte, or many small requests, therefore gains nothing, and a new socket is evicted only after all older ones.
 */
class Evictable {
  readonly #all = new Set<Watched>();
  readonly #idle = new Set<Watched>();

  get size(): number {
    return this.#all.size;
  }

  add(watched: Watched): void {
    this.#all.add(watched);
  }

  delete(watched: Watched): void {
    this.#all.delete(watched);
    this.#idle.delete(watched);
  }

  /** Called when a request of the socket begins. The socket is then no longer idle. */
  active(watched: Watched): void {
    this.#idle.delete(watched);
  }

  /** Marks a socket as idle. The caller marks sockets in the order in which they became idle. */
  idle(watched: Watched): void {
    this.#idle.add(watched);
  }

  /** Returns the socket to evict next; null if there is none. */
  next(): Watched | null {
    for (const watched of this.#idle) {
      if (isSilent(watched)) return watched;
      this.#idle.delete(watched);
    }
    for (const watched of this.#all) return watched;
    return null;
  }
}

/**
 * The open sockets of the HTTP server. It limits the number of sockets without a valid token: a new one evicts an older
 * one, so that a peer with a valid token can always connect. After a valid token has arrived over a socket, the socket
 * counts in the share `sockets` of the token's holder instead. Closes sockets whose peer has read nothing of a response
 * for READ_NOTHING_MS, except those of links and event streams, which limit unread bytes themselves.
 */
export class Sockets {
  readonly #options: SocketsOptions;
  readonly #open = new Map<HttpSocket, Watched>();
  readonly #unauthenticated = new Evictable();
  readonly #byAddress = new Map<string, Evictable>();
  /** The addresses with more than `perAddress` sockets, some of which are evicted in a later turn of the event loop. */
  readonly #crowded = new Set<string>();
  readonly #lines: LineLimit;
  readonly #stop: Cancel;
  #began = 0;
  /** One listener for all sockets, so that an idle link does not need one of its own. */
  readonly #onClose: (this: HttpSocket) => void;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#lines = new LineLimit(options.clock, LINES);
    this.#stop = options.clock.every(CHECK_MS, () => this.#check());
    const forget = (socket: HttpSocket): void => this.#forget(socket);
    this.#onClose = function () {
      forget(this);
    };
  }

  /** The number of unauthenticated sockets. */
  get unauthenticated(): number {
    return this.#unauthenticated.size;
  }

  /**
   * Adds an accepted socket. If there are then too many, destroys an unauthenticated socket without a response. This
   * happens at once beyond `inAll` or twice `perAddress`. Beyond `perAddress` it happens in a later turn of the event
   * loop, after requests that arrived together with their connections were read.
   */
  accepted(socket: HttpSocket): void {
    const { clock, perAddress, inAll } = this.#options;
    const address = networkOf(socket.remoteAddress ?? '');
    const ofAddress = this.#byAddress.get(address);
    if (perAddress !== null && ofAddress && ofAddress.size >= perAddress) {
      if (ofAddress.size >= 2 * perAddress) this.#evict(ofAddress, 'address');
      this.#evictLater(address);
    }
    if (this.#unauthenticated.size >= inAll) this.#evict(this.#unauthenticated, 'all');
    const watched: Watched = {
      socket,
      address,
      holdings: null,
      requester: null,
      upgraded: false,
      requests: 0,
      waitsSince: clock.monotonic(),
      sent: 0,
      taken: 0,
      stalledSince: null,
    };
    this.#open.set(socket, watched);
    this.#addUnauthenticated(watched);
    socket.on('close', this.#onClose);
  }

  /** Called when TLS is established: the socket `secured` replaces the accepted socket over which it runs. */
  secured(socket: HttpSocket, secured: HttpSocket): void {
    const watched = this.#open.get(socket);
    if (!watched) return;
    this.#open.delete(socket);
    socket.off('close', this.#onClose);
    watched.socket = secured;
    watched.sent = secured.bytesRead;
    this.#open.set(secured, watched);
    secured.on('close', this.#onClose);
  }

  /**
   * Counts a socket for the requester whose valid token or ticket arrived over it. Throws `share_exceeded` or
   * `store_full` (share `sockets`) if the requester may not hold another one.
   */
  authenticated(socket: HttpSocket, requester: Principal): void {
    const watched = this.#open.get(socket);
    const holder = holderOf(requester);
    if (watched) watched.requester = requester;
    if (!watched || watched.holdings?.userId === holder) return;
    const { holdings: before } = watched;
    const holdings = this.#options.shares.of(holder);
    before?.release('sockets', 1);
    const refusal = holdings.refusal('sockets', 1);
    if (refusal !== null) {
      before?.take('sockets', 1);
      this.#options.metrics.count('sockets_refused', 'share');
      this.#say({ address: watched.address, holder }, 'a connection was refused: its user holds more than the share');
      throw new CallboardError(refusal, SHARE_MESSAGE[refusal], { share: 'sockets', retryAfterMs: RETRY_MS });
    }
    holdings.take('sockets', 1);
    watched.holdings = holdings;
    if (!before) this.#removeUnauthenticated(watched);
  }

  /** The number of requests that have begun since the start. */
  get requests(): number {
    return this.#began;
  }

  /** Called for each request that begins. Each call is followed by one call of `ended` for the same socket. */
  began(socket: HttpSocket): void {
    this.#began++;
    const watched = this.#open.get(socket);
    if (!watched) return;
    watched.requests++;
    if (watched.holdings) return;
    this.#unauthenticated.active(watched);
    this.#byAddress.get(watched.address)?.active(watched);
  }

  ended(socket: HttpSocket): void {
    const watched = this.#open.get(socket);
    if (!watched || --watched.requests > 0) return;
    watched.waitsSince = this.#options.clock.monotonic();
    watched.sent = socket.bytesRead;
  }

  /**
   * Destroys the sockets with a request or event stream in progress whose requester is revoked, and returns their
   * number. The sockets of the requester `by` are destroyed BY_ITSELF_MS later, because its own request must still be
   * answered.
   */
  endRevoked(isRevoked: (requester: Principal) => boolean, by: Principal | null): number {
    let ended = 0;
    for (const { socket, requester, requests, upgraded } of this.#open.values()) {
      if (requester === null || requests === 0 || upgraded || !isRevoked(requester)) continue;
      ended++;
      if (requester !== by) socket.destroy();
      else this.#options.clock.after(BY_ITSELF_MS, () => socket.destroy());
    }
    return ended;
  }

  /** Destroys the sockets with a request or event stream in progress, because what they would be sent may be lost. */
  endRequests(): void {
    for (const { socket, requests, upgraded } of this.#open.values()) if (requests > 0 && !upgraded) socket.destroy();
  }

  /** Called when the gateway takes over a socket. The socket counts as before until its link is welcomed. */
  upgraded(socket: HttpSocket): void {
    const watched = this.#open.get(socket);
    if (watched) watched.upgraded = true;
  }

  /**
   * Called when a socket no longer counts here: its link was welcomed and counts in the shares instead, or the host
   * program uses the socket now.
   */
  released(socket: HttpSocket): void {
    this.#forget(socket);
    socket.off('close', this.#onClose);
  }

  close(): void {
    this.#stop();
  }

  #addUnauthenticated(watched: Watched): void {
    const ofAddress = this.#byAddress.get(watched.address) ?? new Evictable();
    this.#byAddress.set(watched.address, ofAddress);
    ofAddress.add(watched);
    this.#unauthenticated.add(watched);
  }

  #removeUnauthenticated(watched: Watched): void {
    this.#unauthenticated.delete(watched);
    const ofAddress = this.#byAddress.get(watched.address);
    ofAddress?.delete(watched);
    if (ofAddress?.size === 0) this.#byAddress.delete(watched.address);
  }

  /**
   * Evicts sockets of the address in a later turn of the event loop. A request that arrives together with its
   * connection is read one turn after the connection is accepted.
   */
  #evictLater(address: string): void {
    this.#crowded.add(address);
    if (this.#crowded.size > 1) return;
    const { loop } = this.#options;
    loop.afterOthers(() => loop.afterOthers(() => this.#evictCrowded()));
  }

  #evictCrowded(): void {
    const { perAddress } = this.#options;
    for (const address of this.#crowded) {
      const ofAddress = this.#byAddress.get(address);
      while (ofAddress && perAddress !== null && ofAddress.size > perAddress) this.#evict(ofAddress, 'address');
    }
    this.#crowded.clear();
  }

  #evict(evictable: Evictable, bound: 'address' | 'all'): void {
    const watched = evictable.next();
    if (!watched) return;
    this.#forget(watched.socket);
    watched.socket.destroy();
    this.#options.metrics.count('sockets_refused', bound);
    this.#say({ address: watched.address, bound }, 'a connection was closed: too many are open without a valid token');
  }

  #say(about: Readonly<Record<string, unknown>>, message: string): void {
    this.#lines.pass(about, (fields) => this.#options.log.warn(fields, message));
  }

  #check(): void {
    const now = this.#options.clock.monotonic();
    const idle: Watched[] = [];
    for (const watched of this.#open.values()) {
      if (!watched.holdings && now - watched.waitsSince >= IDLE_MS && isSilent(watched)) idle.push(watched);
      this.#cutStalled(watched, now);
    }
    // `idle` does not move a socket that is marked already.
    for (const watched of idle.sort((a, b) => a.waitsSince - b.waitsSince)) {
      this.#unauthenticated.idle(watched);
      this.#byAddress.get(watched.address)?.idle(watched);
    }
  }

  #cutStalled(watched: Watched, now: number): void {
    const { socket } = watched;
    if (watched.upgraded || socket.writableLength === 0 || isEventStream(socket)) {
      watched.stalledSince = null;
      return;
    }
    const taken = takenBytes(socket);
    if (watched.stalledSince === null || taken !== watched.taken) {
      watched.taken = taken;
      watched.stalledSince = now;
    } else if (now - watched.stalledSince >= READ_NOTHING_MS) this.#cut(watched);
  }

  #cut({ socket, address }: Watched): void {
    this.#options.metrics.count('sockets_cut');
    this.#options.log.info({ address }, 'a connection was closed: its peer does not read the response');
    socket.destroy();
  }

  #forget(socket: HttpSocket): void {
    const watched = this.#open.get(socket);
    if (!watched) return;
    this.#open.delete(socket);
    if (watched.holdings) watched.holdings.release('sockets', 1);
    else this.#removeUnauthenticated(watched);
  }
}

/**
 * Whether a response is being sent over this socket. The bytes of a second response would be read as part of the first.
 */
export function isAnswering(socket: Duplex): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage');
  return response instanceof ServerResponse && response.headersSent;
}
