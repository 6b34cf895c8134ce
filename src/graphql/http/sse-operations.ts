/** Opens event streams and runs GraphQL operations on them. */
import type { Principal } from '../../core/auth/principal.ts';
import { fail } from '../../core/errors.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Clock, Crypto, EventLoop } from '../../core/ports.ts';
import { traceContextOf } from '../../core/trace-context.ts';
import type { HttpRequest, HttpResponse } from '../../web/request.ts';
import { createGroups } from '../../web/sse-group.ts';
import { atTime, type SseStreams } from '../../web/sse.ts';
import type { Documents } from '../execute/documents.ts';
import type { Executor } from '../execute/executor.ts';
import { readParams } from './request.ts';
import { type Requested, type OperationOptions, type Running, SseOperation } from './sse-operation.ts';

export type OperationStreamsOptions = {
  readonly documents: Documents;
  readonly executor: Executor;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly crypto: Pick<Crypto, 'randomToken'>;
  /** See `Core.subscribed`. */
  readonly subscribed: () => MaybePromise<void>;
  /** All open event streams of the node. */
  readonly streams: SseStreams;
  /**
   * Whether subscribers that receive the same events share one encoding of them. Each receives the same bytes either
   * way.
   */
  readonly sharing: boolean;
};

/** An authenticated request to one of the stream routes. */
export type OperationRequest = {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  readonly requester: Principal;
  readonly body: unknown;
};

/** Runs an operation on an open stream. The stream also ends when the token that requested the operation expires. */
export type RunOnStream = (requested: Requested, options: Pick<OperationOptions, 'id' | 'onEnd'>) => Running;

/** `waits`: the head of the response is sent when the subscription of its only operation has begun at all nodes. */
type OpenOptions = { readonly onClose: () => void; readonly waits: boolean };

export type OperationStreams = ReturnType<typeof createOperationStreams>;

export function createOperationStreams({
  documents,
  executor,
  clock,
  loop,
  streams,
  subscribed,
  sharing,
}: OperationStreamsOptions) {
  const groups = createGroups<unknown>({ sharing, loop });
  return {
    reserve: streams.reserve,
    /** Opens the response as a stream, which ends when the token of its requester expires. */
    open({ res, requester }: OperationRequest, { onClose, waits }: OpenOptions): RunOnStream {
      const stream = streams.open(res, { onClose, expiresAt: requester.expiresAt, lastChunk: null, waits });
      return (requested, { id, onEnd }) => {
        const other = 'plan' in requested && requested.requester !== requester ? requested.requester.expiresAt : null;
        const cancel = other === null ? null : atTime(clock, other, () => stream.end());
        const ended = (): void => {
          cancel?.();
          onEnd();
        };
        const operation = new SseOperation({ executor, groups, stream, subscribed, id, onEnd: cancel ? ended : onEnd });
        void operation.run(requested);
        return operation;
      };
    },
    /** Reads the operation that a request asks for. Throws if the request itself is invalid. */
    read({ req, body, requester }: OperationRequest): { readonly requested: Requested; readonly operationId: unknown } {
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
