/** Answers requests for time series. Asks each other node once, through its mailbox, for what it recorded. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { otherNodes } from '../commands/other-nodes.ts';
import type { NodeQuestions } from '../commands/node-questions.ts';
import {
  completenessOf,
  gapOf,
  observed,
  type Completeness,
  type IncompleteReason,
  type ObservedSource,
} from '../completeness.ts';
import type { Deps } from '../deps.ts';
import { invalid, isStoreUnavailable } from '../errors.ts';
import { id } from '../ids.ts';
import { SERIES_ASK_MS, SERIES_LINES } from '../limits.ts';
import { SAMPLED_GAUGES } from '../metrics.ts';
import type { Cancel } from '../ports.ts';
import { FINE, type NodeReading, type ReadingQuery } from './reading.ts';
import { type SeriesLine, linesOf } from './series-lines.ts';
import { writeAnswer, readQuestion, readAnswer } from './series-messages.ts';
import { sourceOf, type SeriesSource } from './series-source.ts';
import { windowOf } from './series-window.ts';

export type SeriesQuery = {
  /**
   * The names of the series: those of counters, of sampled gauges, and of quantiles of histograms (see
   * `../metrics.ts`). At most SERIES_LINES.
   */
  readonly names: readonly string[];
  readonly windowSeconds: number;
  readonly stepSeconds?: number | null | undefined;
  /** The node whose series are shown; null or absent: all nodes together. */
  readonly nodeId?: string | null | undefined;
};

/**
 * One series as it is shown. `from`: the beginning of the first step, in epoch milliseconds. `nodeId`: null if the
 * series is of all nodes together.
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
    /** Starts recording the values of this node. Returns the function that stops it. */
    start: () => closeSlots(deps),
    /**
     * Returns how counters, gauges and quantiles changed in the time window that ends now. Admin only. The completeness
     * lists each node; if a node did not answer, its reason is `node_silent`. Throws `invalid_argument` if a name is
     * unknown, or if the window is out of range.
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

/** Closes each slot at the end of its time. */
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

type NodeSeries = { readonly source: ObservedSource; readonly reading: NodeReading | null };
type SeriesRequest = { readonly nodeId: string | null; readonly query: ReadingQuery };

async function readNodes(
  deps: Deps,
  questions: NodeQuestions,
  { nodeId, query }: SeriesRequest,
): Promise<readonly NodeSeries[]> {
  const { clock, metrics, nodeId: self } = deps;
  const own: readonly NodeSeries[] =
    nodeId !== null && nodeId !== self ? [] : [foundAt(self, clock.now(), metrics.read(query, clock.now()))];
  if (nodeId === self) return own;
  try {
    const { others, silent } = await otherNodes(deps);
    const answers = (nodeId === null ? others : [nodeId]).map(async (other): Promise<NodeSeries> => {
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
): NodeSeries {
  if (typeof found === 'string') return { source: gapOf('metrics', asOf, nodeId, found), reading: null };
  const own = { ...observed('metrics', asOf, found.rows.length), nodeId };
  const lacksGauges = found.withoutGauges && names.some((name) => Object.hasOwn(SAMPLED_GAUGES, name));
  return { source: lacksGauges ? { ...own, complete: false, reason: 'not_supported' } : own, reading: found };
}
