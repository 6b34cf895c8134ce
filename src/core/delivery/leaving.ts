/** Finds out which commands still run on a link whose client is leaving, on this node or on another one. */
import type { Deps } from '../deps.ts';
import type { CommandKey } from '../ids.ts';
import type { Command } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { NodeQuestions } from './node-questions.ts';

/** How long another node may take to say whether commands still run on its leaving links. */
const ASK_MS = 1_000;

export type LeavingParts = {
  readonly deps: Deps;
  readonly dispatcher: Pick<Dispatcher, 'isLeaving'>;
  readonly questions: NodeQuestions;
};

/** Commands of one client that another node is asked about. */
type Question = { readonly userId: string; readonly clientId: string; readonly commandIds: readonly string[] };

/** Makes this node answer the questions of `leavingElsewhere` from now on. */
export function answerLeaving({ questions, dispatcher }: Pick<LeavingParts, 'questions' | 'dispatcher'>): void {
  questions.answerWith('leaving', (text) => {
    const { userId, clientId, commandIds } = JSON.parse(text) as Question;
    const client = { userId, clientId };
    return JSON.stringify(commandIds.filter((commandId) => dispatcher.isLeaving({ ...client, commandId })));
  });
}

export function isLeavingHere({ dispatcher }: Pick<LeavingParts, 'dispatcher'>, command: Command): boolean {
  return dispatcher.isLeaving(keyOf(command));
}

/**
 * Returns those of a client's commands that still run on a leaving link of another node. Each command is looked up on
 * the node that dispatched it. A node that does not answer within ASK_MS, or whose answer cannot be read, counts as one
 * that runs none. Never rejects.
 */
export async function leavingElsewhere(
  { deps, questions }: Pick<LeavingParts, 'deps' | 'questions'>,
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

function keyOf({ userId, clientId, commandId }: Command): CommandKey {
  return { userId, clientId, commandId };
}
