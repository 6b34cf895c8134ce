/** Handles the requests of GraphQL over server-sent events, in both modes of graphql-sse. */
import type { ExecutionResult, GraphQLError } from 'graphql';
import { subjectOf, type Principal } from '../../core/auth/principal.ts';
import { CallboardError, fail, invalid } from '../../core/errors.ts';
import { inOneLine, writeJson } from '../../core/json.ts';
import { ID_MAX_CHARS, SSE_OPERATIONS, SSE_RESERVATION_MS } from '../../core/limits.ts';
import type { Cancel, Clock, Crypto, EventLoop } from '../../core/ports.ts';
import { traceContextOf } from '../../core/trace-context.ts';
import { createGroups, type GroupMember, type Groups, type Joining } from '../../web/sse-group.ts';
import { atTime, type Envelope, type SseStream, type SseStreams, type StreamMember } from '../../web/sse.ts';
import type { Documents } from '../execute/documents.ts';
import type { Executor, Operation } from '../execute/executor.ts';
import type { ResultFrames, Results } from '../execute/subscriptions.ts';
import { acceptedTypes, readParams, searchOf, sendError } from './request.ts';
import type { HttpRequest, HttpResponse } from '../../web/request.ts';

export type SseHandler = ReturnType<typeof createSseHandler>;

/**
 * Creates the handler of graphql-sse in both modes: https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md
 */
export function createSseHandler(options: OperationStreamsOptions) {
  const streams = createOperationStreams(options);
  const reservations = createReservations(streams, options);
  const openDistinct = (request: StreamRequest): void => {
    const { requested } = streams.read(request);
    streams.open(request, streams.reserve(request.requester))(requested, { id: null, onEnd: nothing });
  };
  const distinct = (request: StreamRequest): void => answering(request, openDistinct);
  return {
    /** Runs one operation with a response of its own. */
    distinct,
    /**
     * Serves the stream route in both modes. A GET or POST without a stream token is handled as `distinct`. Every other
     * request is about a reservation or a stream that carries several operations.
     */
    stream: (request: StreamRequest): void =>
      isDistinct(request) ? distinct(request) : answering(request, reservations.handle),
    /** Drops the reservations. Streams that are open are ended by the owner of `streams`. */
    close: reservations.close,
  };
}

/** Does nothing. Shared by all streams, so that none allocates a function of its own. */
function nothing(): void {}

function isDistinct({ req }: StreamRequest): boolean {
  return (req.method === 'GET' || req.method === 'POST') && tokenOf(req) === null;
}

function answering(request: StreamRequest, answer: (request: StreamRequest) => void): void {
  try {
    answer(request);
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    sendError(request.res, error);
  }
}

// Runs one operation on an event stream. Results must not be produced faster than the reader reads them.

/** One operation that runs on a stream. It ends by itself when the stream ends. */
type Running = {
  /** Ends the operation with a `complete` frame. */
  complete(): void;
};

type OperationOptions = {
  readonly executor: Executor;
  readonly groups: Groups<unknown>;
  readonly stream: SseStream;
  /** The operation id on a stream that carries several; null on a stream of its own. */
  readonly id: string | null;
  /**
   * Called once, when the operation has ended for any reason, but never before `RunOnStream` has returned. If the
   * operation has a stream of its own, that stream ends first.
   */
  readonly onEnd: () => void;
};

type StreamOperation = Omit<Operation, 'signal' | 'requester'> & { readonly requester: Principal };
/** The operation that a request asks for, or the errors of its document. */
type Requested = StreamOperation | readonly GraphQLError[];

/**
 * An operation that writes to its stream itself. If its subscription is shared, a group writes to the stream instead.
 */
class SseOperation implements StreamMember, Running {
  readonly #options: OperationOptions;
  readonly #hangUp = new AbortController();
  #results: Results | null = null;
  #member: GroupMember<unknown> | null = null;
  #ended = false;

  constructor(options: OperationOptions) {
    this.#options = options;
    options.stream.addMember(this);
  }

