/**
 * Lets a node ask other nodes questions through their mailboxes, lists the nodes to ask, and asks which commands still
 * run on leaving links.
 */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { PAGE_MAX } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Command } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { MailboxRow } from './stores.ts';

type QuestionRow = Extract<MailboxRow, { kind: 'question' | 'answer' }>;
/** What a question is about: each topic has one function that answers. */
type Topic = Extract<QuestionRow, { kind: 'question' }>['topic'];

export class NodeQuestions {
  readonly #deps: Pick<Deps, 'nodeId' | 'backend' | 'clock' | 'crypto' | 'log'>;
  readonly #answerers = new Map<Topic, (question: string) => MaybePromise<string>>();
  readonly #open = new Map<string, (answer: string) => void>();

  constructor(deps: Pick<Deps, 'nodeId' | 'backend' | 'clock' | 'crypto' | 'log'>) {
    this.#deps = deps;
  }

  /**
   * Sets the function with which this node answers questions about a topic. What `answer` throws is logged, and the
   * question stays unanswered.
   */
  answerWith(topic: Topic, answer: (question: string) => MaybePromise<string>): void {
    this.#answerers.set(topic, answer);
  }

  /**
   * Asks a node once. Null: there is no such live node, it has not answered within this time, or the store is
   * unavailable.
   */
  async ask(nodeId: string, question: { readonly topic: Topic; readonly text: string; readonly withinMs: number }) {
    const { backend, clock, crypto, nodeId: from } = this.#deps;
    const { topic, text, withinMs } = question;
    const questionId = crypto.randomId();
    const { promise, resolve } = Promise.withResolvers<string | null>();
    this.#open.set(questionId, resolve);
    const cancel = clock.after(withinMs, () => resolve(null));
    try {
      const posted = await backend.nodes.post(nodeId, { kind: 'question', questionId, from, topic, text });
      return posted ? await promise : null;
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
      return null;
    } finally {
      cancel();
      this.#open.delete(questionId);
    }
  }

  /** Takes a row of this node's mailbox. */
  receive(row: QuestionRow): void {
    if (row.kind === 'answer') this.#open.get(row.questionId)?.(row.text);
    else void this.#answer(row);
  }

  async #answer({ questionId, from, topic, text }: Extract<QuestionRow, { kind: 'question' }>): Promise<void> {
    const { backend, log } = this.#deps;
    try {
      const answer = await this.#answerers.get(topic)?.(text);
      if (answer !== undefined) await backend.nodes.post(from, { kind: 'answer', questionId, text: answer });
    } catch (error) {
      log.warn({ err: error, topic, from }, 'a question of another node was not answered');
    }
  }
}

// Reads which other nodes there are, for answers that are merged from what each node knows.

/**
 * `others`: the ids of all other nodes in order, including silent ones. `silent`: the ids of the silent nodes. Answers
 * list them as gaps, and they are not asked.
 */
type OtherNodes = { readonly others: readonly string[]; readonly silent: ReadonlySet<string> };

export async function otherNodes({ backend, nodeId }: Pick<Deps, 'backend' | 'nodeId'>): Promise<OtherNodes> {
  const [silent, { rows }] = await Promise.all([
    backend.nodes.silent(),
    backend.nodes.list({ first: PAGE_MAX, after: null }),
  ]);
  const others = new Set([...rows.map(({ row }) => row.nodeId), ...silent]);
  others.delete(nodeId);
  return { others: [...others].sort(), silent: new Set(silent) };
}

// Finds out which commands still run on a link whose client is leaving, on this node or on another one.

/** How long another node may take to say whether commands still run on its leaving links. */
const ASK_MS = 1_000;

/** Commands of one client that another node is asked about. */
type Question = { readonly userId: string; readonly clientId: string; readonly commandIds: readonly string[] };

/** Makes this node answer the questions of `leavingElsewhere` from now on. */
export function answerLeaving({
  questions,
  dispatcher,
}: {
  readonly questions: NodeQuestions;
  readonly dispatcher: Pick<Dispatcher, 'isLeaving'>;
}): void {
  questions.answerWith('leaving', (text) => {
    const { userId, clientId, commandIds } = JSON.parse(text) as Question;
    const client = { userId, clientId };
    return JSON.stringify(commandIds.filter((commandId) => dispatcher.isLeaving({ ...client, commandId })));
  });
}

/**
 * Returns those of a client's commands that still run on a leaving link of another node. Each command is looked up on
 * the node that dispatched it. A node that does not answer within ASK_MS, or whose answer cannot be read, counts as one
 * that runs none. Never rejects.
 */
export async function leavingElsewhere(
  { deps, questions }: { readonly deps: Deps; readonly questions: NodeQuestions },
  commands: readonly Command[],
): Promise<readonly Command[]> {
  const nodes = Map.groupBy(commands, ({ nodeId }) => nodeId);
  const asked = [...nodes].map(async ([nodeId, some]) => {
    if (nodeId === null || nodeId === deps.nodeId) return [];
    try {
      const running = new Set(await askNode(questions, nodeId, some));
      return some.filter(({ commandId }) => running.has(commandId));
    } catch (error) {
      deps.log.warn({ err: error, node: nodeId }, 'could not ask a node for the commands of a leaving client');
      return [];
    }
  });
  return (await Promise.all(asked)).flat();
}

/** Asks the node which of these commands of one client still run on its leaving links. Returns their ids. */
async function askNode(questions: NodeQuestions, nodeId: string, commands: readonly Command[]): Promise<unknown[]> {
  const [first] = commands;
  if (!first) return [];
  const { userId, clientId } = first;
  const question: Question = { userId, clientId, commandIds: commands.map(({ commandId }) => commandId) };
  const text = JSON.stringify(question);
  const answer = await questions.ask(nodeId, { topic: 'leaving', text, withinMs: ASK_MS });
  const running: unknown = answer === null ? [] : JSON.parse(answer);
  if (!Array.isArray(running)) throw new TypeError('The answer is not a list.');
  return running;
}
