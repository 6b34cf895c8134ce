/** Handles the requests of GraphQL over server-sent events, in both modes of graphql-sse. */
import { CallboardError } from '../../core/errors.ts';
import { sendError } from './request.ts';
import { createReservations, tokenOf } from './sse-reservations.ts';
import {
  createOperationStreams,
  type OperationStreams,
  type OperationStreamsOptions,
  type StreamRequest,
} from './operation-streams.ts';

export type SseHandler = {
  /** Runs one operation with a response of its own. */
  distinct(request: StreamRequest): void;
  /**
   * Serves the stream route in both modes. A GET or POST without a stream token is handled as `distinct`. Every other
   * request is about a reservation or a stream that carries several operations.
   */
  stream(request: StreamRequest): void;
  /** Drops the reservations. The owner of the streams ends those that are open. */
  close(): void;
};

/**
 * Creates the handler of graphql-sse in both modes: https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md
 */
export function createSseHandler(options: OperationStreamsOptions): SseHandler {
  const streams = createOperationStreams(options);
  const reservations = createReservations({ streams, clock: options.clock });
  const distinct = (request: StreamRequest): void => openDistinct(request, streams);
  return {
    distinct: (request) => answering(request, distinct),
    stream: (request) => answering(request, isDistinct(request) ? distinct : reservations.handle),
    close: () => reservations.close(),
  };
}

function isDistinct({ req }: StreamRequest): boolean {
  return (req.method === 'GET' || req.method === 'POST') && tokenOf(req) === null;
}

function openDistinct(request: StreamRequest, streams: OperationStreams): void {
  const { requested } = streams.read(request);
  streams.open(request, streams.reserve(request.requester)).run(requested, { id: null, onEnd: nothing });
}

function nothing(): void {}

function answering(request: StreamRequest, answer: (request: StreamRequest) => void): void {
  try {
    answer(request);
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    sendError(request.res, error);
  }
}