  /**
   * Runs the operation, or sends the errors of its document. Results and errors are sent as `next` frames, followed by
   * one `complete`. Results are produced no faster than the reader reads them.
   */
  async run(requested: Requested): Promise<void> {
    try {
      if ('plan' in requested) await this.#answer(requested);
      else {
        this.#show({ errors: requested });
        // `onEnd` is called later, after the caller has registered the operation.
        await null;
      }
    } catch (error) {
      this.#show({ errors: [this.#options.executor.mask(error)] });
    }
    if (!this.#member) this.#end(true);
  }

  complete(): void {
    if (this.#member) this.#member.complete();
    else this.#end(true);
  }

  /** Does nothing, because `#pump` awaits `ready`. */
  drained(): void {}

  gone(): void {
    this.#end(false);
  }

  async #answer(requested: StreamOperation): Promise<void> {
    const { executor } = this.#options;
    const operation = { ...requested, signal: this.#hangUp.signal };
    if (operation.plan?.operation !== 'subscription') return this.#show(await executor.execute(operation));
    const answer = await executor.subscribe(operation, SSE_FRAMES);
    if ('shared' in answer) return this.#join(answer);
    return 'next' in answer ? this.#pump(answer) : this.#show(answer);
  }

  #join(joining: Joining<unknown>): void {
    const { groups, stream, id, onEnd } = this.#options;
    if (this.#ended) return joining.shared.lifetime.close();
    stream.removeMember(this);
    this.#member = groups.join(joining, { stream, id, onEnd });
  }

  async #pump(source: Results): Promise<void> {
    const { stream } = this.#options;
    this.#results = source;
    while (!this.#ended) {
      await stream.ready();
      const { done, value } = await source.next();
      if (done) return;
      this.#show(value);
    }
    source.return();
  }

  #show(result: ExecutionResult): void {
    if (!this.#ended) this.#options.stream.send(nextFrame(this.#options.id, result));
  }

  #end(tell: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    const { stream, id, onEnd } = this.#options;
    if (tell) stream.send(completeFrame(id));
    stream.removeMember(this);
    this.#hangUp.abort();
    this.#results?.return();
    if (id === null) stream.end();
    onEnd();
  }
}

// Opens event streams and runs GraphQL operations on them.

type OperationStreamsOptions = {
  readonly documents: Documents;
  readonly executor: Executor;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly crypto: Pick<Crypto, 'randomToken'>;
  /** The open streams of the node. */
  readonly streams: SseStreams;
  /** Whether subscribers who receive the same events share a group. The bytes are the same either way. */
  readonly sharing: boolean;
};

/** One authenticated request to a stream route. */
type StreamRequest = {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  readonly requester: Principal;
  readonly body: unknown;
};

/** Runs an operation on an open stream. The stream also ends when the token that requested the operation expires. */
type RunOnStream = (requested: Requested, options: Pick<OperationOptions, 'id' | 'onEnd'>) => Running;

type OperationStreams = ReturnType<typeof createOperationStreams>;

function createOperationStreams({ documents, executor, clock, loop, streams, sharing }: OperationStreamsOptions) {
  const groups = createGroups<unknown>({ sharing, loop });
  return {
    reserve: streams.reserve,
    /** Opens the response as a stream, which ends when the token that opened it expires. */
    open({ res, requester }: StreamRequest, onClose: () => void): RunOnStream {
      const stream = streams.open(res, { onClose, expiresAt: requester.expiresAt, lastChunk: null });
      return (requested, { id, onEnd }) => {
        const other = 'plan' in requested && requested.requester !== requester ? requested.requester.expiresAt : null;
        const cancel = other === null ? null : atTime(clock, other, () => stream.end());
        const ended = (): void => {
          cancel?.();
          onEnd();
        };
        const operation = new SseOperation({ executor, groups, stream, id, onEnd: cancel ? ended : onEnd });
        void operation.run(requested);
        return operation;
      };
    },
    /** Reads the operation that a request asks for. Throws when the request itself is invalid. */
    read({ req, body, requester }: StreamRequest): { readonly requested: Requested; readonly operationId: unknown } {
      const params = readParams(req, body);
      const operationId = params.extensions?.['operationId'];
      const document = documents.read(params.query);
      if (!('kind' in document)) return { requested: document.map(executor.mask), operationId };
      const plan = executor.planOf(document, params.operationName);
      if (req.method === 'GET' && plan?.operation === 'mutation')
        fail('method_not_allowed', 'A mutation needs a POST.');
      const { variables } = params;
      return { requested: { plan, variables, requester, trace: traceContextOf(req.headers) }, operationId };
    },
  };
}

// Frames of GraphQL over server-sent events: `next` and `complete`, as graphql-sse defines them.

const OWN: Envelope = { head: 'event: next\ndata: ', tail: '\n\n' };

/**
 * Returns the text around a result in its frame. `id` names the operation on a stream that carries several; null when
 * the operation has a stream of its own.
 */
function envelopeOf(id: string | null): Envelope {
  return id === null ? OWN : { head: `event: next\ndata: {"id":${JSON.stringify(id)},"payload":`, tail: '}\n\n' };
}

function nextFrame(id: string | null, result: ExecutionResult): string {
  const { head, tail } = envelopeOf(id);
  return head + resultText(result) + tail;
}

function completeFrame(id: string | null): string {
  return `event: complete\ndata:${id === null ? '' : ` ${JSON.stringify({ id })}`}\n\n`;
}

/** Writes a result as JSON text without line breaks. */
function resultText(result: ExecutionResult): string {
  const shown = result.errors ? { ...result, errors: result.errors.map(showError) } : result;
  return inOneLine(writeJson(shown) ?? 'null');
}

/** Converts an error for the requester. `extensions.http` is meant for the HTTP handler and is not shown. */
function showError(error: GraphQLError): object {
  const { extensions = {}, ...shown } = error.toJSON();
  const { http: _http, ...rest } = extensions;
  return Object.keys(rest).length > 0 ? { ...shown, extensions: rest } : shown;
}

