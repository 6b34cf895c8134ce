/** Answers requests for series from what each node recorded. Other nodes are asked once, through their mailboxes. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { otherNodes, type NodeQuestions } from '../commands/loops.ts';
import type { Deps } from '../deps.ts';
import { invalid, isStoreUnavailable } from '../errors.ts';
import { id, within } from '../ids.ts';
import { isRecord, parsedJson } from '../json.ts';
import {
  SERIES_ANSWER_CHARS,
  SERIES_ASK_MS,
  SERIES_LINES,
  SERIES_POINTS,
  SERIES_POINTS_DEFAULT,
  SERIES_WINDOW_SECONDS,
} from '../limits.ts';
import {
  completenessOf,
  gapOf,
  observed,
  type Completeness,
  type IncompleteReason,
  type ObservedSource,
} from '../completeness.ts';
import type { Cancel } from '../ports.ts';
import { BUCKETS, quantileOf } from './buckets.ts';
import { COARSE, FINE, type NodeReading, type ReadingQuery, type ReadingRow } from './reading.ts';
import { sourceOf, type SeriesSource } from './series-source.ts';
import { COUNTER_NAMES, HISTOGRAM_NAMES, LABELS, SAMPLED_GAUGES, SAMPLED_GAUGE_NAMES } from '../metrics.ts';

export type SeriesQuery = {
  /**
   * The names of counters, of sampled gauges, and of quantiles of histograms: see `../metrics.ts`. At most
   * SERIES_LINES.
   */
  readonly names: readonly string[];
  readonly windowSeconds: number;
  readonly stepSeconds?: number | null | undefined;
  /** The node whose series are shown; null: all nodes together. */
  readonly nodeId?: string | null | undefined;
};

/**
 * One series as it is shown. `from`: when the first step begins, in epoch milliseconds. `nodeId` null: all nodes
 * together.
 */
export type SeriesView = SeriesLine & {
  readonly nodeId: string | null;
  readonly from: number;
  readonly stepSeconds: number;
};

/** The requested series: at most SERIES_LINES, of at most SERIES_POINTS points each. */
export type SeriesAnswer = { readonly items: readonly SeriesView[]; readonly completeness: Completeness };

export type Series = ReturnType<typeof createSeries>;

export function createSeries(deps: Deps, questions: NodeQuestions) {
  const { clock, metrics } = deps;
  questions.answerWith('series', (text) => writeAnswer(metrics.read(readQuestion(text), clock.now())));
  return {
    /** Starts the recording of this node, and returns the function that stops it. */
    start: () => closeSlots(deps),
    /**
     * Shows how counters, gauges and quantiles changed in the time window that ends now. Admin only. The completeness
     * lists each node; a node that did not answer has the reason `node_silent`. Throws `invalid_argument` for an
     * unknown name and for a window out of range.
     */
    async read(requester: Requester, query: SeriesQuery): Promise<SeriesAnswer> {
      requireAdmin(requester);
      const sources = sourcesOf(query.names);
      const window = windowOf(query.windowSeconds, query.stepSeconds ?? null, clock.now());
      const nodeId = query.nodeId == null ? null : id('node_id', query.nodeId);
      const names = [...new Set(sources.values().map(({ metric }) => metric))];
      const found = await readNodes(deps, questions, { nodeId, query: { ...window, names } });
      const readings = found.flatMap(({ reading }) => reading ?? []);
      const lines = [...sources].flatMap(([name, source]) => linesOf(name, source, readings));
      const { from, stepMs } = window;
      const shown = { nodeId, from, stepSeconds: stepMs / 1000 };
      const isCut = lines.length > SERIES_LINES;
      const cut = isCut ? [observed('metrics', clock.now(), SERIES_LINES, SERIES_LINES)] : [];
      return {
        items: lines.slice(0, SERIES_LINES).map((line) => ({ ...line, ...shown })),
        completeness: completenessOf([...found.map(({ source }) => source), ...cut]),
      };
    },
  };
}

/** Closes each slot when its time has passed. */
function closeSlots({ clock, metrics }: Deps): Cancel {
  let cancel: Cancel = () => {};
  const next = (): void => {
    const now = clock.now();
    metrics.closeSlot(now);
    cancel = clock.after(FINE.slotMs - (now % FINE.slotMs), next);
  };
  next();
  return () => cancel();
}

function sourcesOf(names: readonly string[]): ReadonlyMap<string, SeriesSource> {
  if (names.length === 0 || names.length > SERIES_LINES) invalid('names', `expected 1 to ${SERIES_LINES} names`);
  return new Map(
    names.map((name) => {
      const source = sourceOf(name);
      return source
        ? [name, source]
        : invalid(
            'names',
            `"${name.slice(0, 64)}" is neither a counter, such as commands_ended, nor a gauge, such as client_links, nor a quantile, such as command_p99`,
          );
    }),
  );
}

