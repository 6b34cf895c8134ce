/** Finds out which commands still run on the link of a leaving client, on this node or on another one. */
import type { Deps } from '../deps.ts';
import type { Command } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { NodeQuestions } from './node-questions.ts';

/** How long to wait for another node's answer, in milliseconds. */
const ASK_MS = 1_000;

/** Asks a node which of these commands of one client still run on a leaving link. */
type LeavingQuestion = { readonly userId: string; readonly clientId: string; readonly commandIds: readonly string[] };

/** Makes this node answer the questions that `leavingElsewhere` sends. */
export function answerLeaving({
  questions,
  dispatcher,
}: {
  readonly questions: NodeQuestions;
  readonly dispatcher: Pick<Dispatcher, 'isLeaving'>;
}): void {
  questions.answerWith('leaving', (text) => {
    const { userId, clientId, commandIds } = JSON.parse(text) as LeavingQuestion;
    const client = { userId, clientId };
    return JSON.stringify(commandIds.filter((commandId) => dispatcher.isLeaving({ ...client, commandId })));
  });
}

/**
 * Returns the commands of a client that still run on a leaving link of another node. Asks about each command the node
 * that dispatched it. If a node does not answer within ASK_MS, or if its answer cannot be read, its commands count as
 * not running. Never rejects.
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

/** Asks a node which of these commands of one client still run on its leaving links. Returns their ids. */
async function askNode(questions: NodeQuestions, nodeId: string, commands: readonly Command[]): Promise<unknown[]> {
  const [first] = commands;
  if (!first) return [];
  const { userId, clientId } = first;
  const question: LeavingQuestion = { userId, clientId, commandIds: commands.map(({ commandId }) => commandId) };
  const text = JSON.stringify(question);
  const answer = await questions.ask(nodeId, { topic: 'leaving', text, withinMs: ASK_MS });
  const running: unknown = answer === null ? [] : JSON.parse(answer);
  if (!Array.isArray(running)) throw new TypeError('The answer is not a list.');
  return running;
}
