/**
 * The connections of simulated programs to relays, as WebSockets: messages take time and keep their order, connections
 * break, stall, or end at one side only, and readers are slow.
 */
import { Buffer } from 'node:buffer';
import type { SocketConstructor, SocketEvent, SocketLike } from '../../src/clients/link/platform.ts';
import type { MessageSocket, SocketHandler } from '../../src/gateway/socket.ts';
import { between, pick } from '../lib/random.ts';
import type { SimulatedProcess } from './process.ts';
import type { Simulation } from './virtual.ts';

/** The host of the load balancer. Any other one is the name of a relay. */
const BALANCER = 'relays';
/** The address of the load balancer. */
export const BALANCER_URL = addressOf(BALANCER);

/** Returns the address at which programs reach a relay by its name. */
export function addressOf(relay: string): string {
  return `ws://${relay}/connect`;
}

/** How long a message takes, in milliseconds. */
const DELAY_MS = { least: 0, most: 5 } as const;
/** How long an end that closes waits for the answer of the other one, in milliseconds. */
const CLOSE_MS = 3_000;
/** How long an end may take to notice that the other one is gone, if nobody tells it, in milliseconds. */
const UNNOTICED_MS = 20_000;
/** How long a new connection may stall, in milliseconds. */
const STALL_MS = 9_000;
/**
 * What each byte to a slow reader counts as, so that small frames reach the bounds of back-pressure: a few frames reach
 * the one above which nothing is dispatched, and one of the heavy ones that at which the relay closes the link.
 */
const SLOW_WEIGHT = 3_000;
const HEAVY_WEIGHT = 120_000;
/** The part of the slow readers to whom frames are heavy. */
const HEAVY = 0.3;
/** The longest time that a slow reader takes for a message, in milliseconds. */
const SLOW_MS = 1_500;
/** The close code of a page that is left, and that of a connection that ends without a close frame. */
const GOING_AWAY = 1001;
const ABNORMAL = 1006;

/** Where connections arrive: a relay with a gateway. */
export type Door = {
  readonly process: SimulatedProcess;
  accept(socket: MessageSocket, address: string): boolean;
  /** See `Backend.onRecord`. */
  onRecord(run: () => void, holder: { destroy(): void }): void;
};

export class LinkNetwork {
  readonly simulation: Simulation;
  readonly #doors: () => readonly Door[];
  readonly #connections = new Set<Connection>();
  /** How many of the new connections begin with a time in which nothing reaches the relay: a part of all. */
  stalling = 0;
  /** A process whose new connections all begin so; null: none. */
  stallingProcess: SimulatedProcess | null = null;
  /** Called when a message leaves a relay, with its text and the relay's name. Absent: it is not called. */
  onWritten: ((text: string, relay: string, connection: Connection) => void) | undefined;
  /** Called when a message arrives at a relay, before the relay reads it. Absent: it is not called. */
  onReceived: ((text: string, connection: Connection) => void) | undefined;

  /** `doors`: the relays that a load balancer knows. */
  constructor(simulation: Simulation, doors: () => readonly Door[]) {
    this.simulation = simulation;
    this.#doors = doors;
  }

  /**
   * Returns the WebSocket class of a process. `watch` is called with the address of each socket, and returns what is told
   * its messages.
   */
  socketsOf(process: SimulatedProcess, watch: (url: string) => (text: string) => void): SocketConstructor {
    const open = (url: string): ProgramSocket => new Connection(this, { process, url, watch: watch(url) }).program;
    // A constructor that returns an object gives that object.
    return function Socket(url: string) {
      return open(url);
    } as unknown as SocketConstructor;
  }

