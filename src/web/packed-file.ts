/** Sends pages, files and documents: compressed if the client accepts it, or as 304 if the client already has them. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { HttpRequest, HttpResponse } from './request.ts';

type Encoding = 'br' | 'gzip';

/** A text that is compressed once for each encoding, when that encoding is first requested. */
export class PackedText {
  readonly etag: string;
  readonly #plain: Buffer;
  readonly #packed = new Map<Encoding, MaybePromise<Buffer>>();

  constructor(text: string | Buffer) {
    this.#plain = typeof text === 'string' ? Buffer.from(text) : text;
    // The tag is weak (`W/`), because all encodings of the text share it.
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

/** A page, file or document together with the response headers that belong to it. */
export type PackedFile = { readonly text: PackedText; readonly headers: Readonly<Record<string, string>> };

/**
 * Answers a GET or HEAD request: with 304 if the client already has the text. By default clients must revalidate on
 * each use (`no-cache`).
 */
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

/** Whether the header `If-None-Match` names this tag, by weak comparison (RFC 9110, 13.1.2). */
function isCurrent(header: string | undefined, etag: string): boolean {
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '');
  return header?.trim() === '*' || (header?.split(',').some((tag) => bare(tag) === bare(etag)) ?? false);
}

/** Returns the encoding that the client prefers; Brotli if it weighs all equally; null if it accepts no compression. */
export function encodingOf(header: string | string[] | undefined): Encoding | null {
  const weights = weightsOf(String(header ?? ''));
  const weight = (encoding: Encoding): number => weights.get(encoding) ?? weights.get('*') ?? 0;
  const [br, zip] = [weight('br'), weight('gzip')];
  if (br === 0 && zip === 0) return null;
  return br >= zip ? 'br' : 'gzip';
}

/** Returns the weight of each name in an `accept` or `accept-encoding` header; 0 if the weight is not a number. */
export function weightsOf(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const weight = Number(parameters.find((text) => text.startsWith('q='))?.slice('q='.length) ?? 1);
    weights.set(name, Math.max(weights.get(name) ?? 0, Number.isFinite(weight) ? weight : 0));
  }
  return weights;
}
