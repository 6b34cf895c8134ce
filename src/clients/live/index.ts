/**
 * Exports `callboard/live`, with which programs in browsers and Node follow a relay: any subscription, the connections
 * of clients, or one command. Needs the package graphql-sse, which the program installs.
 */
import {
  LiveCommandUpdatesDocument,
  LiveConnectionEventsDocument,
  LiveConnectionsDocument,
  type LiveConnectionRowFragment,
  type LiveConnectionsQueryVariables,
} from '../../../generated/live.ts';
import { STAGES, type WireStage } from '../../protocol/codes.ts';
import { parseObject } from '../../protocol/json.ts';
import type { Handle } from '../caller/caller.ts';
import {
  COUNT,
  FUNCTION,
  ID,
  OBJECT,
  SIGNAL,
  STRING,
  USER,
  checkMembers,
  checkValue,
  wrong,
  type MembersOf,
} from '../link/options.ts';
import { sleepUnlessWoken, watchStream } from '../link/page.ts';
import { unreachable, warn } from '../link/advice.ts';
import { STABLE_MS, reconnectMs, takeTokenInTime } from '../link/reconnect.ts';
import { elapsed, systemClock, type Clock } from '../link/platform.ts';
import { LibraryError, badAnswer, type LibraryErrorDetails } from '../link/library-error.ts';
import {
  createOperationRunner,
  isData,
  operationRefusal,
  type TypedOperation,
  type RunOperation,
} from '../link/operation.ts';
import { REQUEST_MEMBERS, retryAfterOf, trimUrl, type RelayRequestOptions } from '../link/request-with-retries.ts';
import { runStream, StreamFailure } from './stream.ts';

export type { TypedOperation } from '../link/operation.ts';
export type { Handle } from '../caller/caller.ts';
export type { TokenSource } from '../link/reconnect.ts';

/** `token`: the token of an administrator, or of a user with the scope `invoke`, who sees only its own data. */
export type LiveOptions = RelayRequestOptions;

/**
 * The state of a stream. `connecting`: it is being opened. `live`: it is open. `waiting`: it broke or could not be
 * opened, and will be opened again after a delay.
 */
export type LiveStatus = 'connecting' | 'live' | 'waiting';

type Following = {
  /** A signal that ends the subscription. The promise then resolves. */
  readonly signal?: AbortSignal;
  readonly onStatus?: (status: LiveStatus) => void;
};

export type SubscriptionHandlers<Data> = Following & {
  readonly onData: (data: Data) => void;
  /**
   * Called when the stream is open again after a break. `since`: when the earlier stream last received an event or was
   * opened, in epoch milliseconds. Events between that time and now may be missing, so state that was built from events
   * must be read again.
   */
  readonly onGap?: (since: number) => void;
};

/** One connection of a client. Its enum values, such as the status `CONNECTED`, are those of GraphQL. */
export type LiveConnection = LiveConnectionRowFragment;

export type ConnectionsView = {
  readonly connections: readonly LiveConnection[];
  /** False if the relay reports that rows are missing, or if there are more than `limit` rows. */
  readonly complete: boolean;
};

export type ConnectionsOptions = Following & {
  /** Only connections of this user. Absent: a user gets its own connections, and an administrator gets all. */
  readonly userId?: string;
  /** Only connections with this status. Absent: all, including those that ended less than a minute ago. */
  readonly status?: NonNullable<LiveConnectionsQueryVariables['status']>;
  /** The most rows to read: 1 to 1000, default 1000. */
  readonly limit?: number;
  /** Receives the connections after they were read, and after each change. */
  readonly onChange: (view: ConnectionsView) => void;
};

/**
 * An update about a command. `progress`: the value of a progress report, and `number` its number; for any other update,
 * undefined and null. `missed`: the least number of updates that were lost since the previous one.
 */