  /** The connections of which neither end has noticed an end. */
  get open(): readonly Connection[] {
    return [...this.#connections].filter(({ isOpen }) => isOpen);
  }

  /** The newest connection of a process of which neither end has noticed an end. */
  openOf(process: SimulatedProcess): Connection | null {
    return this.open.findLast(({ program }) => program.process === process) ?? null;
  }

  /** Finds the relay of a connection's address, or one for the load balancer; undefined if there is none. */
  route(connection: Connection): Door | undefined {
    const { host } = new URL(connection.url);
    const doors = this.#doors().filter(({ process }) => host === BALANCER || process.name === host);
    if (doors.length === 0) return undefined;
    this.#connections.add(connection);
    return pick(this.simulation.random, doors);
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  /** The relay at this end is gone. Some hosts tell the other end, and others are gone too. */
  relayDied(process: SimulatedProcess): void {
    const isTold = this.simulation.random() < 0.7;
    for (const connection of [...this.#connections])
      if (connection.relay?.process === process) connection.break(isTold ? 'both' : 'relay');
  }

  /** The program at this end is gone: it was closed in order, it was killed, or its machine is gone. */
  programDied(process: SimulatedProcess): void {
    const how = pick(this.simulation.random, ['closes', 'killed', 'gone'] as const);
    for (const connection of [...this.#connections]) {
      if (connection.program.process !== process) continue;
      if (how === 'closes') connection.program.close(GOING_AWAY);
      else if (how === 'killed') connection.program.killed();
      else connection.break('program', false);
    }
  }

  /** Ends all troubles: what stalls goes on, and each end notices what is gone. */
  heal(): void {
    this.stalling = 0;
    this.stallingProcess = null;
    for (const connection of [...this.#connections]) connection.heal();
  }

  delay(): number {
    return between(this.simulation.random, DELAY_MS.least, DELAY_MS.most);
  }
}

/** The attempt of a process to connect to an address. `watch` is told each message that arrives. */
type Attempt = {
  readonly process: SimulatedProcess;
  readonly url: string;
  readonly watch: (text: string) => void;
};

/** Which end of a connection. */
type End = 'program' | 'relay';

/** One connection, from the program's attempt to its end at both sides. */
export class Connection {
  readonly network: LinkNetwork;
  readonly url: string;
  readonly program: ProgramSocket;
  readonly up: Way;
  readonly down: Way;
  relay: RelaySocket | null = null;
  #isBroken = false;
  /** Whether the relay sees the end as a reset. */
  #isReset = false;

  constructor(network: LinkNetwork, { process, url, watch }: Attempt) {
    this.network = network;
    this.url = url;
    this.program = new ProgramSocket(this, process, watch);
    this.up = new Way(network);
    this.down = new Way(network);
    this.down.to = process;
    process.after(network.delay(), 'connects', () => this.#connect());
  }

  get isOpen(): boolean {
    return this.relay !== null && !this.#isBroken && this.program.state === 'open';
  }

  #connect(): void {
    const { network, program } = this;
    if (program.state !== 'connecting') return;
    const door = network.route(this);
    if (!door) return void program.process.after(network.delay(), 'is refused', () => program.fail());
    const relay = new RelaySocket(this, door);
    this.relay = relay;
    this.up.to = door.process;
    this.down.onDrain = () => relay.drained();
    door.process.after(network.delay(), 'a connection arrives', () => {
      if (this.#isBroken) return;
      if (!door.accept(relay, '192.0.2.1')) return this.break('both');
      relay.write(0, () => program.opened());
      if (network.simulation.random() < network.stalling || program.process === network.stallingProcess)
        this.stall([this.up], between(network.simulation.random, 1, STALL_MS));
    });
  }

  /**
   * The connection is gone, with what is under way. `end`: the one that notices soon; the other one notices later, if it
   * does not send meanwhile. `isReset`: whether the relay sees a reset, or only the end of what it reads.
   */
  break(end: End | 'both', isReset = this.network.simulation.random() < 0.5): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#isReset = isReset;
    this.up.lose();
    this.down.lose();
    this.#notice(end);
  }

  /** Tells an end at once, and the other one after a while. */
  #notice(end: End | 'both'): void {
    const { simulation } = this.network;
    const wait = (one: End): number =>
      end === one || end === 'both' ? this.network.delay() : between(simulation.random, 500, UNNOTICED_MS);
    this.#tell('program', wait('program'));
    this.#tell('relay', wait('relay'));
  }

  #tell(end: End, ms: number): void {
    const { program, relay } = this;
    if (end === 'program') program.process.after(ms, 'connection lost', () => program.fail());
    else relay?.process.after(ms, 'connection lost', () => relay.destroyed(this.#isReset ? RESET : null));
  }

  /** An end has noticed the end of the connection. */
  settled(): void {
    const { program, relay } = this;
    const isGone = program.state === 'closed' || program.process.isDead;
    if (isGone && (!relay || relay.isGone || relay.process.isDead)) this.network.forget(this);
  }

  /** Nothing arrives for a while in these directions. Then all of it does, or the connection breaks. */
  stall(ways: readonly Way[], ms: number): void {
    for (const way of ways) way.isStalled = true;
    const { simulation } = this.network;
    const breaks = simulation.random() < 0.4;
    simulation.after(ms, 'a connection goes on', () => {
      if (breaks) this.break('both');
      else for (const way of ways) way.goOn();
    });
  }

  /** The program reads slowly for a while. */
  slow(ms: number): void {
    const { random } = this.network.simulation;
    this.#slow(ms, between(random, SLOW_MS / 10, SLOW_MS), random() < HEAVY ? HEAVY_WEIGHT : SLOW_WEIGHT);
  }

  /** The program reads one more message now, and no other for a while: nothing is dispatched to it meanwhile. */
  readNothing(ms: number): void {
    this.#slow(ms, ms, SLOW_WEIGHT);
  }

  #slow(ms: number, restMs: number, weight: number): void {
    Object.assign(this.down, { slowMs: restMs, weight });
    this.network.simulation.after(ms, 'a reader is fast again', () => this.down.fast());
  }

  /** Nothing arrives at the program for a while. Then all of it does. */
  delayDown(ms: number): void {
    this.down.isStalled = true;
    this.network.simulation.after(ms, 'a connection goes on', () => this.down.goOn());
  }

  heal(): void {
    for (const way of [this.up, this.down]) {
      way.fast();
      way.goOn();
    }
    if (this.#isBroken) this.#notice('both');
  }
}

type Item = { readonly bytes: number; readonly arrive: () => void };

/** One direction of a connection. What is sent arrives in its order. */
export class Way {
  readonly #network: Pick<LinkNetwork, 'simulation' | 'delay'>;
  /** Who reads. */
  to: SimulatedProcess | null = null;
  /** Called when everything is read that was sent. */
  onDrain: (() => void) | null = null;
  /** Whether the network holds everything back. */
  isStalled = false;
  /** Whether the reader does not read now. */
  isPaused = false;
  /** How long the reader takes for each message, in milliseconds, and what each byte counts as. */
  slowMs = 0;
  weight = 1;
  readonly #sent: Item[] = [];
  /** How many of them have arrived, so that they can be read. */
  #arrived = 0;
  #bytes = 0;
  #lastAt = 0;
  #isReading = false;
  #isLost = false;

  constructor(network: Pick<LinkNetwork, 'simulation' | 'delay'>) {
    this.#network = network;
  }

  /** The bytes that are not read yet. What is lost is never read. */
  get buffered(): number {
    return this.#bytes * this.weight;
  }

  send(bytes: number, arrive: () => void): void {
    const { simulation } = this.#network;
    this.#bytes += bytes;
    if (this.#isLost) return;
    this.#sent.push({ bytes, arrive });
    this.#lastAt = Math.max(this.#lastAt, simulation.now + this.#network.delay());
    this.to?.after(this.#lastAt - simulation.now, 'a message arrives', () => {
      this.#arrived++;
      this.read();
    });
  }

  /** Reads what has arrived. */
  read(): void {
    while (this.#arrived > 0 && !this.isStalled && !this.isPaused && !this.#isReading) {
      const item = this.#sent.shift();
      this.#arrived--;
      if (!item) continue;
      this.#bytes -= item.bytes;
      item.arrive();
      if (this.slowMs > 0) this.#rest();
      if (this.#sent.length === 0) this.onDrain?.();
    }
  }

  #rest(): void {
    this.#isReading = true;
    this.to?.after(this.slowMs, 'reads on', () => {
      this.#isReading = false;
      this.read();
    });
  }

  fast(): void {
    this.slowMs = 0;
    this.weight = 1;
  }

  goOn(): void {
    if (!this.isStalled) return;
    this.isStalled = false;
    this.to?.after(0, 'reads what stalled', () => this.read());
  }

  /** Everything that has not been read is lost, and so is all that follows. */
  lose(): void {
    this.#isLost = true;
    this.#sent.length = 0;
    this.#arrived = 0;
  }
}

const RESET = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** The relay's end. It behaves as a `LinkSocket` does over `ws`. */
class RelaySocket implements MessageSocket {
  readonly process: SimulatedProcess;
  readonly #connection: Connection;
  readonly #door: Door;
  #handler: SocketHandler | null = null;
  #drain: (() => void) | null = null;
  #state: 'open' | 'closing' | 'gone' = 'open';
  /** The bytes that wait for what they depend on to be recorded. */
  #heldBytes = 0;
  errored: Error | null = null;

  constructor(connection: Connection, door: Door) {
    this.#connection = connection;
    this.#door = door;
    this.process = door.process;
  }

  get isGone(): boolean {
    return this.#state === 'gone';
  }

  get bufferedAmount(): number {
    return this.#heldBytes + this.#connection.down.buffered;
  }

  tell(handler: SocketHandler): void {
    this.#handler = handler;
  }

  onDrain(listener: () => void): void {
    this.#drain = listener;
  }

  drained(): void {
    const drain = this.#drain;
    if (drain) this.process.after(0, 'a socket has drained', () => this.#state === 'open' && drain());
  }

  pause(): void {
    this.#connection.up.isPaused = true;
  }

  resume(): void {
    const { up } = this.#connection;
    up.isPaused = false;
    this.process.after(0, 'a socket reads on', () => up.read());
  }

  sendAll(texts: readonly string[]): void {
    if (this.#state !== 'open') return;
    const { program, network } = this.#connection;
    for (const text of texts) {
      const written = (): void => network.onWritten?.(text, this.process.name, this.#connection);
      this.write(text.length, () => program.receive(text), written);
    }
  }

  /** Sends something once all is recorded that it depends on. */
  write(bytes: number, arrive: () => void, written = (): void => {}): void {
    this.#heldBytes += bytes;
    const leave = (): void => {
      this.#heldBytes -= bytes;
      if (this.#state === 'gone') return;
      this.#connection.down.send(bytes, arrive);
      written();
    };
    this.#door.onRecord(leave, { destroy: () => this.#connection.break('both') });
  }

  close(code: number): void {
    this.#handler?.ending(code);
    if (this.#state !== 'open') return;
    this.#sendClose(code);
    this.process.after(CLOSE_MS, 'no close frame came', () => this.#state === 'gone' || this.#connection.break('both'));
  }

  #sendClose(code: number, written?: () => void): void {
    this.#state = 'closing';
    const { program } = this.#connection;
    this.write(2, () => program.receiveClose(code), written);
  }

  receive(text: string): void {
    if (this.#state === 'gone') return;
    this.#connection.network.onReceived?.(text, this.#connection);
    this.#handler?.message(Buffer.from(text), false);
  }

  /** The program's close frame has arrived: its own, or its answer to ours. */
  receiveClose(code: number): void {
    this.#handler?.ending(code);
    const end = (): void => void this.process.after(0, 'a socket ends', () => this.destroyed(null));
    if (this.#state === 'open') this.#sendClose(code, end);
    else end();
  }

  /** The connection is gone. */
  destroyed(error: Error | null): void {
    if (this.#state === 'gone') return;
    this.#state = 'gone';
    this.errored = error;
    this.#handler?.gone();
    this.#connection.settled();
  }
}

/** The program's end: a WebSocket as browsers have it. */
class ProgramSocket implements SocketLike {
  readonly process: SimulatedProcess;
  readonly #connection: Connection;
  readonly #watch: (text: string) => void;
  readonly #listeners: { readonly type: string; readonly listener: (event: SocketEvent) => void }[] = [];
  state: 'connecting' | 'open' | 'closing' | 'closed' = 'connecting';

  constructor(connection: Connection, process: SimulatedProcess, watch: (text: string) => void) {
    this.#connection = connection;
    this.process = process;
    this.#watch = watch;
  }

  get bufferedAmount(): number {
    return this.#connection.up.buffered;
  }

  addEventListener(type: string, listener: (event: SocketEvent) => void): void {
    this.#listeners.push({ type, listener });
  }

  send(text: string): void {
    if (this.state === 'connecting') throw new Error('The socket is not open.');
    const { relay, up } = this.#connection;
    if (this.state === 'open') up.send(text.length, () => relay?.receive(text));
  }

  close(code = 1005): void {
    const { state } = this;
    if (state === 'closing' || state === 'closed') return;
    this.state = 'closing';
    const { relay, up } = this.#connection;
    if (state === 'connecting') return this.#connection.break('both');
    up.send(2, () => relay?.receiveClose(code));
    this.process.after(
      CLOSE_MS,
      'no close frame came',
      () => this.state === 'closed' || this.#connection.break('both'),
    );
  }

  /** The process is gone. Its system ends the connection behind what was sent. */
  killed(): void {
    const { state } = this;
    this.state = 'closed';
    const connection = this.#connection;
    if (state === 'connecting') connection.break('both', false);
    if (state === 'open' || state === 'closing') connection.up.send(0, () => connection.relay?.destroyed(null));
  }

  opened(): void {
    if (this.state !== 'connecting') return;
    this.state = 'open';
    this.#emit('open');
  }

  receive(text: string): void {
    if (this.state !== 'open') return;
    this.#watch(text);
    this.#emit('message', { data: text });
  }

  receiveClose(code: number): void {
    if (this.state === 'closed') return;
    const { relay, up } = this.#connection;
    if (this.state === 'open') up.send(2, () => relay?.receiveClose(code));
    this.state = 'closed';
    this.#emit('close', { code });
    this.#connection.settled();
  }

  /** The connection is gone, or could not be opened. */
  fail(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.#emit('error');
    this.#emit('close', { code: ABNORMAL });
    this.#connection.settled();
  }

  #emit(type: string, event: Omit<SocketEvent, 'type'> = {}): void {
    for (const { type: wanted, listener } of this.#listeners) if (wanted === type) listener({ type, ...event });
  }
}
