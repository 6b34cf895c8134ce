/**
 * What handlers share about a request and its response: whether its requester has hung up, its count in the
 * shares, the notes for the access log, and how the response is sent: JSON text, with the
 * headers that every response has, and files, compressed where it pays.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { CancelReceipt, Invocation } from '../core/core.ts';
import type { CallboardError } from '../core/errors.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { EventLoop } from '../core/ports.ts';
import type { Holdings } from '../core/shares/shares.ts';
import type { TraceContext } from '../core/trace-context.ts';
import type { HttpRequest, HttpResponse, HttpSocket } from './request.ts';

/** A cheap part of AbortSignal: aborted when the requester hangs up before the response is complete. */
export class HangUpSignal {
  readonly #res: HttpResponse;
  #listeners: Set<() => void> | null = null;

  constructor(res: HttpResponse) {
    this.#res = res;
    // An operation that may wait begins: the share `waits` bounds it from now on.
    requestDone(res);
  }

  get aborted(): boolean {
    return this.#res.destroyed && !this.#res.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#listeners) this.#res.once('close', () => this.#closed());
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  #closed(): void {
    if (this.#res.writableFinished) return;
    for (const listener of this.#listeners ?? []) listener();
  }
}

// Holds what the access log records about a request. It must not hold payloads or tokens.

/** What handlers note about a request for the access log, while they handle it. */
export type RequestNotes = {
  /** The id of the request; null outside of a request. */
  readonly requestId: string | null;
  /** The id of the first command that the request invoked, awaited or cancelled. */
  commandId: string | null;
  /** The outcome of that command; null while it is live. */
  outcome: string | null;
  /** The error code of the command, or of the request's refusal. */
  code: string | null;
  /** The path template that names the request in the metrics. Null: it is not measured, for example a stream. */
  route: string | null;
  /** The span of the request's first command; if it has no command, the span that its headers name. Null: no trace. */
  trace: TraceContext | null;
};

export function emptyNotes(requestId: string | null = null): RequestNotes {
  return { requestId, commandId: null, outcome: null, code: null, route: null, trace: null };
}

/** Returns a function that notes the span of the request's first command. */
export function spanNoter(notes: RequestNotes | undefined): ((span: TraceContext) => void) | undefined {
  if (!notes) return undefined;
  return (span) => {
    if (notes.commandId === null && notes.code === null) notes.trace = span;
  };
}

type Refused = Extract<Invocation, { readonly kind: 'refused' }>;
type Noted = Invocation | Pick<Refused, 'kind' | 'code' | 'commandId'> | CancelReceipt;

/** Notes the state of a command and returns `answer`. Only the first command of a request is noted. */
export function noteCommand<T extends Noted>(notes: RequestNotes | undefined, answer: T): T {
  if (!notes || notes.commandId !== null || notes.code !== null) return answer;
  if ('state' in answer) {
    const { commandId, outcome, command } = answer;
    Object.assign(notes, { commandId, outcome, code: command?.error?.code ?? null });
  } else if ('command' in answer) {
    const { commandId, outcome, error } = answer.command;
    Object.assign(notes, { commandId, outcome, code: error?.code ?? null });
  } else if (answer.kind === 'ended') {
    const { outcome, errorCode } = answer.mark;
    Object.assign(notes, { commandId: answer.key.commandId, outcome, code: errorCode });
  } else Object.assign(notes, { commandId: answer.commandId, code: answer.code });
  return answer;
}

// Counts requests in the share `requests`.

/** The requests that count in the share `requests`, by their response. */
const counted = new WeakMap<HttpResponse, Holdings>();

/** Counts a request until `requestDone`. Throws `share_exceeded` or `store_full` if the holder has too many. */
export function requestBegan(response: HttpResponse, holdings: Holdings): void {
  // The requester may have hung up while its token was checked.
  if (response.destroyed) return;
  holdings.claim('requests', 1);
  counted.set(response, holdings);
}

/**
 * Ends the counting of a request. Called when its response has ended or becomes an event stream, which counts as a
 * socket. Also called when an operation that may wait begins: the share `waits` counts it, and a burst of calls that
 * `waits` allows must not be refused here. Idempotent.
 */
export function requestDone(response: HttpResponse): void {
  const holdings = counted.get(response);
  if (!holdings) return;
  counted.delete(response);
  holdings.release('requests', 1);
}

// Sends the responses: JSON text, with the headers that every response has, and files, compressed where it pays.

/** How a handler sends its response. The reply of `createReply` also adds the default headers. */
export type HttpReply = {
  /**
   * Sends a complete 200 response, or the refusal of `refuses`; nothing if the client is gone. `type`: the content
   * type. `text`: JSON. `nonAscii`: false if the whole text is ASCII, so that its bytes need not be counted. `inserts`:
   * the bytes that the text refers to.
   */
  json(type: string, text: string, nonAscii?: boolean, inserts?: Inserts): void;
  /** Prepares the response for a handler that writes it without `json`. */
  open(): void;
  /** Returns false if the requester may leave this many more bytes unread. Otherwise sends a refusal, returns true. */
  refuses(bytes: number): boolean;
};

/** Returns a reply that adds no default headers and bounds no unread bytes. */
export function plainReply(response: HttpResponse, loop: EventLoop): HttpReply {
  return {
    json: (type, text, nonAscii = true, inserts = []) =>
      sendJson(response, { head: [], type, text, nonAscii, inserts, loop }),
    open() {},
    refuses: () => false,
  };
}

type ReplyParts = {
  readonly requestId: string;
  readonly socket: HttpSocket;
  readonly response: HttpResponse;
  /** Bounds the bytes that a requester leaves unread. `refusal` returns null while there is room for more. */
  readonly unread: {
    refusal(socket: HttpSocket, bytes: number): CallboardError | null;
    wrote(socket: HttpSocket, bytes: number): void;
  };
  readonly loop: EventLoop;
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

/** `open` sets the default headers one by one; `json` writes them together with the response. */
export function createReply({ requestId, socket, response, unread, loop, refuse }: ReplyParts): HttpReply {
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
  /** The further headers: names and values, alternating. */
  readonly head: readonly string[];
  readonly type: string;
  readonly text: string;
  readonly nonAscii: boolean;
  readonly inserts: Inserts;
  readonly loop: EventLoop;
};

/** From this size in bytes on, a buffer is cheaper than a string, which Node joins with the head and encodes again. */
const LARGE = 8 * 1024;

/** Sends the head and the text together. */
function sendJson(response: HttpResponse, { head, type, text, nonAscii, inserts, loop }: JsonAnswer): void {
  if (response.destroyed) return;
  const pieces = inserts.length === 0 ? [text] : piecesOf(text, inserts);
  const bytes = pieces.reduce((sum, piece) => sum + lengthOf(piece, nonAscii), 0);
  response.writeHead(200, [...head, 'Content-Type', type, 'content-length', String(bytes)]);
  if (pieces.length === 1) {
    // If each character is one byte, the cheaper encoding `latin1` writes the same bytes.
    const encoding = bytes === text.length ? 'latin1' : 'utf8';
    if (text.length > TURN_CHARS) sendInTurns(response, { text, encoding, loop }, 0);
    else if (encoding === 'latin1') response.end(text, encoding);
    else response.end(bytes < LARGE ? text : Buffer.from(text));
  } else {
    // The response is corked, so that the pieces leave in one write.
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

/** Returns where a piece ends: not between the two halves of a character. */
function pieceEnd(text: string, at: number): number {
  if (at >= text.length) return text.length;
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff ? at + 1 : at;
}

function lengthOf(piece: string | Buffer, nonAscii: boolean): number {
  return nonAscii && typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
}

/** ASCII bytes that a text refers to by their index between two characters U+0000, which JSON never contains. */
export type Inserts = readonly Buffer[];

const MARK = '\0';

/** Returns the reference to the insert of this index. */
export function insertMark(index: number): string {
  return MARK + String(index) + MARK;
}

/** Returns the pieces of the text in order: strings, and the inserts that it refers to. */
function piecesOf(text: string, inserts: Inserts): readonly (string | Buffer)[] {
  return text.split(MARK).map((piece, i) => (i % 2 === 0 ? piece : (inserts[Number(piece)] ?? '')));
}

/** Returns the text with every insert in its place. */
export function wholeText(text: string, inserts: Inserts): string {
  if (inserts.length === 0) return text;
  return piecesOf(text, inserts)
    .map((piece) => (typeof piece === 'string' ? piece : piece.toString('latin1')))
    .join('');
}

type Encoding = 'br' | 'gzip';

/** A text that is compressed once for each encoding, when that encoding is first requested. */
export class PackedText {
  readonly etag: string;
  readonly #plain: Buffer;
  readonly #packed = new Map<Encoding, MaybePromise<Buffer>>();

  constructor(text: string | Buffer) {
    this.#plain = typeof text === 'string' ? Buffer.from(text) : text;
    // The tag is weak, because it is the same for every encoding.
    this.etag = `W/"${createHash('sha256').update(this.#plain).digest('base64url')}"`;
  }

  bytes(encoding: Encoding | null): MaybePromise<Buffer> {
    if (encoding === null) return this.#plain;
    const known = this.#packed.get(encoding);
    if (known) return known;
    const packed = PACK[encoding](this.#plain).then((bytes) => {
      this.#packed.set(encoding, bytes);
      return bytes;
    });
    this.#packed.set(encoding, packed);
    return packed;
  }
}

/** The options of Brotli. The highest quality would take many times as long and save only a tenth. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } };
const PACK: Readonly<Record<Encoding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: promisify(gzip),
};

/** A page, a file or a document, with its own headers. */
export type PackedFile = { readonly text: PackedText; readonly headers: Readonly<Record<string, string>> };

/** Answers a GET or HEAD, with 304 if the client has the text. By default clients ask each time (`no-cache`). */
export function sendPacked(req: HttpRequest, res: HttpResponse, { text, headers }: PackedFile): MaybePromise<void> {
  const vary = [res.getHeader('vary'), 'accept-encoding'].filter(Boolean).join(', ');
  const all = { 'cache-control': 'no-cache', ...headers, vary, etag: text.etag };
  if (isCurrent(req.headers['if-none-match'], text.etag)) return void res.writeHead(304, all).end();
  const encoding = encodingOf(req.headers['accept-encoding']);
  const coded = encoding !== null && { 'content-encoding': encoding };
  return thenDo(text.bytes(encoding), (bytes) => {
    res.writeHead(200, { ...all, ...coded, 'content-length': bytes.length }).end(bytes);
  });
}

/** Whether the client's copy has this tag (RFC 9110, 13.1.2: weak comparison). */
function isCurrent(header: string | undefined, etag: string): boolean {
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '');
  return header?.trim() === '*' || (header?.split(',').some((tag) => bare(tag) === bare(etag)) ?? false);
}

/** Returns the encoding that the client prefers; Brotli if it prefers none; null if it accepts no compression. */
export function encodingOf(header: string | string[] | undefined): Encoding | null {
  const weights = weightsOf(String(header ?? ''));
  const weight = (encoding: Encoding): number => weights.get(encoding) ?? weights.get('*') ?? 0;
  const [br, zip] = [weight('br'), weight('gzip')];
  if (br === 0 && zip === 0) return null;
  return br >= zip ? 'br' : 'gzip';
}

/** Returns the weight of each name in an `accept` or `accept-encoding` header; 0 for a weight that is no number. */
export function weightsOf(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const weight = Number(parameters.find((text) => text.startsWith('q='))?.slice('q='.length) ?? 1);
    weights.set(name, Math.max(weights.get(name) ?? 0, Number.isFinite(weight) ? weight : 0));
  }
  return weights;
}

/** Sends a complete response. */
export function sendText(response: HttpResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text);
}
