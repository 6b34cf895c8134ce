import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { CallboardError } from '../core/errors.ts';
import { JSON_DEPTH } from '../core/limits.ts';
import type { Maybe } from '../core/maybe.ts';

/**
 * The JSON body of a request; undefined when it has none. Never holds more than `maxBytes`, whatever length was announced. Throws
 * `payload_too_large`, `unsupported_media_type` or `invalid_argument`; what is left of the body is then not read, so the connection
 * must be closed after the answer. `parse` reads the bytes. `unannounced` is told the bytes of a body without a length as they come.
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  { parse = parseBody, unannounced }: ReadOptions = {},
): Maybe<unknown> {
  if (!mayHaveBody(request)) return undefined;
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > 0) requireJson(request);
  if (announced > maxBytes) throw tooLarge(maxBytes);
  return collect(request, maxBytes, announced === 0 ? unannounced : undefined).then((bytes) => {
    if (bytes.length === 0) return undefined;
    if (announced === 0) requireJson(request);
    return parse(bytes);
  });
}

export type ReadOptions = {
  readonly parse?: (bytes: Buffer) => unknown;
  readonly unannounced?: ((bytes: number) => void) | undefined;
};

/** Without either header a request has no body (RFC 9112, 6.3). */
export function mayHaveBody(request: IncomingMessage): boolean {
  return isChunked(request) || Number(request.headers['content-length'] ?? 0) > 0;
}

export function isChunked({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined;
}

function requireJson({ headers }: IncomingMessage): void {
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) return;
  const [type = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const json = type === 'application/json' && (charset === undefined || /^"?utf-8"?$/.test(charset));
  const plain = (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
  if (!json || !plain) {
    throw new CallboardError('unsupported_media_type', 'A body must be application/json in UTF-8, not compressed.');
  }
}

function collect(request: IncomingMessage, maxBytes: number, came?: (bytes: number) => void): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    came?.(chunk.length);
    if (size <= maxBytes) chunks.push(chunk);
    else {
      request.off('data', take);
      request.pause();
      reject(tooLarge(maxBytes));
    }
  };
  const broken = (): void =>
    reject(new CallboardError('invalid_argument', 'The body ended before its announced length.'));
  const whole = (): void => {
    // Every request closes: an error made then for nothing would cost more than the rest of its reading. And what an open stream began with
    // would be kept, bytes and all, as long as anybody listens for more of it.
    request.off('close', broken).off('data', take).off('error', broken);
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
  };
  request.on('data', take).once('end', whole).once('error', broken).once('close', broken);
  return promise;
}

/** Throws `invalid_argument`. */
export function parseBody(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw malformed('The body is not UTF-8.');
  const text = bytes.toString('utf8');
  if (deeperThan(text, JSON_DEPTH)) throw malformed(`The body is nested deeper than ${JSON_DEPTH} levels.`);
  try {
    return JSON.parse(text);
  } catch {
    throw malformed('The body is not JSON.');
  }
}

/** Counts brackets outside of strings; on text that is not JSON the answer is only a bound. */
function deeperThan(text: string, bound: number): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) i = endOfString(text, i);
    else if ((unit === BRACKET || unit === BRACE) && ++depth > bound) return true;
    else if (unit === BRACKET_END || unit === BRACE_END) depth--;
  }
  return false;
}

const QUOTE = 0x22;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACKET_END = 0x5d;
const BRACE = 0x7b;
const BRACE_END = 0x7d;

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

function tooLarge(maxBytes: number): CallboardError {
  return new CallboardError('payload_too_large', `A body may hold ${maxBytes} bytes.`);
}

function malformed(detail: string): CallboardError {
  return new CallboardError('invalid_argument', detail, { errors: [{ parameter: 'body', detail }] });
}