export type CommandProgress = {
  readonly stage: WireStage;
  readonly ended: boolean;
  readonly progress: unknown;
  readonly number: number | null;
  readonly missed: number;
};

/**
 * Follows a relay. Each method opens one event stream, and opens it again if it breaks, after a random delay. Its
 * promise resolves when the relay completes the subscription or the signal is aborted, and rejects with LiveError if
 * the relay refuses the subscription.
 */
export interface Live {
  /** Runs a subscription of the GraphQL schema. The type `Data` is not checked. */
  subscribe<Data = unknown, Variables extends object = object>(
    operation: TypedOperation<Data, Variables>,
    variables: Variables,
    handlers: SubscriptionHandlers<Data>,
  ): Promise<void>;
  /** Reads the connections of clients and keeps them up to date. After a gap, reads them again. */
  connections(options: ConnectionsOptions): Promise<void>;
  /**
   * Follows one command until it ends. The command may be admitted up to a minute after the call, so a program that
   * calls this before it invokes the action misses no progress. After that time the promise rejects with `not_found`.
   */
  command(
    command: Handle,
    options: Following & { readonly onUpdate: (update: CommandProgress) => void },
  ): Promise<void>;
}

/**
 * The error with which the methods of Live reject. `code` is one of callboard's codes (`unauthenticated`, `forbidden`,
 * `not_found`, ...), or `bad_answer` if the answer does not come from a relay.
 */
export class LiveError extends LibraryError {
  constructor(code: string, message: string, details: LibraryErrorDetails = {}) {
    super('LiveError', code, message, details);
  }
}

/** How long a followed command may take to be admitted, in milliseconds. This is the most that the relay allows. */
const ADMITTED_WITHIN_MS = 60_000;

const FOLLOWING = { signal: SIGNAL, onStatus: FUNCTION };
const HANDLE: MembersOf<Handle> = [{ userId: USER, clientId: ID, commandId: ID }, {}];
const CONNECTIONS: MembersOf<ConnectionsOptions> = [
  { onChange: FUNCTION },
  { ...FOLLOWING, userId: USER, status: STRING, limit: COUNT },
];

/**
 * Creates access to one relay. Throws TypeError for an invalid URL or token. Sends no request until a method is called.
 */
export function createLive(options: LiveOptions): Live {
  checkMembers('', options, REQUEST_MEMBERS);
  const query = createOperationRunner(options, (code, message, details) => new LiveError(code, message, details));
  const live: Live = {
    async subscribe(operation, variables, handlers) {
      checkValue('variables', variables, OBJECT);
      checkMembers('handlers.', handlers, [{ onData: FUNCTION }, { ...FOLLOWING, onGap: FUNCTION }]);
      return new Subscription(options, { query: queryOf(operation), variables }, handlers).run();
    },
    async connections(given) {
      checkMembers('options.', given, CONNECTIONS);
      return followConnections(live, query, given);
    },
    async command(command, given) {
      checkValue('command', command, OBJECT);
      const { userId, clientId, commandId } = command;
      const handle = { userId, clientId, commandId };
      checkMembers('command.', handle, HANDLE);
      checkMembers('options.', given, [{ onUpdate: FUNCTION }, FOLLOWING]);
      const { onUpdate, ...following } = given;
      return live.subscribe(
        LiveCommandUpdatesDocument,
        { ...handle, admittedWithinMs: ADMITTED_WITHIN_MS },
        {
          ...following,
          onData: ({ commandUpdates: { stage, outcome, progress, progressNumber, missed } }) =>
            onUpdate({
              stage: STAGES.find((word) => word === stage.toLowerCase()) ?? 'admitted',
              ended: outcome !== null,
              progress: progress ?? undefined,
              number: progressNumber,
              missed,
            }),
        },
      );
    },
  };
  return live;
}

/** Returns the text of an operation. Throws TypeError if the value is not one. */
function queryOf(operation: { toString(): string }): string {
  const isText = typeof operation === 'string' || operation instanceof String;
  if (!isText) throw wrong('operation', operation, 'the text of a GraphQL subscription');
  return operation.toString();
}

