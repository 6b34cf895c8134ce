/**
 * Handles graphql-sse's single connection mode, in which a client reserves a stream that carries several operations.
 */
import { subjectOf, type Principal } from '../../core/auth/principal.ts';
import { fail, invalid } from '../../core/errors.ts';
import { ID_MAX_CHARS, SSE_OPERATIONS, SSE_RESERVATION_MS } from '../../core/limits.ts';
import type { Cancel } from '../../core/ports.ts';
import type { HttpRequest } from '../../web/request.ts';
import { acceptedTypes, searchOf } from './request.ts';
import type { Running } from './sse-operation.ts';
import type { RunOnStream, OperationStreams, OperationStreamsOptions, OperationRequest } from './sse-operations.ts';

/**
 * The reservation of a stream. Its token is not a bearer token: only the requester that made the reservation may use
 * it.
 */
type Reservation = {
  readonly owner: string;
  readonly operations: Map<string, Running | null>;
  /** Operations that arrived before the stream was opened, by their id. */
  readonly waiting: Map<string, (run: RunOnStream) => void>;
  /** Runs an operation on the stream; null while the stream is not open. */
  run: RunOnStream | null;
  readonly drop: () => void;
  readonly cancelExpiry: Cancel;
};

export function createReservations(
  streams: OperationStreams,
  { clock, crypto }: Pick<OperationStreamsOptions, 'clock' | 'crypto'>,
) {
  const known = new Map<string, Reservation>();

  const reserve = ({ res, requester }: OperationRequest): void => {
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
    /** Answers a request in single connection mode. Throws a CallboardError if it refuses the request. */
    handle(request: OperationRequest): void {
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
 * Returns the reservation if it belongs to the requester. Otherwise throws the same error as for a reservation that
 * does not exist.
 */
function ownOf(found: Reservation | undefined, requester: Principal): Reservation {
  if (found && found.owner === subjectOf(requester)) return found;
  return fail(
    'not_found',
    'This node has no such stream of yours. A reservation exists on one node only: behind a load balancer it needs sticky routing.',
  );
}

/** Returns the token of a reservation: from the header, or from the URL, because an EventSource cannot send headers. */
export function tokenOf(req: HttpRequest): string | null {
  const header = req.headers['x-graphql-event-stream-token'];
  return typeof header === 'string' ? header : searchOf(req).get('token');
}

function openStream(reservation: Reservation, request: OperationRequest, streams: OperationStreams): void {
  if (reservation.run) conflict('The stream is already open.');
  reservation.cancelExpiry();
  const run = streams.open(request, { onClose: reservation.drop, waits: false });
  reservation.run = run;
  for (const start of reservation.waiting.values()) start(run);
  reservation.waiting.clear();
}

function addOperation(
  { operations, waiting, run }: Reservation,
  request: OperationRequest,
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

function stopOperation({ operations, waiting }: Reservation, { req, res }: OperationRequest): void {
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