type Found = { readonly source: ObservedSource; readonly reading: NodeReading | null };
type Asked = { readonly nodeId: string | null; readonly query: ReadingQuery };

async function readNodes(deps: Deps, questions: NodeQuestions, { nodeId, query }: Asked): Promise<readonly Found[]> {
  const { clock, metrics, nodeId: self } = deps;
  const own: readonly Found[] =
    nodeId !== null && nodeId !== self ? [] : [foundAt(self, clock.now(), metrics.read(query, clock.now()))];
  if (nodeId === self) return own;
  try {
    const { others, silent } = await otherNodes(deps);
    const answers = (nodeId === null ? others : [nodeId]).map(async (other): Promise<Found> => {
      const question = { topic: 'series', text: JSON.stringify(query), withinMs: SERIES_ASK_MS } as const;
      const text = silent.has(other) ? null : await questions.ask(other, question);
      return foundAt(other, clock.now(), text === null ? 'node_silent' : readAnswer(text, query), query);
    });
    return [...own, ...(await Promise.all(answers))];
  } catch (error) {
    if (!isStoreUnavailable(error)) throw error;
    return [...own, foundAt(nodeId, clock.now(), 'store_unavailable')];
  }
}

function foundAt(
  nodeId: string | null,
  asOf: number,
  found: NodeReading | IncompleteReason,
  { names }: Pick<ReadingQuery, 'names'> = { names: [] },
): Found {
  if (typeof found === 'string') return { source: gapOf('metrics', asOf, nodeId, found), reading: null };
  const own = { ...observed('metrics', asOf, found.rows.length), nodeId };
  const lacksGauges = found.withoutGauges && names.some((name) => Object.hasOwn(SAMPLED_GAUGES, name));
  return { source: lacksGauges ? { ...own, complete: false, reason: 'not_supported' } : own, reading: found };
}

// Makes series from what the nodes recorded. Counts are added up, gauges are combined as SAMPLED_GAUGES says, and
// quantiles are computed from the added histograms.

/**
 * One line of a plot. `points` has one number per step. For a counter it is how often the event was counted, and for a
 * gauge its value. For a quantile and for a gauge of time it is the duration in seconds. A point is null if no node
 * recorded the step, or if nothing was measured in it. `label` is null if the metric has no label, and for a quantile
 * over all labels together.
 */
type SeriesLine = {
  readonly name: string;
  readonly label: string | null;
  readonly points: readonly (number | null)[];
};

const MS_PER_SECOND = 1000;
/** Matches the end of the names of metrics whose values are seconds; nodes report those values in milliseconds. */
const UNIT = /_seconds$/;

/**
 * The counts of one label, by the index of the point. A counter has one number for each point, and a histogram one for
 * each bucket.
 */
type Counts = Map<number, Float64Array>;

/** Returns the lines of one series, in order of label. A label without recorded values has no line. */
function linesOf(name: string, source: SeriesSource, readings: readonly NodeReading[]): readonly SeriesLine[] {
  const { metric, quantile } = source;
  const known = knownIn(readings);
  const size = quantile === null ? 1 : BUCKETS;
  const counted = countsByLabel(source, size, readings);
  const scale = source.kind === 'gauge' && UNIT.test(metric) ? MS_PER_SECOND : 1;
  const labelled = [...counted].filter(([label]) => label !== null).sort(byLabel);
  const together = quantile === null ? (counted.get(null) ?? new Map()) : sumOf(counted.values(), size);
  const showsTogether = quantile !== null || LABELS[metric] === undefined;
  const lines: readonly (readonly [string | null, Counts])[] = [
    ...(showsTogether ? [[null, together] as const] : []),
    ...labelled,
  ];
  return lines.map(([label, counts]) => {
    const points = known.map((isKnown, point) => (isKnown ? pointOf(counts.get(point), quantile, scale) : null));
    return { name, label, points };
  });
}

function pointOf(counts: Float64Array | undefined, quantile: number | null, scale: number): number | null {
  if (quantile === null) return (counts?.[0] ?? 0) / scale;
  const ms = counts ? quantileOf(counts, quantile) : null;
  return ms === null ? null : ms / MS_PER_SECOND;
}

function knownIn(readings: readonly NodeReading[]): readonly boolean[] {
  const length = Math.max(0, ...readings.map(({ known }) => known.length));
  return Array.from({ length }, (_, point) => readings.some(({ known }) => known[point] === '1'));
}

type Combine = (a: number, b: number) => number;

