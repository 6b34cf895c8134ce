/** Reads request bodies within a size limit, and checks that they are JSON. It does not interpret them. */
import { isUtf8 } from 'node:buffer';
import { CallboardError } from '../core/errors.ts';
import { jsonFault, trustJson, type JsonFault, type JsonText } from '../core/json.ts';
import { ENVELOPE_DEPTH, JSON_DEPTH } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { HttpRequest, HttpResponse } from '../web/request.ts';

/**
 * Reads the JSON body of a request, and returns the result of `use` for the body's bytes; undefined if there is no
 * body. Buffers at most `maxBytes`, whatever Content-Length announces. Throws `payload_too_large`,
 * `unsupported_media_type` or `invalid_argument`. After an error the rest of the body is not read, so the connection
 * must be closed after the response. If the body has no Content-Length, `unannounced` is called with the size of each
 * chunk as it arrives.
 */
export function readBody<T>(
  request: HttpRequest,
  maxBytes: number,
  { use, unannounced }: BodyOptions<T>,
): MaybePromise<T> {
  if (!mayHaveBody(request)) return use(undefined);
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > 0) requireJson(request);
  if (announced > maxBytes) throw tooLarge(maxBytes);
  return collect(request, maxBytes, announced === 0 ? unannounced : undefined).then((bytes) => {
    if (bytes.length === 0) return use(undefined);
    if (announced === 0) requireJson(request);
    return use(bytes);
  });
}

type BodyOptions<T> = {
  readonly use: (bytes: Buffer | undefined) => MaybePromise<T>;
  readonly unannounced?: ((bytes: number) => void) | undefined;
};

/** The responses to requests whose clients wait for `100 Continue` before they send the body. */
const awaited = new WeakMap<HttpRequest, HttpResponse>();

/**
 * Defers the answer to `Expect: 100-continue` until the body is read, so that the client of a refused request sends no
 * body.
 */
export function deferContinue(request: HttpRequest, response: HttpResponse): void {
  awaited.set(request, response);
}

function continueNow(request: HttpRequest): void {
  awaited.get(request)?.writeContinue();
  awaited.delete(request);
}

/** Whether a request may have a body. Without Content-Length and Transfer-Encoding it has none (RFC 9112, 6.3). */
export function mayHaveBody(request: HttpRequest): boolean {
  return isChunked(request) || Number(request.headers['content-length'] ?? 0) > 0;
}

export function isChunked({ headers }: HttpRequest): boolean {
  return headers['transfer-encoding'] !== undefined;
}

function requireJson({ headers }: HttpRequest): void {
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) return;
  const [type = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const json = type === 'application/json' && (charset === undefined || /^"?utf-?8"?$/.test(charset));
  const plain = (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
  if (!json || !plain) {
    throw new CallboardError('unsupported_media_type', 'A body must be application/json in UTF-8, not compressed.');
  }
}

function collect(request: HttpRequest, maxBytes: number, unannounced?: (bytes: number) => void): Promise<Buffer> {
  continueNow(request);
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    unannounced?.(chunk.length);
    if (size <= maxBytes) return void chunks.push(chunk);
    leave();
    request.pause();
    reject(tooLarge(maxBytes));
  };
  const whole = (): void => {
    leave();
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
  };
  const broken = (): void =>
    reject(new CallboardError('invalid_argument', 'The body ended before its announced length.'));
  // Listeners are removed because every request emits `close`. A remaining listener would then create an unused error,
  // which costs more than the rest of the read. The listeners would also keep the chunks in memory for as long as a
  // stream is open.
  const leave = (): void => void request.off('data', take).off('end', whole).off('close', broken);
  // A request whose connection breaks emits `close`. It also emits `error`, but only if `error` has a listener.
  request.on('data', take).on('end', whole).on('close', broken);
  return promise;
}

/** Decodes the body as JSON text. Throws `invalid_argument` if it is not UTF-8, not JSON, or nested too deeply. */
export function parseBody(bytes: Buffer): JsonText {
  const text = decodeBody(bytes);
  const fault = jsonFault(text, ENVELOPE_DEPTH);
  return fault === null ? trustJson(text) : refuseBody(fault);
}

/** Decodes the body without checking whether it is JSON. Throws `invalid_argument` if it is not UTF-8. */
export function decodeBody(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw malformed('The body is not UTF-8.');
  return bytes.toString('utf8');
}

/**
 * The maximum depth of a body. A payload in it may have JSON_DEPTH levels, which is checked when the payload is taken
 * out.
 */
const BODY_DEPTH = JSON_DEPTH + ENVELOPE_DEPTH;

/** Throws the `invalid_argument` that states why a body is not accepted as JSON. */
export function refuseBody(fault: JsonFault): never {
  throw malformed(fault === 'depth' ? `The body is nested deeper than ${BODY_DEPTH} levels.` : 'The body is not JSON.');
}

function tooLarge(maxBytes: number): CallboardError {
  return new CallboardError('payload_too_large', `A body may have at most ${maxBytes} bytes.`);
}

function malformed(detail: string): CallboardError {
  return new CallboardError('invalid_argument', detail, { errors: [{ parameter: 'body', detail }] });
}
