/** Sends responses of JSON text with the default headers that every response of the relay has. */
import type { CallboardError } from '../core/errors.ts';
import type { EventLoop } from '../core/ports.ts';
import type { HttpResponse, HttpSocket } from './request.ts';

/**
 * How a handler sends its response. A reply of `createReply` adds the default headers; one of `plainReply` does not.
 */
export type HttpReply = {
  /**
   * Sends a complete 200 response, or a refusal if `refuses` would refuse the text. Sends nothing if the client has
   * disconnected. `type`: the content type. `text`: JSON. `nonAscii`: false if the whole text is ASCII, so that its
   * bytes need not be counted. `inserts`: the bytes that `text` refers to (see `insertMark`).
   */
  json(type: string, text: string, nonAscii?: boolean, inserts?: Inserts): void;
  /** Sets the default headers now, for a handler that writes the response without `json`. */
  open(): void;
  /** Whether this many more bytes would exceed what the requester may leave unread. If so, it has sent a refusal. */
  refuses(bytes: number): boolean;
};

/** Returns a reply that adds no default headers and does not limit unread bytes. */
export function plainReply(response: HttpResponse, loop: EventLoop): HttpReply {
  return {
    json: (type, text, nonAscii = true, inserts = []) =>
      sendJson(response, { head: [], type, text, nonAscii, inserts, loop }),
    open() {},
    refuses: () => false,
  };
}

type ReplyOptions = {
  readonly requestId: string;
  readonly socket: HttpSocket;
  readonly response: HttpResponse;
  /** Limits the bytes that a requester leaves unread. `refusal` returns the error to send; null while there is room. */
  readonly unread: {
    refusal(socket: HttpSocket, bytes: number): CallboardError | null;
    wrote(socket: HttpSocket, bytes: number): void;
  };
  readonly loop: EventLoop;
  /** Sends an error, in the format of the API that the request's path belongs to. */
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
 * Creates the reply of one request. `open` sets the default headers one by one; `json` writes them together with the
 * response.
 */
export function createReply({ requestId, socket, response, unread, loop, refuse }: ReplyOptions): HttpReply {
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
      const head = opened ? [] : ['x-request-id', requestId, ...HEAD];
      sendJson(response, { head, type, text, nonAscii, inserts, loop });
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
  /** Headers besides the content type and length: names and values, alternating. */
  readonly head: readonly string[];
  readonly type: string;
  readonly text: string;
  readonly nonAscii: boolean;
  readonly inserts: Inserts;
  readonly loop: EventLoop;
};

/**
 * The size in bytes from which a buffer is cheaper than a string. Node would join a string with the head and encode
 * both again.
 */
const LARGE = 8 * 1024;

/** Sends the head and the text together. */
function sendJson(response: HttpResponse, { head, type, text, nonAscii, inserts, loop }: JsonAnswer): void {
  if (response.destroyed) return;
  const pieces = inserts.length === 0 ? [text] : piecesOf(text, inserts);
  const bytes = pieces.reduce((sum, piece) => sum + lengthOf(piece, nonAscii), 0);
  response.writeHead(200, [...head, 'Content-Type', type, 'content-length', String(bytes)]);
  if (pieces.length === 1) {
    // If the text has as many bytes as characters, the cheaper encoding `latin1` writes the same bytes.
    const encoding = bytes === text.length ? 'latin1' : 'utf8';
    if (text.length > TURN_CHARS) sendInTurns(response, { text, encoding, loop }, 0);
    else if (encoding === 'latin1') response.end(text, encoding);
    else response.end(bytes < LARGE ? text : Buffer.from(text));
  } else {
    // Corked until `end`, so that all pieces are sent in one write.
    response.cork();
    for (const piece of pieces) response.write(piece);
    response.end();
  }
}

/** The most characters that are encoded in one turn of the event loop. */
const TURN_CHARS = 256 * 1024;

type InTurns = Pick<JsonAnswer, 'text' | 'loop'> & { readonly encoding: 'latin1' | 'utf8' };

/** Encodes and sends a large text in pieces, because encoding the whole of it would stop the event loop. */
function sendInTurns(response: HttpResponse, answer: InTurns, from: number): void {
  const { text, encoding, loop } = answer;
  if (response.destroyed) return;
  const next = pieceEnd(text, from + TURN_CHARS);
  const piece = Buffer.from(text.slice(from, next), encoding);
  if (next === text.length) return void response.end(piece);
  response.write(piece);
  loop.atTurnEnd(() => sendInTurns(response, answer, next));
}

/** Returns the index at which a piece ends. A piece never ends between the two halves of a surrogate pair. */
function pieceEnd(text: string, at: number): number {
  if (at >= text.length) return text.length;
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff ? at + 1 : at;
}

function lengthOf(piece: string | Buffer, nonAscii: boolean): number {
  return nonAscii && typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
}

/**
 * ASCII bytes to insert into a text. The text refers to each by its index, written between two characters U+0000, which
 * JSON text never contains.
 */
export type Inserts = readonly Buffer[];

const MARK = '\0';

/** Returns the text that stands for the insert of this index. */
export function insertMark(index: number): string {
  return MARK + String(index) + MARK;
}

/** Returns the pieces of the text in order: strings, and the inserts that it refers to. */
function piecesOf(text: string, inserts: Inserts): readonly (string | Buffer)[] {
  return text.split(MARK).map((piece, i) => (i % 2 === 0 ? piece : (inserts[Number(piece)] ?? '')));
}

/** Returns the text with every reference replaced by its insert. */
export function wholeText(text: string, inserts: Inserts): string {
  if (inserts.length === 0) return text;
  return piecesOf(text, inserts)
    .map((piece) => (typeof piece === 'string' ? piece : piece.toString('latin1')))
    .join('');
}

/** Sends a complete response with this status and content type. */
export function sendText(response: HttpResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text);
}
