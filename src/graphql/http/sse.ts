/** Handles the requests of GraphQL over server-sent events, in both modes of graphql-sse. */
import { CallboardError } from '../../core/errors.ts';
import { sendError } from './request.ts';
import { createOperationStreams, type OperationStreamsOptions, type OperationRequest } from './sse-operations.ts';
import { createReservations, tokenOf } from './sse-reservations.ts';

export type SseHandler = ReturnType<typeof createSseHandler>;

/**
 * Creates the handler of graphql-sse, whose protocol defines both modes:
 * https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md
 */
export function createSseHandler(options: OperationStreamsOptions) {
  const streams = createOperationStreams(options);
  const reservations = createReservations(streams, options);
  const openDistinct = (request: OperationRequest): void => {
    const { requested } = streams.read(request);
    const run = streams.open(request, { onClose: streams.reserve(request.requester), waits: true });
    run(requested, { id: null, onEnd: nothing });
  };
  const distinct = (request: OperationRequest): void => answering(request, openDistinct);
  return {
    /** Runs one operation on a stream that carries only this operation. */
    distinct,
    /**
     * Serves the stream route in both modes. A GET or POST without a stream token is answered by `distinct`. Every
     * other request concerns a reservation or a stream that carries several operations.
     */
    stream: (request: OperationRequest): void =>
      isDistinct(request) ? distinct(request) : answering(request, reservations.handle),
    /** Drops the reservations. It does not end open streams; the owner of `streams` does. */
    close: reservations.close,
  };
}

/** An `onEnd` that does nothing. One function serves all streams, so that no stream allocates its own. */
function nothing(): void {}

function isDistinct({ req }: OperationRequest): boolean {
  return (req.method === 'GET' || req.method === 'POST') && tokenOf(req) === null;
}

function answering(request: OperationRequest, answer: (request: OperationRequest) => void): void {
  try {
    answer(request);
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    sendError(request.res, error);
  }
}
