/** Handles the requests of GraphQL over server-sent events, in both modes of graphql-sse. */
import { CallboardError } from '../../core/errors.ts';
import { sendError } from './request.ts';
import { createOperationStreams, type OperationStreamsOptions, type StreamRequest } from './sse-operations.ts';
import { createReservations, tokenOf } from './sse-reservations.ts';

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
