/** Writes and reads the texts by which nodes ask each other for the waits of their callers, and answer. */
import type { CountedScan, PendingWait, WaiterFilter, WaiterStore } from '../delivery/waiters.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { isRecord } from '../json.ts';
import { WAITS_ANSWER_CHARS } from '../limits.ts';
import type { IncompleteReason, PageRequest, Position } from '../page.ts';

/** What is asked of a node: a read of WaiterStore, by its name. */
export type WaitsQuestion =
  | { readonly read: 'list'; readonly filter: WaiterFilter; readonly page: PageRequest }
  | { readonly read: 'counts'; readonly filter: WaiterFilter }
  | { readonly read: 'ofUsers'; readonly userIds: readonly string[]; readonly first: number }
  | { readonly read: 'ofClients'; readonly keys: readonly ClientKey[]; readonly first: number }
  | { readonly read: 'ofCommands'; readonly keys: readonly CommandKey[] };

type Rows = readonly { readonly row: PendingWait; readonly position: Position }[];

/**
 * The answer of a node. `lists`: one list for the question `list`; for `ofUsers`, `ofClients` and `ofCommands` one for
 * each user, client or command. `counts`: for the question `counts`, the number of waits by the node of their target.
 */
export type WaitsAnswer = {
  readonly lists: readonly { readonly total: number; readonly rows: Rows; readonly next: Position | null }[];
  readonly counts: readonly (readonly [string | null, number])[];
  readonly complete: boolean;
};

/** The version of the form of the texts. Increase it with each change of the form. */
const FORM = 1;
const READS: ReadonlySet<unknown> = new Set(['list', 'counts', 'ofUsers', 'ofClients', 'ofCommands']);

export function writeQuestion(question: WaitsQuestion): string {
  return JSON.stringify({ form: FORM, ...question });
}

/** Answers a question of another node from the waits of this one. Throws if this version does not know its form. */
export async function answerQuestion(waiters: WaiterStore, text: string): Promise<string> {
  const answer = await answerOf(waiters, readQuestion(text));
  const written = JSON.stringify({ form: FORM, ...answer });
  return written.length > WAITS_ANSWER_CHARS ? `{"form":${FORM},"tooLong":true}` : written;
}

function readQuestion(text: string): WaitsQuestion {
  const question: unknown = JSON.parse(text);
  const known = isRecord(question) && question['form'] === FORM && READS.has(question['read']);
  if (!known) throw new Error('The question is of another form.');
  return question as unknown as WaitsQuestion;
}

async function answerOf(waiters: WaiterStore, question: WaitsQuestion): Promise<WaitsAnswer> {
  switch (question.read) {
    case 'list': {
      const { rows, next } = await waiters.list(question.filter, question.page);
      return { lists: [{ total: rows.length, rows, next }], counts: [], complete: true };
    }
    case 'counts': {
      const { counts, complete } = await waiters.countByNode(question.filter);
      return { lists: [], counts: [...counts], complete };
    }
    case 'ofUsers':
      return listsOf(await waiters.ofUsers(question.userIds, question.first));
    case 'ofClients':
      return listsOf(await waiters.ofClients(question.keys, question.first));
    case 'ofCommands': {
      const lists = await waiters.ofCommands(question.keys);
      const rowsOf = (waits: readonly PendingWait[]): Rows => waits.map((row) => ({ row, position: [] }));
      return {
        lists: lists.map((waits) => ({ total: waits.length, rows: rowsOf(waits), next: null })),
        counts: [],
        complete: true,
      };
    }
  }
}

function listsOf(found: readonly CountedScan[]): WaitsAnswer {
  const lists = found.map(({ total, scan }) => ({ total, rows: scan.rows, next: scan.next }));
  return { lists, counts: [], complete: true };
}

/** Reads an answer, or why there is none: it was too long, or this version does not know its form. */
export function readAnswer(text: string): WaitsAnswer | IncompleteReason {
  const answer = parsed(text);
  if (!isRecord(answer) || answer['form'] !== FORM) return 'not_supported';
  if (answer['tooLong'] === true) return 'limit_reached';
  return isAnswer(answer) ? answer : 'not_supported';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isAnswer(answer: object): answer is WaitsAnswer {
  const { lists, counts, complete } = answer as Partial<Record<keyof WaitsAnswer, unknown>>;
  return (
    Array.isArray(lists) &&
    lists.every(isList) &&
    Array.isArray(counts) &&
    counts.every(isCount) &&
    typeof complete === 'boolean'
  );
}

function isList(list: unknown): boolean {
  if (!isRecord(list)) return false;
  const { total, rows, next } = list;
  return typeof total === 'number' && Array.isArray(rows) && rows.every(isRow) && (next === null || isPosition(next));
}

function isRow(row: unknown): boolean {
  if (!isRecord(row) || !isPosition(row['position']) || !isRecord(row['row'])) return false;
  const { waiter, command } = row['row'];
  return isRecord(waiter) && typeof waiter['rpcId'] === 'string' && isRecord(command) && 'stage' in command;
}

function isPosition(position: unknown): position is Position {
  return Array.isArray(position) && position.every((text) => typeof text === 'string');
}

function isCount(count: unknown): boolean {
  return Array.isArray(count) && (count[0] === null || typeof count[0] === 'string') && typeof count[1] === 'number';
}
