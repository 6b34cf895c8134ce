/** Reads as many rows as fit within given limits, for the raw view of the history. */
import { Sampling } from '../../core/history/sample.ts';
import type { RawSample, SampleBounds } from '../../core/history/store.ts';
import { trustJson, type JsonText } from '../../core/json.ts';
import type { Row } from './history-row.ts';

/** Takes rows from the beginning, as many as fit within the limits. */
export function sampleRows(rows: Iterable<Row>, bounds: SampleBounds): Omit<RawSample, 'gaps'> {
  const sampling = new Sampling(bounds);
  for (const row of rows) if (!sampling.offer(row.message, () => storedOf(row))) break;
  return sampling.sample;
}

/** Writes all members of a row as JSON, with the number of bytes that the row counts for in history. */
function storedOf({ message, bytes }: Row): JsonText {
  const { payload, ...members } = message;
  const shown = JSON.stringify({ adapter: 'memory', rowBytes: bytes, ...members });
  return trustJson(`${shown.slice(0, -1)},"payload":${payload ?? 'null'}}`);
}
