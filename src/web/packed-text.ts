/** Serves a text that seldom changes: with an ETag, and compressed if the client accepts that. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';

type Encoding = 'br' | 'gzip';

/** A text that is compressed once for each encoding, when that encoding is first requested. */
export class PackedText {
  readonly etag: string;
  readonly #plain: Buffer;
  readonly #packed = new Map<Encoding, MaybePromise<Buffer>>();

  constructor(text: string) {
    this.#plain = Buffer.from(text);
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

/**
 * Answers a GET or HEAD with the text, or with 304 if the client has it. Clients ask again each time (`no-cache`).
 * `headers` are further headers. `accept-encoding` is added to a `vary` among them.
 */
export function sendPacked(
  req: IncomingMessage,
  res: ServerResponse,
  { text, headers }: { readonly text: PackedText; readonly headers: Readonly<Record<string, string>> },
): MaybePromise<void> {
  const vary = [res.getHeader('vary'), headers['vary'], 'accept-encoding'].filter(Boolean).join(', ');
  const all = { ...headers, 'cache-control': 'no-cache', vary, etag: text.etag };
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
  const weights = new Map(
    String(header ?? '')
      .split(',')
      .map(weightOf),
  );
  const weight = (encoding: Encoding): number => weights.get(encoding) ?? weights.get('*') ?? 0;
  const [br, zip] = [weight('br'), weight('gzip')];
  if (br === 0 && zip === 0) return null;
  return br >= zip ? 'br' : 'gzip';
}

function weightOf(part: string): readonly [name: string, weight: number] {
  const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length);
  const weight = q === undefined ? 1 : Number(q);
  return [name, Number.isNaN(weight) ? 0 : weight];
}
