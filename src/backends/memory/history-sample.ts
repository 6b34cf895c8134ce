/** Takes a bounded sample of rows for the raw history. */
import { Sampling } from '../../core/history/sample.ts';
import type { RawSample, SampleBounds } from '../../core/history/store.ts';
import { trustJson, type JsonText } from '../../core/json.ts';
import type { Row } from './history-row.ts';

/** The first rows, as many as fit within the bounds. */
export function sampleRows(rows: Iterable<Row>, bounds: SampleBounds): Omit<RawSample, 'gaps'> {
  const sampling = new Sampling(bounds);
  for (const row of rows) if (!sampling.offer(row.message, () => storedOf(row))) break;
  return sampling.sample;
}

/** All members of the row, and the bytes that it counts for in the bound on bytes. */
function storedOf({ message, bytes }: Row): JsonText {
  const { payload, ...members } = message;
  const shown = JSON.stringify({ adapter: 'memory', rowBytes: bytes, ...members });
  return trustJson(`${shown.slice(0, -1)},"payload":${payload ?? 'null'}}`);
}
