/** The connections of simulated processes to the log service: they have delays, break, and come back. */
import { EventEmitter } from 'node:events';
import type { Clock, Log } from '../../src/core/ports.ts';
import { createStoreClock } from '../../src/backends/redis/store-clock.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { between } from '../lib/random.ts';
import type { LogService } from './log-service.ts';
import { START, type SimulatedProcess } from './process.ts';
import type { Simulation } from './virtual.ts';

/** How long a message takes one way, in milliseconds, and how long a slow one does. */
const DELAY_MS = { least: 0, most: 2 } as const;
/** The time after which an unanswered call fails, and the one after which a silent connection is replaced. */
const CALL_MS = 2_000;
const SILENT_MS = 3_000;
/** The longest time between two attempts to connect. */
const RETRY_MS = 1_000;

/**
 * What a network does to a process: `closed` breaks its connections. `silent` lets nothing through: what was sent arrives
 * when the fault ends, as TCP sends it again, unless the connection was replaced meanwhile.
 */
export type Fault = 'closed' | 'silent' | null;

export class LogNetwork {
  readonly #simulation: Simulation;
  readonly service: LogService;
  readonly #connections = new Set<Connection>();
  readonly #faults = new Map<string, Fault>();
  /** How much later each message arrives, in milliseconds. */
  slowMs = 0;
  /** Whether the service runs. */
  isUp = true;

  constructor(simulation: Simulation, service: LogService) {
    this.#simulation = simulation;
    this.service = service;
    service.onPublish = (channel, text) => {
      for (const connection of this.#connections) connection.deliver(channel, text);
    };
  }

  /** Makes a connection of a process, as `connectTo` does. */
  connect(process: SimulatedProcess): Client {
    // It has the methods that owners call.
    return this.#connection(process) as unknown as Client;
  }

  /** Makes the clock of the deployment, as a process has it that asks the service for its time. */
  async clockOf(process: SimulatedProcess, log: Log): Promise<Clock> {
    const { clock: system } = process;
    const connection = this.#connection(process);
    await connection.connect();
    return createStoreClock({ read: connection.time, system, monotonic: system.monotonic, log });
  }

  #connection(process: SimulatedProcess): Connection {
    const connection = new Connection(this.#simulation, this, process);
    this.#connections.add(connection);
    return connection;
  }

  faultOf(process: SimulatedProcess): Fault {
    return this.#faults.get(process.name) ?? (this.isUp ? null : 'closed');
  }

  setFault(process: SimulatedProcess, fault: Fault): void {
    this.#faults.set(process.name, fault);
    for (const connection of this.#connections) {
      if (connection.process !== process) continue;
      if (fault === 'closed') connection.break();
      else if (fault === null) connection.goOn();
    }
  }

  /** Ends the service, and all connections with it. */
  stop(): void {
    this.isUp = false;
    for (const connection of this.#connections) connection.break();
  }

  start(): void {
    this.isUp = true;
  }

  /** The service answers with the state of a replica from now on. `aheadMs`: how far the replica's clock is ahead. */
  failOver(state: ReturnType<LogService['copy']>, aheadMs: number): void {
    this.stop();
    this.service.become(state);
    this.service.aheadMs = aheadMs;
    this.start();
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  delay(): number {
    return this.slowMs + between(this.#simulation.random, DELAY_MS.least, DELAY_MS.most);
  }
}

type Call = { readonly settle: (result: { readonly value: unknown } | { readonly error: Error }) => void };

/** One connection. Calls and answers keep their order in it; nothing is sent twice. */
class Connection extends EventEmitter {
  readonly process: SimulatedProcess;
  readonly #simulation: Simulation;
  readonly #network: LogNetwork;
  readonly #channels = new Set<string>();
  #pending = new Set<Call>();
  /** Grows with each break: what was sent over an earlier one is lost. */
  #epoch = 0;
  #state: 'idle' | 'connecting' | 'ready' | 'ended' = 'idle';
  #attempts = 0;
  /** What could not get through yet, in order. */
  #stalled: (() => void)[] = [];
  /** When the last message arrives, each way. */
  #lastUp = 0;
  #lastDown = 0;

  constructor(simulation: Simulation, network: LogNetwork, process: SimulatedProcess) {
    super();
    this.#simulation = simulation;
    this.#network = network;
    this.process = process;
  }

  /** Resolves when the connection is ready. Rejects if the first attempt fails; it then tries again by itself. */
  connect(): Promise<void> {
    this.#state = 'connecting';
    return new Promise((resolve, reject) => this.#attempt(resolve, reject));
  }

  disconnect(): void {
    this.#state = 'ended';
    this.#network.forget(this);
    this.#lose();
  }

  /** The other end is gone. */
  break(): void {
    if (this.#state !== 'ready') return;
    this.#state = 'connecting';
    const epoch = ++this.#epoch;
    this.#channels.clear();
    this.process.after(this.#network.delay(), 'connection closed', () => {
      if (epoch !== this.#epoch || this.#state === 'ended') return;
      this.#lose();
      this.emit('close');
      this.#attempts = 0;
      this.#retry();
    });
  }

  /** A message was published. */
  deliver(channel: string, text: string): void {
    if (!this.#channels.has(channel)) return;
    this.#answer(this.#epoch, 'message', () => this.emit('message', channel, text));
  }

  time = async (): Promise<number> => START + Number(await this.#call('time', (service) => service.time()));
  get = (key: string) => this.#call('get', (service) => service.get(key));
  mget = (...keys: (string | string[])[]) => this.#call('mget', (service) => service.mget(keys.flat()));
  smembers = (key: string) => this.#call('smembers', (service) => service.smembers(key));
  srem = (key: string, ...members: string[]) => this.#call('srem', (service) => service.srem(key, members));
  del = (...keys: string[]) => this.#call('del', (service) => service.del(keys));
  exists = (key: string) => this.#call('exists', (service) => service.exists(key));
  publish = (channel: string, text: string) => this.#call('publish', (service) => service.publish(channel, text));

  lindexBuffer = (key: string, at: number) =>
    this.#call('lindex', (service) => {
      const item = service.lindex(key, at);
      return item === null ? null : Buffer.from(item);
    });

  xrangeBuffer = (key: string, from: string, _to: string, _count: string, most: number) =>
    this.#call('xrange', (service) =>
      service
        .xrange(key, Number.parseInt(from, 10), most)
        .map(([number, text]) => [`${number}-0`, [Buffer.from('b'), Buffer.from(text)]]),
    );

  eval = (text: string, count: number, ...words: (string | number)[]) =>
    this.#call('eval', (service) => service.eval(text, ...split(count, words)));

  evalsha = (sha: string, count: number, ...words: (string | number)[]) =>
    this.#call('evalsha', (service) => service.evalKnown(sha, ...split(count, words)));

  subscribe = (...channels: string[]) =>
    this.#call('subscribe', () => {
      for (const channel of channels) this.#channels.add(channel);
    });

  unsubscribe = (...channels: string[]) =>
    this.#call('unsubscribe', () => {
      for (const channel of channels) this.#channels.delete(channel);
    });

  /** Only the question for replicas is sent as a pipeline. The model has none. */
  pipeline() {
    const asked = {
      exists: () => asked,
      info: () => asked,
      exec: () => this.#call('info', () => [[null, 0] as const, [null, 'role:master'] as const]),
    };
    return asked;
  }

  #attempt(resolve: () => void, reject: (error: Error) => void): void {
    this.process.after(this.#network.delay() * 2, 'connects', () => {
      if (this.#state !== 'connecting') return;
      if (this.#network.faultOf(this.process) !== null) {
        reject(new Error('connect ECONNREFUSED'));
        this.emit('close');
        return this.#retry();
      }
      this.#state = 'ready';
      this.#attempts = 0;
      this.#epoch++;
      resolve();
      this.emit('ready');
    });
  }

