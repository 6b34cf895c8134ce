/** Handles the requests of GraphQL over server-sent events, in both modes of graphql-sse. */
import { CallboardError } from '../../core/errors.ts';
import { sendError } from './request.ts';
import { createOperationStreams, type OperationStreamsOptions, type OperationRequest } from './sse-operations.ts';
import { createReservations, tokenOf } from './sse-reservations.ts';

export type SseHandler = ReturnType<typeof createSseHandler>;

/**
 * Creates the handler of graphql-sse in both modes: https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md
 */
export function createSseHandler(options: OperationStreamsOptions) {
  const streams = createOperationStreams(options);
  const reservations = createReservations(streams, options);
  const openDistinct = (request: OperationRequest): void => {
    const { requested } = streams.read(request);
    streams.open(request, streams.reserve(request.requester))(requested, { id: null, onEnd: nothing });
  };
  const distinct = (request: OperationRequest): void => answering(request, openDistinct);
  return {
    /** Runs one operation with a response of its own. */
    distinct,
    /**
     * Serves the stream route in both modes. A GET or POST without a stream token is handled as `distinct`. Every other
     * request is about a reservation or a stream that carries several operations.
     */
    stream: (request: OperationRequest): void =>
      isDistinct(request) ? distinct(request) : answering(request, reservations.handle),
    /** Drops the reservations. Streams that are open are ended by the owner of `streams`. */
    close: reservations.close,
  };
}

/** Does nothing. Shared by all streams, so that none allocates a function of its own. */
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
