import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError } from 'graphql';
import { subjectOf, type Principal } from '../../core/auth/principal.ts';
import type { Clock } from '../../core/clock.ts';
import { fail } from '../../core/errors.ts';
import { SSE_PER_ADMIN, SSE_PER_PRINCIPAL, SSE_PING_MS } from '../../core/limits.ts';
import { atTime } from '../../web/at-time.ts';
import type { Documents } from '../execution/documents.ts';
import type { Executor } from '../execution/executor.ts';
import { readParams } from './request.ts';
import { createExpiries } from '../../web/expiries.ts';
import { createGroups, type Groups } from '../../web/sse-group.ts';
import { startOperation, type Asked, type Running } from './sse-operation.ts';
import { SseStream, type SseStreamHost, type SseStreamOptions } from '../../web/sse-stream.ts';

export type StreamsOptions = {
  readonly documents: Documents;
  readonly executor: Executor;
  readonly clock: Clock;
  /** Whether members share groups, and frames are written directly to sockets. The bytes are the same either way. */
  readonly fastPath: boolean;
};

/** One authenticated request to a stream route. */
export type StreamRequest = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly requester: Principal;
  readonly body: unknown;
};

/**
 * The open event streams of this node: the number per requester, their pings, and their ends when a token expires or
 * the node shuts down.
 */
export type Streams = {
  /**
   * Takes one of the requester's stream places and returns a function that gives it back. Throws `rate_limited` or
   * `draining`.
   */
  reserve(requester: Principal): () => void;
  /** Opens the response as a stream, which ends when the token that opened it expires. */
  open(request: StreamRequest, onClose: () => void): OpenStream;
  /** Opens a response as a stream that is not GraphQL's: the calling code writes and ends it. */
  plain(res: ServerResponse, terms: SseStreamOptions): SseStream;
  /**
   * The operation that a request asks for, or the errors of its document. Throws when the request itself is invalid.
   */
  read(request: StreamRequest): ReadRequest;
  /** Ends every stream without `complete`, so that clients reconnect, and refuses new streams as `draining`. */
  close(): void;
};

export type ReadRequest = { readonly asked: Asked | readonly GraphQLError[]; readonly operationId: unknown };

export type OpenStream = {
  readonly wire: SseStream;
  /** Runs an operation on the stream. The stream also ends when the token that requested the operation expires. */
  run(asked: Asked | readonly GraphQLError[], options: { id: string | null; onEnd: () => void }): Running;
};

export function createStreams({ documents, executor, clock, fastPath }: StreamsOptions): Streams {
  const wires = new Set<SseStream>();
  const expiries = createExpiries(clock);
  const groups = createGroups<unknown>({ sharing: fastPath });
  const held = new Map<string, number>();
  let closing = false;
  const stopPings = clock.every(SSE_PING_MS, () => wires.forEach((wire) => wire.ping()));
  const house: SseStreamHost = {
    clock,
    direct: fastPath,
    onClose(wire) {
      wires.delete(wire);
      expiries.cancel(wire);
    },
  };
  const plain = (res: ServerResponse, terms: SseStreamOptions): SseStream => {
    const wire = new SseStream(res, { host: house, options: terms });
    wires.add(wire);
    expiries.add(wire);
    return wire;
  };
  return {
    reserve(requester) {
      if (closing)
        fail('draining', 'This node is shutting down; open the stream on another node.', { retryAfterMs: 1000 });
      return takePlace(held, requester);
    },
    open({ res, requester }, onClose) {
      const wire = plain(res, { onClose, expiresAt: requester.expiresAt, lastChunk: null });
      return { wire, run: (asked, options) => run(asked, { ...options, wire, requester, executor, groups, clock }) };
    },
    plain,
    read: (request) => readOperation(request, { documents, executor }),
    close() {
      closing = true;
      stopPings();
      for (const wire of [...wires]) {
        if (wire.options.lastChunk) wire.write(wire.options.lastChunk);
        wire.end();
      }
    },
  };
}

type RunOptions = Pick<StreamsOptions, 'executor' | 'clock'> & {
  readonly groups: Groups<unknown>;
  readonly wire: SseStream;
  /** The requester that opened the stream. */
  readonly requester: Principal;
  readonly id: string | null;
  readonly onEnd: () => void;
};

function run(asked: Asked | readonly GraphQLError[], { requester, clock, ...options }: RunOptions): Running {
  const expiresAt = 'document' in asked && asked.requester !== requester ? asked.requester.expiresAt : null;
  if (expiresAt === null) return startOperation(asked, options);
  const cancel = atTime(clock, expiresAt, () => options.wire.end());
  const onEnd = (): void => {
    cancel();
    options.onEnd();
  };
  return startOperation(asked, { ...options, onEnd });
}

function readOperation(
  { req, body, requester }: StreamRequest,
  { documents, executor }: Pick<StreamsOptions, 'documents' | 'executor'>,
): ReadRequest {
  const params = readParams(req, body);
  const operationId = params.extensions?.['operationId'];
  const document = documents.read(params.query);
  if (!('kind' in document)) return { asked: document.map(executor.mask), operationId };
  const asked = { document, operationName: params.operationName, variables: params.variables, requester };
  if (req.method === 'GET' && executor.kindOf(asked) === 'mutation')
    fail('method_not_allowed', 'A mutation needs a POST.');
  return { asked, operationId };
}

function takePlace(held: Map<string, number>, requester: Principal): () => void {
  const subject = subjectOf(requester);
  const most = requester.kind === 'admin' ? SSE_PER_ADMIN : SSE_PER_PRINCIPAL;
  const now = held.get(subject) ?? 0;
  if (now >= most) fail('rate_limited', `At most ${most} event streams at once.`, { retryAfterMs: 5000 });
  held.set(subject, now + 1);
  let given = false;
  return () => {
    if (given) return;
    given = true;
    const left = (held.get(subject) ?? 1) - 1;
    if (left > 0) held.set(subject, left);
    else held.delete(subject);
  };
}
