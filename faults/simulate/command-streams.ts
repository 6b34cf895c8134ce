/**
 * Streams of what happens to the commands of each user, by the library of live data. Judges that each says what its
 * caller was told, of commands of this user alone, and nothing twice over one connection.
 */
import { createLive, LiveError } from '../../src/clients/live/index.ts';
import { between } from '../lib/random.ts';
import { userToken } from './entry.ts';
import type { HttpNetwork } from './http-network.ts';
import { fetchOver } from './http-requests.ts';
import { outcomeOf, type Call } from './ledger.ts';
import { outsideClock } from './site-viewer.ts';

const EVENTS = `subscription Events {
  commandEvents { stage missed record { userId commandId outcome code } }
}`;
type Row = {
  readonly userId: string;
  readonly commandId: string;
  readonly outcome: string | null;
  readonly code: string | null;
};
type Data = {
  readonly commandEvents: { readonly stage: string; readonly missed: number; readonly record: Row };
};
/** The stages that a command has once. It is dispatched again if its client says that it never arrived. */
const ONCE: ReadonlySet<string> = new Set(['ADMITTED', 'ENDED']);

type Parts = {
  readonly network: HttpNetwork;
  readonly callOf: (commandId: string) => Call | undefined;
  /** Receives what was wrong about a command. */
  readonly report: (call: Call, fault: string) => void;
  /** Receives any other fault. */
  readonly broken: (fault: string) => void;
  readonly count: (what: string) => void;
};

export class CommandStream {
  readonly userId: string;
  readonly #parts: Parts;
  /** How commands ended, as this stream said. */
  readonly #ended = new Map<string, string>();
  /** What came over the present connection. */
  #came = new Set<string>();
  #isLive = false;

  constructor(userId: string, parts: Parts) {
    this.userId = userId;
    this.#parts = parts;
    const { network } = parts;
    const { random } = network.simulation;
    const live = createLive({
      ...{ url: 'http://relays', random, fetch: fetchOver(network), clock: outsideClock(network) },
      token: () => userToken(network.simulation, userId, ['invoke'], between(random, 20_000, 90_000)),
    });
    const handlers = {
      onStatus: (status: string): void => {
        this.#isLive = status === 'live';
        this.#came = new Set();
      },
      onData: (data: Data): void => this.#take(data),
    };
    live.subscribe<Data>(EVENTS, {}, handlers).then(
      () => parts.broken(`the stream of ${userId} is complete`),
      (error: unknown) => {
        const isCode = error instanceof LiveError;
        parts.broken(`the stream of ${userId} has ended: ${isCode ? error.code : String(error)}`);
      },
    );
  }

  /** Whether events from now on are received. */
  get isLive(): boolean {
    return this.#isLive;
  }

  /** Judges what it said of ended commands by what their callers were told. */
  judge(): void {
    const { callOf, report, count } = this.#parts;
    for (const [commandId, outcome] of this.#ended) {
      const call = callOf(commandId);
      const [told] = call?.told ?? [];
      count('stream: an end');
      if (call && told && outcomeOf(told) !== outcome)
        report(call, `was told as ${outcomeOf(told)}, and streamed as ${outcome}`);
    }
  }

  #take({ commandEvents: { stage, record } }: Data): void {
    const { callOf, report, broken } = this.#parts;
    const { userId, commandId, outcome, code } = record;
    const call = callOf(commandId);
    if (!call || userId !== this.userId) return broken(`the stream of ${this.userId} has ${commandId} of ${userId}`);
    const what = `${commandId} ${stage}`;
    if (ONCE.has(stage) && this.#came.has(what)) report(call, `is streamed twice as ${stage}`);
    this.#came.add(what);
    if (stage !== 'ENDED') return;
    if (outcome === null) return report(call, 'is streamed as ended, without an outcome');
    this.#ended.set(commandId, code === 'store_lost' ? code : outcome.toLowerCase());
  }
}
