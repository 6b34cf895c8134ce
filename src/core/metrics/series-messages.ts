/**
 * Reads and writes the texts with which nodes ask each other for recorded values. Nodes of other versions may use other
 * formats.
 */
import type { IncompleteReason } from '../completeness.ts';
import { isRecord, parsedJson } from '../json.ts';
import { SERIES_ANSWER_CHARS } from '../limits.ts';
import { COUNTER_NAMES, HISTOGRAM_NAMES, SAMPLED_GAUGE_NAMES } from '../metrics.ts';
import { BUCKETS } from './buckets.ts';
import { COARSE, FINE, type NodeReading, type ReadingQuery, type ReadingRow } from './reading.ts';

const NAMES: ReadonlySet<unknown> = new Set([...COUNTER_NAMES, ...HISTOGRAM_NAMES, ...SAMPLED_GAUGE_NAMES]);

/** Reads a question. Throws if this version does not know its format. Ignores names that this version does not know. */
export function readQuestion(text: string): ReadingQuery {
  const question: unknown = JSON.parse(text);
  if (!isRecord(question) || !Array.isArray(question['names'])) throw new Error('The question is of another form.');
  const { from, slotMs, stepMs, points, names } = question;
  const isSlot = slotMs === FINE.slotMs || slotMs === COARSE.slotMs;
  if (!isSlot || !isCount(from) || !isCount(stepMs) || !isCount(points))
    throw new Error('The question is of another form.');
  return { names: names.filter(isKnown), from, slotMs, stepMs, points };
}

/** Writes an answer. If it would be longer than SERIES_ANSWER_CHARS, writes that it was too long instead. */
export function writeAnswer(reading: NodeReading): string {
  const text = JSON.stringify({ buckets: BUCKETS, gauges: true, ...reading });
  return text.length > SERIES_ANSWER_CHARS ? '{"tooLong":true}' : text;
}

/**
 * Reads an answer. Returns the reason instead if the answer cannot be used: it was too long, or this version does not
 * know its format.
 */
export function readAnswer(text: string, { points }: Pick<ReadingQuery, 'points'>): NodeReading | IncompleteReason {
  const answer = parsedJson(text);
  if (!isRecord(answer)) return 'not_supported';
  const { buckets, gauges, known, rows, tooLong } = answer;
  if (tooLong === true) return 'limit_reached';
  const fits = buckets === BUCKETS && typeof known === 'string' && known.length === points;
  if (!fits || !Array.isArray(rows) || !rows.every(isRow)) return 'not_supported';
  return gauges === true ? { known, rows } : { known, rows, withoutGauges: true };
}

function isRow(row: unknown): row is ReadingRow {
  if (!isRecord(row)) return false;
  const { name, label, counts } = row;
  return (
    isKnown(name) && (label === null || typeof label === 'string') && Array.isArray(counts) && counts.every(isCount)
  );
}

function isKnown(name: unknown): name is string {
  return NAMES.has(name);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
