/** Reads the progress of a call. */
import { guarded, type ErrorSink } from './callbacks.ts';
import type { HttpAnswer } from './library-error.ts';

/**
 * A report of progress. Nothing checks its value. `number` counts the reports of the handler, from 1; null if the
 * client does not number them. `missed`: how many reports between the previous one and this one did not arrive. An
 * `await` counts from the first one that arrives.
 */
export type ProgressUpdate = { readonly value: unknown; readonly number: number | null; readonly missed: number };

/** Receives a report of progress: its JSON text, and its number if it has one. */
export type ProgressSink = (json: string | null, number: number | undefined) => void;

/**
 * Returns the sink of one call, which counts the reports that did not arrive. It serves the call to its end, also when
 * the request is sent again. `last`: the number before that of the first report; undefined: unknown. `onError` receives
 * what `onProgress` throws. Undefined without `onProgress`.
 */
export function progressSink(
  onProgress: ((update: ProgressUpdate) => unknown) | undefined,
  last: number | undefined,
  onError?: ErrorSink,
): ProgressSink | undefined {
  if (!onProgress) return undefined;
  return (json, number) =>
    guarded(() => {
      const missed = number === undefined || last === undefined ? 0 : number - last - 1;
      // A report may arrive again after the request was sent again.
      if (missed < 0) return undefined;
      last = number ?? last;
      return onProgress({ value: JSON.parse(json ?? 'null'), number: number ?? null, missed });
    }, onError);
}

/**
 * Reads the events of a call in the form in which relays write them, the lines `event`, perhaps `id`, and `data`.
 * Returns the answer. Throws if the stream ends without one.
 */
export async function readEvents(stream: ReadableStream<Uint8Array>, onProgress: ProgressSink): Promise<HttpAnswer> {
  const decoder = new TextDecoder();
  // Some browsers cannot iterate over a ReadableStream.
  const reader = stream.getReader();
  let answer: HttpAnswer | undefined;
  let text = '';
  // The stream is read to its end, so that its connection can be used again.
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + decoder.decode(part.value, { stream: true })).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [name, ...fields] = event.split('\n');
      const data = fields.pop()?.slice('data: '.length) ?? '';
      const [id] = fields;
      if (name === 'event: progress') onProgress(data, id ? Number(id.slice('id: '.length)) : undefined);
      // The data of an answer has the members `status` and `body`.
      if (name === 'event: answer') answer = { ...JSON.parse(data), retryAfterMs: null };
    }
  }
  if (answer) return answer;
  throw new Error('The stream broke.');
}
