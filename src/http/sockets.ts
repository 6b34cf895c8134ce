/** Holds the sockets of the server: bounds them, makes room for new ones, and closes stalled ones. Reads no request. */
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

/** The interval at which stalled readers and idle sockets are looked for, in milliseconds. */
const CHECK_MS = 1_000;
/**
 * A socket that sends nothing of its next request for so many milliseconds is idle. A slow TLS handshake takes less.
 */
const IDLE_MS = 3_000;
/** The rate of log lines about evicted and refused sockets; the next line has the number of suppressed ones. */
const LINES = { perSecond: 1, burst: 5 };
/** How long the sockets of a requester who revoked its own token stay open, in milliseconds. */
const BY_ITSELF_MS = 500;

export type SocketsOptions = {
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly shares: Pick<Shares, 'of'>;
  /** The most unauthenticated sockets of one address; null: no bound, because a proxy is the peer of all sockets. */
  readonly perAddress: number | null;
  /** The most unauthenticated sockets of all addresses together. */
  readonly inAll: number;
};

/** One open socket of the server. */
type Watched = {
  /** The accepted socket, or the one that speaks TLS over it. */
  socket: HttpSocket;
  readonly address: string;
  /** The holder of the last valid token that arrived; null while the socket is unauthenticated. */
  holdings: Holdings | null;
  /** The requester of the last request with a valid token; null before it. */
  requester: Principal | null;
  /** Whether the gateway has taken over the socket. The gateway itself bounds the bytes that the peer leaves unread. */
  upgraded: boolean;
  /** The number of requests in progress. */
  requests: number;
  /** When the socket was accepted, or its last request ended, and the number of bytes that it had sent by then. */
  waitsSince: number;
  sent: number;
  /** The number of bytes that the system had accepted for the peer when `stalledSince` was set. */
  taken: number;
  /** The time since which the peer has read nothing although bytes wait, by `Clock.monotonic`; null: nothing waits. */
  stalledSince: number | null;
};

/** Whether nothing of the next request has arrived. */
function isSilent({ socket, requests, sent }: Watched): boolean {
  return requests === 0 && socket.bytesRead === sent;
}

/**
 * Unauthenticated sockets in the order in which they are evicted: the one that has been idle for longest, then the one
 * that was accepted first. Only the time of acceptance counts for a socket that is not idle. A peer that sends its head
 * byte by byte, or many small requests, therefore gains nothing, and a new socket is evicted only after all older ones.
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

  /** Called when a request of the socket begins. */
  active(watched: Watched): void {
    this.#idle.delete(watched);
  }

  /** Marks a socket as idle. Idle sockets are marked in the order in which they became idle. */
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
 * Holds the sockets of the HTTP server. Bounds the number of sockets without a valid token: a new one evicts another
 * one, so that a valid token always arrives. A socket over which a valid token arrived counts in the share `sockets` of
 * the token's holder. Closes sockets whose peer reads nothing of a response for READ_NOTHING_MS. Links and event
 * streams have their own bounds on unread bytes.
 */
export class Sockets {
  readonly #options: SocketsOptions;
  readonly #open = new Map<HttpSocket, Watched>();
  readonly #unauthenticated = new Evictable();
  readonly #byAddress = new Map<string, Evictable>();
  /** The addresses that hold more than `perAddress`, of which sockets are evicted in a later turn of the loop. */
  readonly #crowded = new Set<string>();
  readonly #lines: LineLimit;
  readonly #stop: Cancel;
  #began = 0;
  /** The one listener of all sockets, so that an idle link holds none of its own. */
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
   * Adds an accepted socket. Beyond a bound, another unauthenticated socket is destroyed without a response: beyond
   * `inAll` or twice `perAddress` at once, beyond `perAddress` in a later turn of the event loop, when requests that
   * arrived with their connections have been read.
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

  /**
   * Called when TLS is established: `secured` speaks TLS over the accepted socket, and takes the place of that socket.
   */
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
   * `store_full` (share `sockets`), and changes nothing, if the requester may not hold another one.
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
   * Destroys the sockets with a request or an event stream in progress whose requester is revoked, and returns their
   * number. Those of `by`, whose own request is to be answered, are destroyed BY_ITSELF_MS later.
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

  /** Marks a socket that the gateway takes over. It counts as before until its link is welcomed. */
  upgraded(socket: HttpSocket): void {
    const watched = this.#open.get(socket);
    if (watched) watched.upgraded = true;
  }

  /**
   * Called when a socket no longer counts here: its link was welcomed and counts in the shares instead, or it belongs
   * to another program.
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
   * Evicts sockets of the address in a later turn, because a request that arrives together with its connection is read
   * in the turn after the one that accepts the connection.
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
    // A socket that was marked before stays where it is.
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

/** Whether a response is being sent over this socket: bytes of another response would be read as part of it. */
export function isAnswering(socket: Duplex): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage');
  return response instanceof ServerResponse && response.headersSent;
}
