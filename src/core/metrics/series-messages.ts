/** The texts with which nodes ask each other for what they recorded. Nodes of other versions may send other texts. */
import type { IncompleteReason } from '../completeness.ts';
import { isRecord, parsedJson } from '../json.ts';
import { SERIES_ANSWER_CHARS } from '../limits.ts';
import { COUNTER_NAMES, HISTOGRAM_NAMES, SAMPLED_GAUGE_NAMES } from '../metrics.ts';
import { BUCKETS } from './buckets.ts';
import { COARSE, FINE, type NodeReading, type ReadingQuery, type ReadingRow } from './reading.ts';

const NAMES: ReadonlySet<unknown> = new Set([...COUNTER_NAMES, ...HISTOGRAM_NAMES, ...SAMPLED_GAUGE_NAMES]);

/**
 * Reads a question. Throws if this version does not know its form. Names that this version does not know are left out.
 */
export function readQuestion(text: string): ReadingQuery {
  const question: unknown = JSON.parse(text);
  if (!isRecord(question) || !Array.isArray(question['names'])) throw new Error('The question is of another form.');
  const { from, slotMs, stepMs, points, names } = question;
  const isSlot = slotMs === FINE.slotMs || slotMs === COARSE.slotMs;
  if (!isSlot || !isCount(from) || !isCount(stepMs) || !isCount(points))
    throw new Error('The question is of another form.');
  return { names: names.filter(isKnown), from, slotMs, stepMs, points };
}

/** Writes a reading as text. If that would be longer than SERIES_ANSWER_CHARS, writes a text that says so. */
export function writeAnswer(reading: NodeReading): string {
  const text = JSON.stringify({ buckets: BUCKETS, gauges: true, ...reading });
  return text.length > SERIES_ANSWER_CHARS ? '{"tooLong":true}' : text;
}

/** Reads an answer: the reading, or why there is none (it was too long, or this version does not know its form). */
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