// Keeps a list of connections up to date.

const ROWS_MAX = 1000;

async function followConnections(live: Live, query: RunOperation, options: ConnectionsOptions): Promise<void> {
  const { userId, status, limit = ROWS_MAX, onChange, onStatus } = options;
  const stopped = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stopped.signal]) : stopped.signal;
  const rows = new Map<string, LiveConnection>();
  /** The events that have arrived during the current reading; null if no reading is under way. */
  let early: LiveConnection[] | null = null;
  let isStale = false;
  let complete = false;
  let failure: unknown = null;

  const put = (row: LiveConnection): void => {
    if (status !== undefined && row.status !== status) rows.delete(row.id);
    else rows.set(row.id, row);
  };
  const show = (): void => onChange({ connections: [...rows.values()], complete });
  /** Reads all rows. If a reading is already under way, it is followed by one more, however often this is called. */
  const read = async (): Promise<void> => {
    isStale = true;
    if (early) return;
    try {
      while (isStale) {
        isStale = false;
        // Events that arrived before this reading are older than its rows, so they are dropped.
        early = [];
        const page = (await query(LiveConnectionsDocument, { userId, status, first: limit }, signal)).connections;
        rows.clear();
        page.nodes.forEach(put);
        // An event from the time of the reading may be older than the row, but then a newer event follows.
        early.forEach(put);
        complete = page.completeness.complete && page.nextCursor === null;
      }
      early = null;
      show();
    } catch (error) {
      failure = error;
      stopped.abort();
    }
  };
  await live.subscribe(
    LiveConnectionEventsDocument,
    { userId },
    {
      signal,
      onStatus(now) {
        // The rows are read when the stream is open. If they were read before, changes between the reading and the
        // opening would be missed.
        if (now === 'live') void read();
        onStatus?.(now);
      },
      onData({ connectionEvents: { missed, connection } }) {
        if (missed > 0) void read();
        if (early) return void early.push(connection);
        put(connection);
        show();
      },
    },
  );
  if (failure && !options.signal?.aborted) throw failure;
}

// Opens the stream of a subscription, and opens it again if it breaks.

/** The codes of refusals after which the same subscription may succeed later. */
const PASSING: readonly string[] = ['draining', 'store_unavailable', 'node_lost', 'rate_limited', 'internal'];

class Subscription<Data> {
  readonly #options: LiveOptions;
  readonly #operation: { readonly query: string; readonly variables: object };
  readonly #handlers: SubscriptionHandlers<Data>;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  /**
   * When the current or the last stream was opened, and when it last received an event, in epoch milliseconds; null
   * before the first stream.
   */
  #open: { readonly since: number; heardAt: number } | null = null;
  #attempt = 0;
  /** How many times the next address was tried. */
  #moves = 0;
  #token = '';
  /** The last token that the relay refused. It is not used again. */
  #refused: string | null = null;
  #warned = false;

  constructor(
    options: LiveOptions,
    operation: { readonly query: string; readonly variables: object },
    handlers: SubscriptionHandlers<Data>,
  ) {
    this.#options = options;
    this.#operation = operation;
    this.#handlers = handlers;
    this.#signal = handlers.signal ?? new AbortController().signal;
    this.#clock = options.clock ?? systemClock;
  }

