import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Principal } from '../core/auth/principal.ts';
import type { CallboardError } from '../core/errors.ts';
import type { Maybe } from '../core/maybe.ts';
import type { Reply } from '../graphql/reply.ts';
import type { RequestNotes } from '../graphql/request-notes.ts';

/** The GraphQL ring as the front uses it. */
export interface GraphqlFace {
  /** `body`: the parsed JSON body, undefined when there was none. */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    asked: {
      readonly who: Principal | null;
      readonly body: unknown;
      readonly reply: Reply;
      readonly notes: RequestNotes;
    },
  ): Maybe<void>;
  /** Whether the same object may be given again for the same bytes of a body. */
  knows(body: unknown): boolean;
  /** Answers an error in GraphQL's form. */
  refuse(response: ServerResponse, error: CallboardError): void;
  /** Ends all streams. */
  close(): Maybe<void>;
}

/** The REST ring as the front uses it. */
export interface RestFace {
  /** False when no route has this path: nothing was answered then. */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    asked: {
      readonly who: Principal | null;
      readonly path: string;
      readonly query: string;
      readonly body: unknown;
      readonly reply: Reply;
      readonly notes: RequestNotes;
    },
  ): Maybe<boolean>;
  /** Answers an error as problem+json. */
  refuse(response: ServerResponse, error: CallboardError): void;
  readonly openapi: unknown;
}

/** The gateway as the front uses it. */
export interface GatewayFace {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}
