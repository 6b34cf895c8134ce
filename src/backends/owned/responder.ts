/** Answers the requests of other processes to the partitions of this one: each change runs once, and in order. */
import { ChurnMap } from '../../core/collections.ts';
import { CallboardError } from '../../core/errors.ts';
import { thenDo, orElse, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Scan } from '../../core/page.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { decode, encode, encodeError, encodeFirst } from './encoding.ts';
import type { OwnerTable } from './owners.ts';
import { isChange, type PortCall } from './requests.ts';
import { routeOf, type PartitionStores } from './routes.ts';
import { writeMessage, type Request, type Response, type Transport } from './transport.ts';

/**
 * The characters of rows after which a page ends early, because a long answer holds up both event loops: so few that one
 * answer of each partition is together no more than a listing over all users may read.
 */
const PAGE_CHARS = 256 * 1024;
/** How long an answer is kept at most; a process gives a request up far earlier. */
const ANSWER_MS = 60_000;
/** The most characters of answers that are kept. */
const ANSWERS_CHARS = 32 * 1024 * 1024;
/** The most characters of requests that wait for an earlier one. Others are forgotten, and arrive again. */
const HELD_CHARS = 32 * 1024 * 1024;
/** How long nothing must have come from a process until its numbers are forgotten. No message is late by that much. */
const PEER_MS = 600_000;

type KeptAnswer = { readonly peer: Peer; readonly number: number; readonly text: string; readonly at: number };
type HeldRequest = { readonly request: Request; readonly body: string };

/** What another process asks of one partition. */
type Peer = {
  readonly process: string;
  readonly stores: PartitionStores;
  /** The number of the next request that runs. All before it ran, or were given up by their process. */
  expected: number;
  /** Whether a call is running, so that the next one waits. */
  busy: boolean;
  /** Requests that arrived before one that they must follow. */
  readonly held: Map<number, HeldRequest>;
  /** The answers of changes, by the number of the request. */
  readonly answers: Map<number, KeptAnswer>;
  usedAt: number;
};

type ResponderOptions = {
  readonly owners: OwnerTable;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs a call of another process in the stores of a partition of this one. */
  readonly run: (stores: PartitionStores, call: PortCall) => MaybePromise<unknown>;
};

/**
 * Runs the requests of other processes. Those of one process to one partition run in the order of their numbers, whatever
 * order they arrive in. A change that arrives again is not run again: it gets the answer that it got, as long as its
 * process waits for it. If that answer is no longer kept, it gets `store_unavailable`.
 */
export class Responder {
  readonly #options: ResponderOptions;
  readonly #peers = new Map<string, Peer>();
  readonly #answers = new ChurnMap<KeptAnswer, null>();
  #answerChars = 0;
  #heldChars = 0;
  #sweptAt = -Infinity;

  constructor(options: ResponderOptions) {
    this.#options = options;
  }

  receive(process: string, request: Request, body: string): void {
    const { partition, number, oldest } = request;
    const stores = this.#options.owners.local(partition);
    if (!stores) return this.#send(process, { kind: 'not_owner', partition, number }, '');
    const peer = this.#peerOf(process, partition, stores);
    this.#passTo(peer, oldest);
    if (number < oldest) return;
    if (number < peer.expected) this.#again(peer, request, body);
    else if (number > peer.expected || peer.busy) this.#hold(peer, request, body);
    else this.#run(peer, request, body);
    this.#next(peer);
  }

  /** The characters that are kept of answers and of requests. */
  get keptChars(): number {
    return this.#answerChars + this.#heldChars;
  }

