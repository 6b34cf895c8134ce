/**
 * The HTTP connections of simulated requesters to relays: each carries one request and its response, which take time,
 * stall, break, or end at one side only, and which their readers may read slowly.
 */
import { Buffer } from 'node:buffer';
import type { RequestHandler } from '../../src/http/request-handler.ts';
import { between, pick } from '../lib/random.ts';
import { ServerRequest, ServerResponse, ServerSocket, type Target } from './http-messages.ts';
import { Way } from './link-network.ts';
import { SimulatedProcess } from './process.ts';
import type { Simulation } from './virtual.ts';

/** How long a message takes, in milliseconds. */
const DELAY_MS = { least: 0, most: 5 } as const;
/** How long an end may take to notice that the other one is gone, if nobody tells it, in milliseconds. */
const UNNOTICED_MS = 20_000;
/** What each byte to a slow reader counts as, and how long it takes for what it reads, at most. */
const SLOW_WEIGHT = 200;
const SLOW_MS = 1_500;

/** The server of a relay: it accepts connections until it is closed. */
export class HttpServer {
  readonly #sockets = new Set<ServerSocket>();
  #isClosed = false;
  #onLast = (): void => {};

  get isClosed(): boolean {
    return this.#isClosed;
  }

  accepted(socket: ServerSocket): void {
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#onLast();
    });
  }

  /** Accepts no more connections. Resolves when all have ended; after `withinMs` it ends those that are left. */
  async close({ clock }: SimulatedProcess, withinMs: number): Promise<void> {
    this.#isClosed = true;
    if (this.#sockets.size === 0) return;
    const cancel = clock.after(withinMs, () => this.#sockets.forEach((socket) => socket.destroy()));
    await new Promise<void>((last) => (this.#onLast = last));
    cancel();
  }
}

/** A relay that takes requests. */
export type HttpDoor = {
  readonly process: SimulatedProcess;
  readonly server: HttpServer;
  readonly handler: Pick<RequestHandler, 'connection' | 'request'>;
  /** See `Backend.onRecord`. */
  onRecord(run: () => void, holder: { destroy(): void }): void;
};

/** What the requester is told of a response, in this order. `onLost`: the connection ended before the response. */
type ResponseEvents = {
  onHead?(status: number, headers: ReadonlyMap<string, string>): void;
  onText?(text: string): void;
  onEnd(): void;
  onLost(): void;
};

export class HttpNetwork {
  readonly simulation: Simulation;
  /** Where all requesters run. */
  readonly outside: SimulatedProcess;
  readonly #doors: () => readonly HttpDoor[];
  readonly #exchanges = new Set<Exchange>();

  /** `doors`: the relays that a load balancer knows. */
  constructor(simulation: Simulation, doors: () => readonly HttpDoor[]) {
    this.simulation = simulation;
    this.#doors = doors;
    this.outside = new SimulatedProcess(simulation, 'outside');
  }

  /** Sends a request, to the relay of this name, if it is named and alive, or to any. */
  send(target: Target, events: ResponseEvents, relay?: string): Exchange {
    const doors = this.#doors();
    const named = doors.find(({ process }) => process.name === relay);
    const door = named ?? (doors.length > 0 ? pick(this.simulation.random, doors) : null);
    const exchange = new Exchange(this, { target, events, door });
    this.#exchanges.add(exchange);
    return exchange;
  }

  /** The exchanges whose ends both believe in them. */
  get open(): readonly Exchange[] {
    return [...this.#exchanges].filter(({ isOpen }) => isOpen);
  }

  forget(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
  }

  relayDied(process: SimulatedProcess): void {
    const isTold = this.simulation.random() < 0.7;
    for (const exchange of [...this.#exchanges])
      if (exchange.door?.process === process) exchange.break(isTold ? 'both' : 'relay');
  }

  /** Ends all troubles. */
  heal(): void {
    for (const exchange of [...this.#exchanges]) exchange.heal();
  }

  delay(): number {
    return between(this.simulation.random, DELAY_MS.least, DELAY_MS.most);
  }
}

type ExchangeParts = { readonly target: Target; readonly events: ResponseEvents; readonly door: HttpDoor | null };

/** One request and its response, over a connection of their own. */
export class Exchange {
  readonly door: HttpDoor | null;
  readonly #network: HttpNetwork;
  readonly #target: Target;
  readonly #events: ResponseEvents;
  readonly #reader: ResponseReader;
  readonly #up: Way;
  readonly #down: Way;
  #socket: ServerSocket | null = null;
  #isBroken = false;
  /** Whether the requester has been told how it ended, or has hung up. */
  #isOver = false;

  constructor(network: HttpNetwork, { target, events, door }: ExchangeParts) {
    this.#network = network;
    this.#target = target;
    this.#events = events;
    this.door = door;
    this.#reader = new ResponseReader(events, () => this.#complete());
    this.#up = new Way(network);
    this.#down = new Way(network);
    this.#down.to = network.outside;
    if (door) this.#up.to = door.process;
    network.outside.after(network.delay(), 'a request is sent', () => (door ? this.#connect(door) : this.#lost()));
  }

  get isOpen(): boolean {
    return this.#socket !== null && !this.#isBroken && !this.#isOver;
  }

  /** The requester closes the connection. */
  hangUp(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.break('relay');
  }

  #connect({ process, server, handler, onRecord }: HttpDoor): void {
    const [up, down] = [this.#up, this.#down];
    process.after(this.#network.delay(), 'a connection for a request arrives', () => {
      if (this.#isBroken) return;
      if (server.isClosed) return this.#ended();
      const socket = new ServerSocket({
        ...{ process, down, onRecord, address: '192.0.2.2' },
        arrive: (bytes) => this.#isOver || this.#reader.read(bytes),
        onEnd: (how) => (how === 'destroyed' ? this.break('both') : this.#ended()),
      });
      this.#socket = socket;
      server.accepted(socket);
      handler.connection(socket);
      const request = new ServerRequest(socket, this.#target);
      const response = new ServerResponse(request);
      const body = Buffer.from(this.#target.body ?? '');
      const cut = between(this.#network.simulation.random, 0, body.length);
      up.send(100, () => {
        if (body.length === 0) request.arrived(body, true);
        handler.request(request, response);
      });
      if (body.length === 0) return;
      up.send(cut, () => request.arrived(body.subarray(0, cut), cut === body.length));
      if (cut < body.length) up.send(body.length - cut, () => request.arrived(body.subarray(cut), true));
    });
  }

  /** The connection is gone, with what is under way. `end`: the one that notices soon; the other one notices later. */
  break(end: 'requester' | 'relay' | 'both'): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#up.lose();
    this.#down.lose();
    this.#notice(end);
  }

  #notice(end: 'requester' | 'relay' | 'both'): void {
    const { simulation, outside } = this.#network;
    const wait = (one: 'requester' | 'relay'): number =>
      end === one || end === 'both' ? this.#network.delay() : between(simulation.random, 500, UNNOTICED_MS);
    outside.after(wait('requester'), 'a request is lost', () => this.#lost());
    this.door?.process.after(wait('relay'), 'a request is lost', () => this.#socket?.gone());
  }

  /** Nothing arrives for a while in one direction or both. Then all of it does, or the connection breaks. */
  stall(direction: 'up' | 'down' | 'both', ms: number): void {
    const ways = direction === 'both' ? [this.#up, this.#down] : [direction === 'up' ? this.#up : this.#down];
    for (const way of ways) way.isStalled = true;
    const { simulation } = this.#network;
    const breaks = simulation.random() < 0.4;
    simulation.after(ms, 'a request goes on', () => {
      if (breaks) this.break('both');
      else for (const way of ways) way.goOn();
    });
  }

  /** The requester reads slowly for a while. */
  slow(ms: number): void {
    const { simulation } = this.#network;
    Object.assign(this.#down, { slowMs: between(simulation.random, SLOW_MS / 10, SLOW_MS), weight: SLOW_WEIGHT });
    simulation.after(ms, 'a reader is fast again', () => this.#down.fast());
  }

  heal(): void {
    for (const way of [this.#up, this.#down]) {
      way.fast();
      way.goOn();
    }
    if (this.#isBroken) this.#notice('both');
  }

  /** The relay has ended the connection behind what it wrote. */
  #ended(): void {
    this.#lost();
    this.break('both');
  }

  #complete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#network.forget(this);
    this.#events.onEnd();
    this.break('relay');
  }

  #lost(): void {
    this.#network.forget(this);
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.onLost();
  }
}

/** Reads the bytes of one response. */
class ResponseReader {
  readonly #events: ResponseEvents;
  readonly #onComplete: () => void;
  readonly #decoder = new TextDecoder();
  #bytes = Buffer.alloc(0);
  #hasHead = false;
  /** How many bytes of the body are still to come; null: it comes in chunks. */
  #left: number | null = 0;

  constructor(events: ResponseEvents, onComplete: () => void) {
    this.#events = events;
    this.#onComplete = onComplete;
  }

  read(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (!this.#hasHead) this.#readHead();
    if (!this.#hasHead) return;
    if (this.#left === null) this.#readChunks();
    else this.#readBody(this.#left);
  }

  #readHead(): void {
    const end = this.#bytes.indexOf('\r\n\r\n');
    if (end < 0) return;
    const [first = '', ...lines] = this.#bytes.toString('latin1', 0, end).split('\r\n');
    const headers = new Map(
      lines.map((line) => {
        const cut = line.indexOf(': ');
        return [line.slice(0, cut), line.slice(cut + 2)] as const;
      }),
    );
    this.#bytes = this.#bytes.subarray(end + 4);
    this.#hasHead = true;
    const status = Number(first.split(' ')[1]);
    const length = headers.get('content-length');
    if (headers.has('transfer-encoding')) this.#left = null;
    else this.#left = length === undefined ? 0 : Number(length);
    this.#events.onHead?.(status, headers);
  }

  #readBody(left: number): void {
    const taken = this.#bytes.subarray(0, left);
    this.#bytes = Buffer.alloc(0);
    this.#left = left - taken.length;
    if (taken.length > 0) this.#events.onText?.(this.#decoder.decode(taken, { stream: true }));
    if (this.#left === 0) this.#onComplete();
  }

  #readChunks(): void {
    for (;;) {
      const end = this.#bytes.indexOf('\r\n');
      if (end < 0) return;
      const length = Number.parseInt(this.#bytes.toString('latin1', 0, end), 16);
      if (this.#bytes.length < end + 2 + length + 2) return;
      const chunk = this.#bytes.subarray(end + 2, end + 2 + length);
      this.#bytes = this.#bytes.subarray(end + 2 + length + 2);
      if (length === 0) return this.#onComplete();
      this.#events.onText?.(this.#decoder.decode(chunk, { stream: true }));
    }
  }
}