  get #url(): string {
    const urls = [this.#options.url].flat();
    return urls[this.#moves % urls.length] ?? '';
  }

  async run(): Promise<void> {
    const { onStatus } = this.#handlers;
    try {
      for (;;) {
        this.#signal.throwIfAborted();
        onStatus?.('connecting');
        const afterMs = await this.#runOnce();
        if (afterMs === null) return;
        onStatus?.('waiting');
        this.#moves++;
        const ms = reconnectMs(this.#attempt++, afterMs, this.#options.random);
        await sleepUnlessWoken(this.#clock, ms, this.#signal);
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
    }
  }

  /**
   * Runs one stream. Returns the shortest delay before the next one, in milliseconds; null if the relay has completed
   * the subscription. Throws if another stream would be useless.
   */
  async #runOnce(): Promise<number | null> {
    const { fetch } = this.#options;
    const url = this.#url;
    let opened = false;
    const own = new AbortController();
    const watch = watchStream(this.#clock, (reason) => own.abort(new StreamFailure(reason, null)));
    try {
      this.#token = await this.#freshToken();
      await runStream({
        ...this.#operation,
        url: `${trimUrl(url)}/graphql/stream`,
        token: this.#token,
        signal: AbortSignal.any([this.#signal, own.signal]),
        fetch,
        onBytes: watch.heard,
        onOpen: () => {
          opened = true;
          this.#opened();
        },
        onResult: (result) => {
          if (this.#open) this.#open.heardAt = this.#clock.now();
          this.#handlers.onData(dataOf<Data>(result));
        },
      });
      return null;
    } catch (error) {
      this.#signal.throwIfAborted();
      if (opened && this.#open && elapsed(this.#clock) - this.#open.since >= STABLE_MS) this.#attempt = 0;
      return this.#pauseAfter(error instanceof StreamFailure ? refusalOf(error) : error);
    } finally {
      watch.stop();
    }
  }

  #opened(): void {
    const { onStatus, onGap } = this.#handlers;
    const earlier = this.#open;
    this.#open = { since: elapsed(this.#clock), heardAt: this.#clock.now() };
    this.#refused = null;
    this.#warned = false;
    onStatus?.('live');
    if (earlier) onGap?.(earlier.heardAt);
  }

  /**
   * Returns the shortest delay before the next stream, in milliseconds. Throws the error if another stream would be
   * useless.
   */
  #pauseAfter(error: unknown): number {
    if (error instanceof StreamFailure || (error instanceof LiveError && PASSING.includes(error.code))) {
      if (!this.#open && !this.#warned && !this.#handlers.onStatus) {
        this.#warned = true;
        warn('subscription', `${unreachable(this.#url)} It tries again.`);
      }
      return error instanceof LiveError ? (error.retryAfterMs ?? 0) : 0;
    }
    const refused = error instanceof LiveError && error.code === 'unauthenticated' && this.#token !== this.#refused;
    if (!refused || typeof this.#options.token === 'string') throw error;
    // Another token may be accepted, so the next stream calls the token function again.
    this.#refused = this.#token;
    return 0;
  }

  async #freshToken(): Promise<string> {
    const token = await takeTokenInTime(this.#options.token, this.#clock).catch((cause: unknown) => {
      throw new StreamFailure('The token function gave no token.', null, cause);
    });
    if (token === this.#refused) throw new LiveError('unauthenticated', 'The relay refused the token.');
    return token;
  }
}

/** Returns the data of an event. Throws LiveError if the event is a refusal. */
function dataOf<Data>(result: Readonly<Record<string, unknown>>): Data {
  const refused = operationRefusal(result);
  if (refused) throw new LiveError(refused.code, refused.message);
  const { data } = result;
  if (isData<Data>(data)) return data;
  throw new LiveError('bad_answer', 'An event of the stream has no data.');
}

/** Returns the relay's refusal of a stream; the failure itself if the relay did not refuse it. */
function refusalOf(failure: StreamFailure): LiveError | StreamFailure {
  const { answer } = failure;
  if (!answer) return failure;
  const refused = operationRefusal(parseObject(answer.text) ?? {});
  if (refused) return new LiveError(refused.code, refused.message, { retryAfterMs: retryAfterOf(answer.headers) });
  // A server error may come from a proxy while the relay restarts, so it is not final.
  return answer.status >= 500 ? failure : new LiveError('bad_answer', badAnswer(answer.status).message);
}
