/** Answers requests for series from what each node recorded. Other nodes are asked once, through their mailboxes. */
import { requireAdmin, type Requester } from '../auth/principal.ts';
import type { Cancel } from '../clock.ts';
import { completenessOf } from '../cursor.ts';
import type { NodeQuestions } from '../delivery/node-questions.ts';
import { otherNodes } from '../delivery/other-nodes.ts';
import type { Deps } from '../deps.ts';
import { invalid, isStoreUnavailable } from '../errors.ts';
import { id } from '../ids.ts';
import { SERIES_ASK_MS, SERIES_LINES } from '../limits.ts';
import { SAMPLED_GAUGES } from '../metrics.ts';
import type { Completeness, IncompleteReason, ObservedSource } from '../page.ts';
import { linesOf, type SeriesLine } from './merge.ts';
import { sourceOf, type SeriesSource } from './names.ts';
import { readAnswer, readQuestion, writeAnswer } from './question.ts';
import type { NodeReading, ReadingQuery } from './reading.ts';
import { FINE } from './slots.ts';
import { windowOf } from './window.ts';

export type SeriesQuery = {
  /** The names of counters, of sampled gauges, and of quantiles of histograms: see `names.ts`. At most SERIES_LINES. */
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

export interface SeriesApi {
  /**
   * Shows how counters, gauges and quantiles changed in the time window that ends now. Admin only. The completeness
   * lists each node; a node that did not answer has the reason `node_silent`. Throws `invalid_argument` for an unknown
   * name and for a window out of range.
   */
  read(requester: Requester, query: SeriesQuery): Promise<SeriesAnswer>;
}

/** The API of series. `start` starts the recording of this node, and returns the function that stops it. */
export type Series = SeriesApi & { start(): Cancel };

export function createSeries(deps: Deps, questions: NodeQuestions): Series {
  const { clock, metrics } = deps;
  questions.answerWith('series', (text) => writeAnswer(metrics.read(readQuestion(text), clock.now())));
  return {
    start: () => closeSlots(deps),
    async read(requester, query) {
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
      return {
        items: lines.slice(0, SERIES_LINES).map((line) => ({ ...line, ...shown })),
        completeness: completenessOf([...found.map(({ source }) => source), ...limitOf(lines.length, clock.now())]),
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
  const source = { source: 'metrics', nodeId, limit: null, asOf } as const;
  if (typeof found === 'string')
    return { source: { ...source, complete: false, observed: 0, reason: found }, reading: null };
  const complete = !(found.withoutGauges && names.some((name) => Object.hasOwn(SAMPLED_GAUGES, name)));
  const reason = complete ? null : 'not_supported';
  return { source: { ...source, complete, observed: found.rows.length, reason }, reading: found };
}

function limitOf(lines: number, asOf: number): readonly ObservedSource[] {
  if (lines <= SERIES_LINES) return [];
  const source = { source: 'metrics', nodeId: null, observed: SERIES_LINES, limit: SERIES_LINES, asOf } as const;
  return [{ ...source, complete: false, reason: 'limit_reached' }];
}
