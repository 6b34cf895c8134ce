/** Reads the progress reports of a call. */
import { guarded, type ErrorSink } from './callbacks.ts';
import type { HttpAnswer } from './library-error.ts';

/**
 * A progress report. Its value is not checked. `number`: its number among the handler's reports, from 1; null if the
 * client does not number them. `missed`: how many reports between the previous one and this one did not arrive. For an
 * `await`, counting begins with the first report that arrives.
 */
export type ProgressUpdate = { readonly value: unknown; readonly number: number | null; readonly missed: number };

/** Receives a progress report: its JSON text, and its number if it has one. */
export type ProgressSink = (json: string | null, number: number | undefined) => void;

/**
 * Creates the sink of one call, which counts the reports that did not arrive. The same sink is used if the request is
 * sent again. `last`: the number of the last report that is not needed; undefined if it is not known. If `onProgress`
 * throws, `onError` receives the error. Returns undefined if there is no `onProgress`.
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
      // If the request was sent again, a report may arrive a second time.
      if (missed < 0) return undefined;
      last = number ?? last;
      return onProgress({ value: JSON.parse(json ?? 'null'), number: number ?? null, missed });
    }, onError);
}

/**
 * Reads the event stream of a call and returns its answer. Relays write each event as the lines `event`, perhaps `id`,
 * and `data`. Throws if the stream ends without an answer.
 */
export async function readEvents(stream: ReadableStream<Uint8Array>, onProgress: ProgressSink): Promise<HttpAnswer> {
  const decoder = new TextDecoder();
  // Some browsers cannot iterate over a ReadableStream, so a reader is used.
  const reader = stream.getReader();
  let answer: HttpAnswer | undefined;
  let text = '';
  // The stream is read to its end, so that its connection can be reused.
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + decoder.decode(part.value, { stream: true })).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [name, ...fields] = event.split('\n');
      const data = fields.pop()?.slice('data: '.length) ?? '';
      const [id] = fields;
      if (name === 'event: progress') onProgress(data, id ? Number(id.slice('id: '.length)) : undefined);
      // The data of an answer is an object with the members `status` and `body`.
      if (name === 'event: answer') answer = { ...JSON.parse(data), retryAfterMs: null };
    }
  }
  if (answer) return answer;
  throw new Error('The stream broke.');
}
