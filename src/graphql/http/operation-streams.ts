/** Opens event streams and runs GraphQL operations on them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { Clock } from '../../core/clock.ts';
import { fail } from '../../core/errors.ts';
import { traceContextOf } from '../../core/trace-context.ts';
import { atTime } from '../../web/at-time.ts';
import { createGroups, type Groups } from '../../web/sse-group.ts';
import type { SseStream } from '../../web/sse-stream.ts';
import type { SseStreams } from '../../web/sse-streams.ts';
import type { Documents } from '../execution/documents.ts';
import type { Executor } from '../execution/executor.ts';
import { readParams } from './request.ts';
import { startOperation, type StreamOperation, type Running } from './sse-operation.ts';

export type OperationStreamsOptions = {
  readonly documents: Documents;
  readonly executor: Executor;
  readonly clock: Clock;
  /** The open streams of the node. */
  readonly streams: SseStreams;
  /** Whether subscribers who receive the same events share a group. The bytes are the same either way. */
  readonly sharing: boolean;
};

/** One authenticated request to a stream route. */
export type StreamRequest = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly requester: Principal;
  readonly body: unknown;
};

export type OperationStreams = Pick<SseStreams, 'reserve'> & {
  /** Opens the response as a stream, which ends when the token that opened it expires. */
  open(request: StreamRequest, onClose: () => void): OpenStream;
  /**
   * Returns the operation that a request asks for, or the errors of its document. Throws when the request itself is
   * invalid.
   */
  read(request: StreamRequest): ReadRequest;
};

export type ReadRequest = {
  readonly requested: StreamOperation | readonly GraphQLError[];
  readonly operationId: unknown;
};

export type OpenStream = {
  readonly stream: SseStream;
  /** Runs an operation on the stream. The stream also ends when the token that requested the operation expires. */
  run(requested: StreamOperation | readonly GraphQLError[], options: { id: string | null; onEnd: () => void }): Running;
};

export function createOperationStreams(options: OperationStreamsOptions): OperationStreams {
  const { documents, executor, clock, streams, sharing } = options;
  const groups = createGroups<unknown>({ sharing });
  return {
    reserve: streams.reserve,
    open({ res, requester }, onClose) {
      const stream = streams.open(res, { onClose, expiresAt: requester.expiresAt, lastChunk: null });
      return {
        stream,
        run: (requested, run) => runOn(requested, { ...run, stream, requester, executor, groups, clock }),
      };
    },
    read: (request) => readOperation(request, { documents, executor }),
  };
}

type RunOptions = Pick<OperationStreamsOptions, 'executor' | 'clock'> & {
  readonly groups: Groups<unknown>;
  readonly stream: SseStream;
  /** The requester that opened the stream. */
  readonly requester: Principal;
  readonly id: string | null;
  readonly onEnd: () => void;
};

function runOn(
  requested: StreamOperation | readonly GraphQLError[],
  { requester, clock, ...options }: RunOptions,
): Running {
  const expiresAt = 'document' in requested && requested.requester !== requester ? requested.requester.expiresAt : null;
  if (expiresAt === null) return startOperation(requested, options);
  const cancel = atTime(clock, expiresAt, () => options.stream.end());
  const onEnd = (): void => {
    cancel();
    options.onEnd();
  };
  return startOperation(requested, { ...options, onEnd });
}

function readOperation(
  { req, body, requester }: StreamRequest,
  { documents, executor }: Pick<OperationStreamsOptions, 'documents' | 'executor'>,
): ReadRequest {
  const params = readParams(req, body);
  const operationId = params.extensions?.['operationId'];
  const document = documents.read(params.query);
  if (!('kind' in document)) return { requested: document.map(executor.mask), operationId };
  const { operationName, variables } = params;
  const requested = { document, operationName, variables, requester, trace: traceContextOf(req.headers) };
  if (req.method === 'GET' && executor.kindOf(requested) === 'mutation')
    fail('method_not_allowed', 'A mutation needs a POST.');
  return { requested, operationId };
}