/** The frames of subscriptions that many requesters share. */
const SSE_FRAMES: ResultFrames = {
  result: resultText,
  written: (data) => inOneLine(`{"data":${data}}`),
  envelope: envelopeOf,
  last: (id, result) => (result === null ? '' : nextFrame(id, result)) + completeFrame(id),
};

// Handles the single connection mode of graphql-sse: reserved streams that carry several operations.

/**
 * A reservation of one stream that carries several operations. Its token is not a bearer token: only the requester that
 * reserved it may use it.
 */
type Reservation = {
  readonly owner: string;
  readonly operations: Map<string, Running | null>;
  /** The operations that arrived before the stream was opened. */
  readonly waiting: Map<string, (run: RunOnStream) => void>;
  /** Runs operations on the stream; null while it is not open. */
  run: RunOnStream | null;
  readonly drop: () => void;
  readonly cancelExpiry: Cancel;
};

function createReservations(
  streams: OperationStreams,
  { clock, crypto }: Pick<OperationStreamsOptions, 'clock' | 'crypto'>,
) {
  const known = new Map<string, Reservation>();

  const reserve = ({ res, requester }: StreamRequest): void => {
    const release = streams.reserve(requester);
    const token = crypto.randomToken();
    const drop = (): void => {
      known.delete(token);
      release();
    };
    const cancelExpiry = clock.after(SSE_RESERVATION_MS, drop);
    const owner = subjectOf(requester);
    known.set(token, { owner, operations: new Map(), waiting: new Map(), run: null, drop, cancelExpiry });
    res.writeHead(201, { 'content-type': 'text/plain; charset=utf-8', 'content-length': token.length });
    res.end(token);
  };
  const find = (token: string | null, requester: Principal): Reservation =>
    ownOf(token === null ? undefined : known.get(token), requester);
  return {
    /** Answers a request of single connection mode. Throws a CallboardError for every request that it refuses. */
    handle(request: StreamRequest): void {
      const { req, requester } = request;
      const token = tokenOf(req);
      if (req.method === 'PUT') return reserve(request);
      if (req.method === 'GET' && acceptedTypes(req).includes('text/event-stream')) {
        return openStream(find(token, requester), request, streams);
      }
      if (req.method === 'DELETE') return stopOperation(find(token, requester), request);
      if (req.method === 'GET' || req.method === 'POST') {
        return addOperation(find(token, requester), request, streams);
      }
      request.res.setHeader('allow', 'GET, POST, PUT, DELETE');
      return fail('method_not_allowed', 'A stream takes GET, POST, PUT and DELETE.');
    },
    close(): void {
      for (const { cancelExpiry, drop } of known.values()) {
        cancelExpiry();
        drop();
      }
    },
  };
}

/**
 * Returns the reservation if it is the requester's own. A reservation of another requester is answered like one that
 * does not exist.
 */
function ownOf(found: Reservation | undefined, requester: Principal): Reservation {
  if (found && found.owner === subjectOf(requester)) return found;
  return fail(
    'not_found',
    'This node has no such stream of yours. A reservation exists on one node only: behind a load balancer it needs sticky routing.',
  );
}

/** Returns the token of a reservation, from the header or, because EventSource cannot send headers, from the URL. */
function tokenOf(req: HttpRequest): string | null {
  const header = req.headers['x-graphql-event-stream-token'];
  return typeof header === 'string' ? header : searchOf(req).get('token');
}

function openStream(reservation: Reservation, request: StreamRequest, streams: OperationStreams): void {
  if (reservation.run) conflict('The stream is already open.');
  reservation.cancelExpiry();
  const run = streams.open(request, reservation.drop);
  reservation.run = run;
  for (const start of reservation.waiting.values()) start(run);
  reservation.waiting.clear();
}

function addOperation(
  { operations, waiting, run }: Reservation,
  request: StreamRequest,
  streams: OperationStreams,
): void {
  const { requested, ...named } = streams.read(request);
  const id = operationId(named.operationId);
  if (operations.has(id)) conflict('An operation with this id is running.');
  if (operations.size >= SSE_OPERATIONS) {
    fail('rate_limited', `At most ${SSE_OPERATIONS} operations on a stream.`, { retryAfterMs: 5000 });
  }
  operations.set(id, null);
  const start = (on: RunOnStream): void =>
    void operations.set(id, on(requested, { id, onEnd: () => void operations.delete(id) }));
  request.res.writeHead(202).end();
  if (run) start(run);
  else waiting.set(id, start);
}

function stopOperation({ operations, waiting }: Reservation, { req, res }: StreamRequest): void {
  const id = operationId(searchOf(req).get('operationId'));
  waiting.delete(id);
  operations.get(id)?.complete();
  operations.delete(id);
  res.writeHead(200).end();
}

function operationId(value: unknown): string {
  if (typeof value !== 'string' || value === '') return invalid('operationId', 'expected a text');
  if (value.length > ID_MAX_CHARS) return invalid('operationId', `expected at most ${ID_MAX_CHARS} characters`);
  return value;
}

function conflict(message: string): never {
  return fail('invalid_argument', message, { status: 409 });
}
