/** Sends the responses of handlers, with the headers that every response has. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { CallboardError } from '../core/errors.ts';
import { piecesOf, type Inserts } from './json-text.ts';

/**
 * How a handler sends its response. The headers of the HTTP layer are part of every response, whichever method sends
 * it.
 */
export type HttpReply = {
  /**
   * Sends a complete response with status 200, unless the client has disconnected. `type`: the content type. `text`:
   * JSON. `nonAscii` false: every character is ASCII, so the length in bytes need not be counted. `inserts`: the bytes
   * that the text refers to.
   */
  json(type: string, text: string, nonAscii?: boolean, inserts?: Inserts): void;
  /** Prepares the response for a handler that writes it without `json`. */
  open(): void;
  /**
   * Sends a refusal and returns true if the requester has left too much unread for a response of this many bytes.
   * Otherwise returns false.
   */
  refuses(bytes: number): boolean;
};

/** Returns the reply of a response without headers of the HTTP layer. */
export function plainReply(response: ServerResponse): HttpReply {
  return {
    json: (type, text, nonAscii = true, inserts = []) =>
      sendJson(response, { head: [], type, text, nonAscii, inserts }),
    open() {},
    refuses: () => false,
  };
}

export type ReplyParts = {
  readonly requestId: string;
  readonly socket: Socket;
  readonly response: ServerResponse;
  /** Bounds the bytes that a requester leaves unread. `refusal` returns null while there is room for more. */
  readonly unread: {
    refusal(socket: Socket, bytes: number): CallboardError | null;
    wrote(socket: Socket, bytes: number): void;
  };
  /** Answers with an error, in the format that belongs to the request's path. */
  readonly refuse: (error: CallboardError) => void;
};

/** The default headers of every response. Handlers may override them. */
const HEADERS = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cache-control', 'no-store'],
  ['vary', 'origin'],
] as const;
const HEAD: readonly string[] = HEADERS.flat();

/**
 * Creates the reply of a response with the default headers: `open` sets them one by one, `json` writes them together
 * with the response.
 */
export function createReply({ requestId, socket, response, unread, refuse }: ReplyParts): HttpReply {
  let opened = false;
  const reply: HttpReply = {
    open() {
      if (opened || response.headersSent) return;
      opened = true;
      response.setHeader('x-request-id', requestId);
      for (const [name, value] of HEADERS) response.setHeader(name, value);
    },
    json(type, text, nonAscii = true, inserts = []) {
      const known = inserts.reduce((sum, { length }) => sum + length, text.length);
      if (reply.refuses(known)) return;
      sendJson(response, { head: opened ? [] : ['x-request-id', requestId, ...HEAD], type, text, nonAscii, inserts });
      unread.wrote(socket, known);
    },
    refuses(bytes) {
      const error = response.destroyed ? null : unread.refusal(socket, bytes);
      if (error === null) return false;
      reply.open();
      refuse(error);
      return true;
    },
  };
  return reply;
}

type JsonAnswer = {
  /** The further headers: names and values, alternating. */
  readonly head: readonly string[];
  readonly type: string;
  readonly text: string;
  readonly nonAscii: boolean;
  readonly inserts: Inserts;
};

/**
 * From this size in bytes on, a buffer costs Node less work than a string. Node joins a string with the response's head
 * and encodes both again.
 */
const LARGE = 8 * 1024;

/** Sends the head and the text together. */
function sendJson(response: ServerResponse, { head, type, text, nonAscii, inserts }: JsonAnswer): void {
  if (response.destroyed) return;
  const pieces = inserts.length === 0 ? [text] : piecesOf(text, inserts);
  const bytes = pieces.reduce((sum, piece) => sum + lengthOf(piece, nonAscii), 0);
  response.writeHead(200, [...head, 'Content-Type', type, 'content-length', String(bytes)]);
  if (pieces.length === 1) endWith(response, text, bytes);
  else {
    // The response is corked, so that the pieces leave in one write.
    response.cork();
    for (const piece of pieces) response.write(piece);
    response.end();
  }
}

function lengthOf(piece: string | Buffer, nonAscii: boolean): number {
  return nonAscii && typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
}

function endWith(response: ServerResponse, text: string, bytes: number): void {
  // When each character is one byte, nothing needs to be encoded.
  if (bytes === text.length) response.end(text, 'latin1');
  else response.end(bytes < LARGE ? text : Buffer.from(text));
}
