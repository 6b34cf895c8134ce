import type { ExecutionResult, GraphQLError } from 'graphql';
import { inOneLine, writeJson } from '../core/json.ts';

/** The text before and after a result in its SSE frame. */
export type Envelope = { readonly head: string; readonly tail: string };

const OWN: Envelope = { head: 'event: next\ndata: ', tail: '\n\n' };

/** `id` names the operation on a stream that carries several; null when the operation has a stream of its own. */
export function envelopeOf(id: string | null): Envelope {
  return id === null ? OWN : { head: `event: next\ndata: {"id":${JSON.stringify(id)},"payload":`, tail: '}\n\n' };
}

export function nextFrame(id: string | null, result: ExecutionResult): string {
  const { head, tail } = envelopeOf(id);
  return head + resultText(result) + tail;
}

export function completeFrame(id: string | null): string {
  return `event: complete\ndata:${id === null ? '' : ` ${JSON.stringify({ id })}`}\n\n`;
}

/** A result as JSON text without line breaks. */
export function resultText(result: ExecutionResult): string {
  const shown = result.errors ? { ...result, errors: result.errors.map(showError) } : result;
  return inOneLine(writeJson(shown) ?? 'null');
}

/** `extensions.http` is meant for the HTTP handler and is not shown. */
function showError(error: GraphQLError): object {
  const { extensions = {}, ...shown } = error.toJSON();
  const { http: _http, ...rest } = extensions;
  return Object.keys(rest).length > 0 ? { ...shown, extensions: rest } : shown;
}

/**
 * Text that is written to one or many streams. Its bytes are encoded at most once for each way of writing them, when
 * first needed.
 */
export class Chunk {
  readonly #text: string;
  #plain: Buffer | null = null;
  #framed: Buffer | null = null;

  /** The text has at least one character: an empty chunk would end the body. */
  constructor(text: string) {
    this.#text = text;
  }

  get plain(): Buffer {
    return (this.#plain ??= Buffer.from(this.#text));
  }

  /** The bytes as one chunk of HTTP/1.1 chunked encoding. */
  get framed(): Buffer {
    return (this.#framed ??= frame(this.#text));
  }
}

function frame(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}
