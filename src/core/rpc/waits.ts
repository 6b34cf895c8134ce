/**
 * Reads the waits of all nodes. Each wait is in the memory of the node whose caller waits. For each answer the other
 * nodes are therefore asked once, through their mailboxes. A silent node is not asked; the answer lists it as a gap.
 */
import type { NodeQuestions } from '../delivery/node-questions.ts';
import { otherNodes } from '../delivery/other-nodes.ts';
import type { CountedScan, PendingWait, WaiterFilter } from '../delivery/waiters.ts';
import type { Deps } from '../deps.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { WAITS_ASK_MS } from '../limits.ts';
import { both, thenDo, type MaybePromise } from '../maybe-promise.ts';
import {
  comparePositions,
  type IncompleteReason,
  type ObservedSource,
  type PageRequest,
  type Position,
  type Scan,
} from '../page.ts';
import { silentSources, withGaps } from '../silence.ts';
import { answerQuestion, readAnswer, writeQuestion, type WaitsAnswer, type WaitsQuestion } from './waits-question.ts';

/** The numbers of waits, by the node of the target's connection. `gaps`: the nodes that did not answer. */
export type WaitCounts = {
  readonly counts: ReadonlyMap<string | null, number>;
  readonly complete: boolean;
  readonly gaps: readonly ObservedSource[];
};

/** The reads of WaiterStore over all nodes. The nodes that did not answer are gaps. */
export interface Waits {
  list(filter: WaiterFilter, page: PageRequest): MaybePromise<Scan<PendingWait>>;
  counts(filter: WaiterFilter): MaybePromise<WaitCounts>;
  ofUsers(userIds: readonly string[], first: number): MaybePromise<readonly CountedScan[]>;
  ofClients(keys: readonly ClientKey[], first: number): MaybePromise<readonly CountedScan[]>;
  ofCommands(keys: readonly CommandKey[]): MaybePromise<readonly (readonly PendingWait[])[]>;
}

type Found = { readonly answers: readonly WaitsAnswer[]; readonly gaps: readonly ObservedSource[] };

/** Creates the reads over all nodes. From then on this node also answers the questions of other nodes. */
export function createWaits(deps: Deps, questions: NodeQuestions): Waits {
  const { waiters } = deps.backend;
  questions.answerWith('waits', (text) => answerQuestion(waiters, text));
  const others = (question: WaitsQuestion): MaybePromise<Found> => ask(deps, questions, question);
  const summaries = (own: MaybePromise<readonly CountedScan[]>, question: WaitsQuestion & { readonly first: number }) =>
    both(own, others(question), (found, { answers, gaps }) =>
      found.map((one, i) => ({
        total: one.total + sum(answers.map(({ lists }) => lists[i]?.total ?? 0)),
        scan: withGaps(merge([one.scan, ...answers.flatMap(({ lists }) => lists[i] ?? [])], question.first), gaps),
      })),
    );
  return {
    list: (filter, page) =>
      both(waiters.list(filter, page), others({ read: 'list', filter, page }), (own, { answers, gaps }) =>
        withGaps(answers.length === 0 ? own : merge([own, ...answers.flatMap(({ lists }) => lists)], page.first), gaps),
      ),
    counts: (filter) =>
      both(waiters.countByNode(filter), others({ read: 'counts', filter }), (own, { answers, gaps }) => {
        const counts = new Map(own.counts);
        for (const [node, count] of answers.flatMap((answer) => answer.counts))
          counts.set(node, (counts.get(node) ?? 0) + count);
        return { counts, complete: own.complete && answers.every(({ complete }) => complete), gaps };
      }),
    ofUsers: (userIds, first) => summaries(waiters.ofUsers(userIds, first), { read: 'ofUsers', userIds, first }),
    ofClients: (keys, first) => summaries(waiters.ofClients(keys, first), { read: 'ofClients', keys, first }),
    ofCommands: (keys) =>
      both(waiters.ofCommands(keys), others({ read: 'ofCommands', keys }), (own, { answers }) =>
        own.map((list, i) => {
          const more = answers.flatMap(({ lists }) => lists[i]?.rows.map(({ row }) => row) ?? []);
          return more.length === 0 ? list : [...list, ...more].sort((a, b) => a.waiter.createdAt - b.waiter.createdAt);
        }),
      ),
  };
}

/** Asks the other nodes. In a deployment of one node, the answer comes in the same tick. */
function ask(deps: Deps, questions: NodeQuestions, question: WaitsQuestion): MaybePromise<Found> {
  if (deps.backend.capabilities.shared) return askNodes(deps, questions, question);
  return thenDo(silentSources(deps, 'pending_rpcs'), (gaps) => ({ answers: [], gaps }));
}

async function askNodes(deps: Deps, questions: NodeQuestions, question: WaitsQuestion): Promise<Found> {
  const { others, silent } = await otherNodes(deps);
  const caller = 'filter' in question ? question.filter.callerNodeId : null;
  const asked = others.filter((node) => !silent.has(node) && (caller === null || caller === node));
  const text = writeQuestion(question);
  const answers: WaitsAnswer[] = [];
  const gaps = [...silent].map((nodeId) => gapOf(deps, nodeId, 'node_silent'));
  await Promise.all(
    asked.map(async (nodeId) => {
      const written = await questions.ask(nodeId, { topic: 'waits', text, withinMs: WAITS_ASK_MS });
      const answer = written === null ? 'node_silent' : readAnswer(written);
      if (typeof answer === 'string') gaps.push(gapOf(deps, nodeId, answer));
      else answers.push(answer);
    }),
  );
  return { answers, gaps };
}

function gapOf({ clock }: Deps, nodeId: string, reason: IncompleteReason): ObservedSource {
  return { source: 'pending_rpcs', nodeId, complete: false, observed: 0, limit: null, reason, asOf: clock.now() };
}

type Part = Pick<Scan<PendingWait>, 'rows' | 'next'>;

/**
 * Merges pages of several nodes into one. Rows after the earliest end of these pages are left out, because the node
 * whose page ends there may have more rows.
 */
function merge(parts: readonly Part[], first: number): Scan<PendingWait> {
  const bound = parts.reduce<Position | null>((least, { next }) => lesser(least, next), null);
  const rows = parts
    .flatMap((part) => part.rows)
    .filter(({ position }) => bound === null || comparePositions(position, bound) <= 0)
    .sort((a, b) => comparePositions(a.position, b.position));
  const taken = rows.slice(0, first);
  return { rows: taken, next: rows.length > first ? (taken.at(-1)?.position ?? null) : bound, gaps: [] };
}

function lesser(a: Position | null, b: Position | null): Position | null {
  if (a === null || b === null) return a ?? b;
  return comparePositions(a, b) < 0 ? a : b;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