  #retry(): void {
    const wait = Math.min(RETRY_MS, 50 * ++this.#attempts);
    this.process.after(wait, 'connects again', () =>
      this.#attempt(
        () => {},
        () => {},
      ),
    );
  }

  async #call(name: string, run: (service: LogService) => unknown): Promise<unknown> {
    if (this.#state !== 'ready') throw new Error("Stream isn't writeable and enableOfflineQueue options is false");
    const epoch = this.#epoch;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const call: Call = {
      settle: (result) => {
        if (!this.#pending.delete(call)) return;
        stop();
        if ('value' in result) resolve(result.value);
        else reject(result.error);
      },
    };
    this.#pending.add(call);
    const stop = this.process.after(CALL_MS, 'call timed out', () => {
      call.settle({ error: new Error('Command timed out') });
      this.process.after(SILENT_MS - CALL_MS, 'silent connection', () => {
        if (epoch === this.#epoch && this.#network.faultOf(this.process) === 'silent') this.#replace();
      });
    });
    this.#lastUp = Math.max(this.#lastUp, this.#simulation.now + this.#network.delay());
    const arrive = (): void => {
      // What is on its way when a connection breaks may have arrived or not; here it has not.
      if (epoch !== this.#epoch) return;
      if (this.#network.faultOf(this.process) === 'silent') return void this.#stalled.push(arrive);
      const result = resultOf(() => run(this.#network.service));
      this.#answer(epoch, `${name} answered`, () => call.settle(result));
    };
    this.#simulation.after(this.#lastUp - this.#simulation.now, `${this.process.name}: ${name}`, arrive);
    return promise;
  }

  /** Lets an answer or a message arrive, after those before it. */
  #answer(epoch: number, what: string, run: () => void): void {
    this.#lastDown = Math.max(this.#lastDown, this.#simulation.now + this.#network.delay());
    const arrive = (): void => {
      if (epoch !== this.#epoch) return;
      if (this.#network.faultOf(this.process) === 'silent') this.#stalled.push(arrive);
      else run();
    };
    this.process.after(this.#lastDown - this.#simulation.now, what, arrive);
  }

  /** The network lets everything through again. */
  goOn(): void {
    for (const arrive of this.#stalled.splice(0))
      this.#simulation.after(0, `${this.process.name}: arrives late`, arrive);
  }

  #replace(): void {
    this.#state = 'connecting';
    this.#epoch++;
    this.#channels.clear();
    this.#lose();
    this.emit('close');
    this.#retry();
  }

  #lose(): void {
    const lost = this.#pending;
    for (const { settle } of [...lost]) settle({ error: new Error('Connection is closed.') });
  }
}

function split(count: number, words: readonly (string | number)[]): [keys: string[], args: string[]] {
  const texts = words.map(String);
  return [texts.slice(0, count), texts.slice(count)];
}

function resultOf(run: () => unknown): { readonly value: unknown } | { readonly error: Error } {
  try {
    return { value: run() };
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }
}