  #peerOf(process: string, partition: number, stores: PartitionStores): Peer {
    const now = this.#options.clock.monotonic();
    this.#forget(now);
    const name = `${partition} ${process}`;
    const known = this.#peers.get(name);
    if (known?.stores === stores) {
      known.usedAt = now;
      return known;
    }
    // After a loss of the partition, what was answered before it no longer counts.
    if (known) this.#drop(name, known);
    const made: Peer = { process, stores, expected: 1, busy: false, held: new Map(), answers: new Map(), usedAt: now };
    this.#peers.set(name, made);
    return made;
  }

  /** Forgets what lies before the oldest request that its process waits for. */
  #passTo(peer: Peer, oldest: number): void {
    peer.expected = Math.max(peer.expected, oldest);
    for (const [number, answer] of peer.answers) if (number < oldest) this.#dropAnswer(answer);
    for (const number of peer.held.keys()) if (number < peer.expected) this.#takeHeld(peer, number);
  }

  #hold(peer: Peer, request: Request, body: string): void {
    if (peer.held.has(request.number) || this.#heldChars + body.length > HELD_CHARS) return;
    peer.held.set(request.number, { request, body });
    this.#heldChars += body.length;
  }

  #takeHeld(peer: Peer, number: number): HeldRequest | undefined {
    const held = peer.held.get(number);
    if (held && peer.held.delete(number)) this.#heldChars -= held.body.length;
    return held;
  }

  #next(peer: Peer): void {
    while (!peer.busy) {
      const held = this.#takeHeld(peer, peer.expected);
      if (!held) return;
      this.#run(peer, held.request, held.body);
    }
  }

  /** Answers a request that ran before. A read may run again. */
  #again(peer: Peer, request: Request, body: string): void {
    const { partition, number, port, method } = request;
    const known = peer.answers.get(number);
    if (known) return this.#options.transport.send(peer.process, known.text, partition);
    // The answer is not there yet.
    if (peer.busy) return;
    if (!isChange(port, method)) return void this.#answer(peer, request, body);
    const lost = new CallboardError('store_unavailable', 'The answer is no longer kept.', { retryAfterMs: 1_000 });
    this.#send(peer.process, { kind: 'error', partition, number }, encodeError(lost));
  }

  #run(peer: Peer, request: Request, body: string): void {
    peer.expected = request.number + 1;
    const done = this.#answer(peer, request, body);
    if (!(done instanceof Promise)) return;
    peer.busy = true;
    void done.then(() => {
      peer.busy = false;
      this.#next(peer);
    });
  }

  /** Runs a call and sends its answer. Never throws. */
  #answer(peer: Peer, request: Request, body: string): MaybePromise<void> {
    const { port, method } = request;
    const isPage = routeOf(port, method)?.kind === 'page';
    return orElse(
      () =>
        thenDo(this.#call(peer.stores, request, body), (value) =>
          // The route says what the method answers.
          this.#respond(peer, request, 'answer', isPage ? encodePage(value as Scan<unknown>) : encode(value)),
        ),
      (error) => {
        if (!(error instanceof CallboardError))
          this.#options.log.error({ err: error, port, method }, 'a request of another relay failed');
        this.#respond(peer, request, 'error', encodeError(error));
      },
    );
  }

  #call(stores: PartitionStores, { port, method }: Request, body: string): MaybePromise<unknown> {
    const kind = routeOf(port, method)?.kind;
    if (kind === undefined || kind === 'here' || kind === 'pure')
      throw new CallboardError('internal', `No other relay may call ${port}.${method}.`);
    const args = decode(body);
    return this.#options.run(stores, { port, method, args: Array.isArray(args) ? args : [] });
  }

  #respond(peer: Peer, request: Request, kind: 'answer' | 'error', body: string): void {
    const { partition, number, port, method } = request;
    const text = writeMessage({ kind, partition, number }, body);
    if (isChange(port, method)) this.#keep({ peer, number, text, at: this.#options.clock.monotonic() });
    this.#options.transport.send(peer.process, text, partition);
  }

  #send(process: string, response: Response, body: string): void {
    this.#options.transport.send(process, writeMessage(response, body), null);
  }

  #keep(answer: KeptAnswer): void {
    answer.peer.answers.set(answer.number, answer);
    this.#answers.set(answer, null);
    this.#answerChars += answer.text.length;
    while (this.#answerChars > ANSWERS_CHARS) {
      const [oldest] = this.#answers.first() ?? [];
      if (!oldest) return;
      this.#dropAnswer(oldest);
    }
  }

  #dropAnswer(answer: KeptAnswer): void {
    answer.peer.answers.delete(answer.number);
    if (this.#answers.delete(answer)) this.#answerChars -= answer.text.length;
  }

  #drop(name: string, peer: Peer): void {
    this.#peers.delete(name);
    for (const answer of peer.answers.values()) this.#dropAnswer(answer);
    for (const number of peer.held.keys()) this.#takeHeld(peer, number);
  }

  #forget(now: number): void {
    for (;;) {
      const [oldest] = this.#answers.first() ?? [];
      if (!oldest || now - oldest.at <= ANSWER_MS) break;
      this.#dropAnswer(oldest);
    }
    if (now - this.#sweptAt < ANSWER_MS) return;
    this.#sweptAt = now;
    for (const [name, peer] of this.#peers) if (now - peer.usedAt > PEER_MS) this.#drop(name, peer);
  }
}

/** Encodes a page, or its first rows if they are long: at least one. */
function encodePage({ rows, ...rest }: Scan<unknown>): string {
  return encodeFirst({ name: 'rows', items: rows, chars: PAGE_CHARS }, (count) =>
    count === rows.length ? rest : { next: rows[count - 1]?.position ?? null, gaps: rest.gaps },
  );
}
