import type { Message } from '../../core/history/message.ts';
import type { RawSample, SampleBounds } from '../../core/history/store.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { fromJson, trustJson, utf8Length, type JsonText } from '../../core/json.ts';
import type { Row } from './history-row.ts';

/** The first of the rows that keep within the bounds; one is taken whatever its size. At most SCAN_BUDGET rows are looked at. */
export function sampleRows(rows: Iterable<Row>, bounds: SampleBounds): Omit<RawSample, 'gaps'> {
  const sample: { message: Message; stored: JsonText }[] = [];
  let bytes = 0;
  let scanned = 0;
  for (const row of rows) {
    const { message } = row;
    if (++scanned > SCAN_BUDGET) return { rows: sample, cut: true };
    if (bounds.of === 'payloads' && message.payload === null && message.spill === null) continue;
    if (sample.length === bounds.messages) return { rows: sample, cut: true };
    const stored = storedOf(row);
    bytes += bounds.of === 'payloads' ? message.payloadBytes : utf8Length(stored);
    if (bytes > bounds.bytes && sample.length > 0) return { rows: sample, cut: true };
    sample.push({ message, stored });
  }
  return { rows: sample, cut: false };
}

/** The row member for member, and what it counts for in the bound on bytes. */
function storedOf({ message, bytes }: Row): JsonText {
  const { payload, ...members } = message;
  return trustJson(JSON.stringify({ adapter: 'memory', rowBytes: bytes, ...members, payload: fromJson(payload) }));
}