function countsByLabel(
  source: SeriesSource,
  size: number,
  readings: readonly NodeReading[],
): Map<string | null, Counts> {
  const found = new Map<string | null, Counts>();
  const combine =
    source.kind === 'gauge' && SAMPLED_GAUGES[source.metric] === 'max' ? Math.max : (a: number, b: number) => a + b;
  for (const { name, label, counts } of readings.flatMap(({ rows }) => rows)) {
    if (name !== source.metric) continue;
    const sums: Counts = found.get(label) ?? new Map();
    found.set(label, sums);
    addRow(sums, size, counts, combine);
  }
  return found;
}

function addRow(sums: Counts, size: number, flat: readonly number[], combine: Combine): void {
  const width = size === 1 ? 2 : 3;
  for (let at = 0; at + width <= flat.length; at += width) {
    const bucket = size === 1 ? 0 : (flat[at + 1] ?? 0);
    const counts = countsAt(sums, flat[at] ?? 0, size);
    counts[bucket] = combine(counts[bucket] ?? 0, flat[at + width - 1] ?? 0);
  }
}

/** Returns the counts of a point, which are all 0 before anything is added. */
function countsAt(sums: Counts, point: number, size: number): Float64Array {
  const counts = sums.get(point) ?? new Float64Array(size);
  sums.set(point, counts);
  return counts;
}

function sumOf(each: Iterable<Counts>, size: number): Counts {
  const sums: Counts = new Map();
  for (const counts of each)
    for (const [point, buckets] of counts) {
      const sum = countsAt(sums, point, size);
      for (const [bucket, count] of buckets.entries()) sum[bucket] = (sum[bucket] ?? 0) + count;
    }
  return sums;
}

function byLabel([a]: readonly [string | null, Counts], [b]: readonly [string | null, Counts]): number {
  return (a ?? '') < (b ?? '') ? -1 : 1;
}

// The texts with which nodes ask each other for what they recorded. Nodes of other versions may send other texts.

const NAMES: ReadonlySet<unknown> = new Set([...COUNTER_NAMES, ...HISTOGRAM_NAMES, ...SAMPLED_GAUGE_NAMES]);

/**
 * Reads a question. Throws if this version does not know its form. Names that this version does not know are left out.
 */
function readQuestion(text: string): ReadingQuery {
  const question: unknown = JSON.parse(text);
  if (!isRecord(question) || !Array.isArray(question['names'])) throw new Error('The question is of another form.');
  const { from, slotMs, stepMs, points, names } = question;
  const isSlot = slotMs === FINE.slotMs || slotMs === COARSE.slotMs;
  if (!isSlot || !isCount(from) || !isCount(stepMs) || !isCount(points))
    throw new Error('The question is of another form.');
  return { names: names.filter(isKnown), from, slotMs, stepMs, points };
}

/** Writes a reading as text. If that would be longer than SERIES_ANSWER_CHARS, writes a text that says so. */
function writeAnswer(reading: NodeReading): string {
  const text = JSON.stringify({ buckets: BUCKETS, gauges: true, ...reading });
  return text.length > SERIES_ANSWER_CHARS ? '{"tooLong":true}' : text;
}

/** Reads an answer: the reading, or why there is none (it was too long, or this version does not know its form). */
function readAnswer(text: string, { points }: Pick<ReadingQuery, 'points'>): NodeReading | IncompleteReason {
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

// Computes the window of a request for series: its steps, and the slots in which they are kept.

type SeriesWindow = Omit<ReadingQuery, 'names'>;

/**
 * Returns the window that ends now. Its last step contains what was counted so far in the open slot. The step is
 * rounded up to whole slots, and further until there are at most SERIES_POINTS points. Throws `invalid_argument` for a
 * window out of range, and for a step that is not above zero.
 */
function windowOf(windowSeconds: number, stepSeconds: number | null, now: number): SeriesWindow {
  const windowMs = within('window_seconds', windowSeconds, SERIES_WINDOW_SECONDS) * 1000;
  if (stepSeconds !== null && !(stepSeconds > 0)) invalid('step_seconds', 'expected more than 0');
  const { slotMs } = windowMs <= FINE.slotMs * FINE.slots ? FINE : COARSE;
  const asked = stepSeconds === null ? windowMs / SERIES_POINTS_DEFAULT : stepSeconds * 1000;
  const stepMs = Math.ceil(Math.max(asked, windowMs / SERIES_POINTS) / slotMs) * slotMs;
  const points = Math.ceil(windowMs / stepMs);
  const end = (Math.floor(now / slotMs) + 1) * slotMs;
  return { from: end - points * stepMs, slotMs, stepMs, points };
}
