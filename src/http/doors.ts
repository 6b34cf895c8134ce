import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { CallboardError } from '../core/errors.ts';
import type { JsonText } from '../core/json.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { HttpReply } from '../web/reply.ts';
import type { RequestNotes } from '../web/request-notes.ts';

/** What the request handler needs of GraphQL. */
export interface GraphqlFace {
  /** Handles one request. `body`: the result of `readRequestBody`; undefined if the request has no body. */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    asked: {
      readonly requester: Principal | null;
      readonly body: unknown;
      readonly reply: HttpReply;
      readonly notes: RequestNotes;
    },
  ): MaybePromise<void>;
  /** Answers an error in the GraphQL response format. */
  refuse(response: ServerResponse, error: CallboardError): void;
  /** Ends all streams. */
  close(): MaybePromise<void>;
}

/** What the request handler needs of REST. */
export interface RestFace {
  /** Handles one request. False: no route has this path, and no response was sent. */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    asked: {
      readonly requester: Principal | null;
      readonly path: string;
      readonly query: string;
      readonly body: JsonText | undefined;
      readonly reply: HttpReply;
      readonly notes: RequestNotes;
    },
  ): MaybePromise<boolean>;
  /** Answers an error as problem+json. */
  refuse(response: ServerResponse, error: CallboardError): void;
  readonly openapi: unknown;
}

/** What the request handler needs of the gateway. */
export interface GatewayFace {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}
