/** Encodes results as frames of GraphQL over server-sent events: `next` and `complete`, as graphql-sse defines them. */
import type { ExecutionResult, GraphQLError } from 'graphql';
import { inOneLine, writeJson } from '../../core/json.ts';
import type { Envelope } from '../../web/sse.ts';
import type { ResultFrames } from '../execute/subscriptions.ts';

const OWN: Envelope = { head: 'event: next\ndata: ', tail: '\n\n' };

/**
 * Returns the text around a result in its frame. `id`: the operation's id on a stream that carries several operations;
 * null if the stream carries only this one.
 */
function envelopeOf(id: string | null): Envelope {
  return id === null ? OWN : { head: `event: next\ndata: {"id":${JSON.stringify(id)},"payload":`, tail: '}\n\n' };
}

export function nextFrame(id: string | null, result: ExecutionResult): string {
  const { head, tail } = envelopeOf(id);
  return head + resultText(result) + tail;
}

export function completeFrame(id: string | null): string {
  return `event: complete\ndata:${id === null ? '' : ` ${JSON.stringify({ id })}`}\n\n`;
}

/** Writes a result as JSON text without line breaks. */
function resultText(result: ExecutionResult): string {
  const shown = result.errors ? { ...result, errors: result.errors.map(showError) } : result;
  return inOneLine(writeJson(shown) ?? 'null');
}

/** Converts an error for the requester. `extensions.http` is omitted, because it is meant for the HTTP handler. */
function showError(error: GraphQLError): object {
  const { extensions = {}, ...shown } = error.toJSON();
  const { http: _http, ...rest } = extensions;
  return Object.keys(rest).length > 0 ? { ...shown, extensions: rest } : shown;
}

/** Encodes the frames of subscriptions that several requesters share. */
export const SSE_FRAMES: ResultFrames = {
  result: resultText,
  written: (data) => inOneLine(`{"data":${data}}`),
  envelope: envelopeOf,
  last: (id, result) => (result === null ? '' : nextFrame(id, result)) + completeFrame(id),
};
