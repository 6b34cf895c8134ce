/** The requests of this process to the owners of partitions: each is open until it is answered, and repeated until then. */
import { KEPT } from '../journal/recording.ts';
import { CallboardError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import { promised, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Cancel, Clock } from '../../core/ports.ts';
import { decode, decodeError, encode } from './encoding.ts';
import type { OwnerTable } from './owners.ts';
import type { PartitionStores } from './routes.ts';
import { writeMessage, type Response, type Transport } from './transport.ts';

/** A method of a port with its arguments. */
export type PortCall = { readonly port: string; readonly method: string; readonly args: readonly unknown[] };

/** Runs a call in the stores of a partition. */
export function runIn(stores: PartitionStores, { port, method, args }: PortCall): MaybePromise<unknown> {
  const ports: Readonly<Record<string, unknown>> = stores;
  const store = ports[port];
  const run = isRecord(store) ? store[method] : undefined;
  if (typeof run !== 'function') throw new CallboardError('internal', `There is no method ${port}.${method}.`);
  return Reflect.apply(run, store, args);
}

/** Whether a method changes anything: one that only reads may run twice. */
export function isChange(port: string, method: string): boolean {
  const kept: Readonly<Record<string, Readonly<Record<string, unknown>>>> = KEPT;
  return kept[port]?.[method] !== 'read';
}

/** What an owner answered, and how many characters that took. */
export type OwnerAnswer = { readonly value: unknown; readonly chars: number };

/** After how long a request without an answer is sent again; then after twice as long each time, up to the longest. */
const REPEAT_MS = 1_000;
const LONGEST_REPEAT_MS = 8_000;
const LOOK_MS = REPEAT_MS / 4;
/** The most requests to one partition that are sent again together. The owner answers the oldest ones first. */
const REPEATED_TOGETHER = 256;

/** A request without an answer, or whose answer waits for those before it. */
type OpenRequest = {
  readonly number: number;
  readonly call: PortCall;
  readonly body: string;
  readonly endsAt: number;
  sentAt: number;
  repeatMs: number;
  resolve(answer: MaybePromise<OwnerAnswer | null>): void;
  reject(error: unknown): void;
  /** Settles the request with the answer that has arrived. */
  settle: (() => void) | null;
};

/** The requests to one partition, oldest first. `last`: the number of the latest one. */
type PartitionQueue = { last: number; readonly open: Map<number, OpenRequest> };

type RequestOptions = {
  readonly owners: OwnerTable;
  readonly transport: Transport;
  readonly clock: Clock;
  /** Runs a call in a partition of this process. What it reads counts only while the process has its lease. */
  readonly runHere: (partition: number, call: PortCall) => MaybePromise<unknown>;
};

/**
 * Sends requests to owners. Those to one partition run and are answered in the order in which they were made: through
 * losses, repeats and a change of the owner. If this process becomes the owner, they run here.
 */
export class Requests {
  readonly #options: RequestOptions;
  readonly #queues = new Map<number, PartitionQueue>();
  #timer: Cancel | null = null;
  #isClosed = false;

  constructor(options: RequestOptions) {
    this.#options = options;
  }

  /** Resolves with the answer; null: there was none within this time, and whether the call ran is unknown. */
  ask(partition: number, call: PortCall, withinMs: number): Promise<OwnerAnswer | null> {
    // A new queue would number its requests from 1 again, and owners would take them for repeated ones.
    if (this.#isClosed) return Promise.resolve(null);
    const queue = this.#queueOf(partition);
    const now = this.#options.clock.monotonic();
    const { promise, resolve, reject } = Promise.withResolvers<OwnerAnswer | null>();
    const number = ++queue.last;
    const timing = { endsAt: now + withinMs, sentAt: now, repeatMs: REPEAT_MS };
    const open = { number, call, body: encode(call.args), ...timing, settle: null };
    const request: OpenRequest = { ...open, resolve, reject };
    queue.open.set(number, request);
    this.#timer ??= this.#options.clock.every(LOOK_MS, () => this.#look());
    this.#send(partition, queue, request);
    return promise;
  }

  receive({ kind, partition, number }: Response, body: string): void {
    const queue = this.#queues.get(partition);
    const request = queue?.open.get(number);
    if (!queue || !request || request.settle) return;
    if (kind === 'not_owner') return this.#options.owners.doubt(partition);
    request.settle = () => {
      if (kind === 'error') request.reject(decodeError(body));
      else request.resolve(promised(() => ({ value: decode(body), chars: body.length })));
    };
    this.#settle(queue);
  }

  /** Sends the requests of a partition to its new owner, or runs them here. */
  moved(partition: number): void {
    const queue = this.#queues.get(partition);
    if (!queue) return;
    const stores = this.#options.owners.local(partition);
    for (const request of [...queue.open.values()]) {
      if (request.settle) continue;
      if (!stores) {
        request.repeatMs = REPEAT_MS;
        this.#send(partition, queue, request);
      } else {
        const run = promised(() => this.#options.runHere(partition, request.call));
        request.settle = () => request.resolve(run.then((value) => ({ value, chars: 0 })));
      }
    }
    this.#settle(queue);
  }

  /** Repeats all requests that have no answer, from now on: they or their answers may be lost. */
  again(): void {
    for (const { open } of this.#queues.values())
      for (const request of open.values()) Object.assign(request, { sentAt: -Infinity, repeatMs: REPEAT_MS });
    this.#look();
  }

  /** Ends the requests that are open. */
  close(): void {
    this.#isClosed = true;
    for (const { open } of this.#queues.values()) for (const request of open.values()) request.resolve(null);
    this.#queues.clear();
    this.#rest();
  }

  #queueOf(partition: number): PartitionQueue {
    const known = this.#queues.get(partition);
    if (known) return known;
    const made: PartitionQueue = { last: 0, open: new Map() };
    this.#queues.set(partition, made);
    return made;
  }

  #send(partition: number, { open }: PartitionQueue, { number, call, body }: OpenRequest): void {
    const { owners, transport } = this.#options;
    const owner = owners.ownerOf(partition);
    if (!owner || owners.local(partition)) return;
    const { port, method } = call;
    const [oldest = number] = open.keys();
    const head = { kind: 'request', partition, number, oldest, port, method } as const;
    // A change may follow from what was decided here.
    transport.send(owner.process, writeMessage(head, body), isChange(port, method) ? 'all' : null);
  }

  /** Settles the requests that have an answer, up to the first one that has none. */
  #settle({ open }: PartitionQueue): void {
    for (const [number, { settle }] of open) {
      if (!settle) return;
      open.delete(number);
      settle();
    }
  }

  #look(): void {
    const now = this.#options.clock.monotonic();
    let isIdle = true;
    for (const [partition, queue] of this.#queues) {
      this.#giveUp(queue, now);
      this.#repeat(partition, queue, now);
      if (queue.open.size > 0) isIdle = false;
    }
    if (isIdle) this.#rest();
  }

  #giveUp(queue: PartitionQueue, now: number): void {
    for (const [number, { endsAt, settle, resolve }] of queue.open) {
      if (endsAt > now || settle) continue;
      queue.open.delete(number);
      resolve(null);
    }
    this.#settle(queue);
  }

  #repeat(partition: number, queue: PartitionQueue, now: number): void {
    let repeated = 0;
    for (const request of queue.open.values()) {
      if (request.settle || now - request.sentAt < request.repeatMs) continue;
      if (repeated++ === REPEATED_TOGETHER) return;
      request.sentAt = now;
      request.repeatMs = Math.min(2 * request.repeatMs, LONGEST_REPEAT_MS);
      this.#send(partition, queue, request);
    }
  }

  #rest(): void {
    this.#timer?.();
    this.#timer = null;
  }
}
