/**
 * When a pause begins, makes all nodes dispatch again the commands that were dispatched and not written yet, so that
 * the pause applies to them.
 */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { parsedJson, isRecord } from '../json.ts';
import { coverOf, type PauseCover } from '../pauses/pause.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { NodeQuestions } from './node-questions.ts';
import { nodesWithLinks, otherNodes } from './other-nodes.ts';

/** How long to wait for a node's answer, in milliseconds. After that, the node counts as silent. */
const ASK_MS = 1_000;

type PermitsDeps = {
  readonly deps: Deps;
  readonly dispatcher: Pick<Dispatcher, 'renewPermits'>;
  readonly questions: NodeQuestions;
};

/**
 * Makes this node answer such requests of other nodes, and returns the function that asks all nodes. The function
 * resolves when no node can still write a command that was dispatched before the call. It returns the nodes that did
 * not answer.
 */
export function createPermits({ deps, dispatcher, questions }: PermitsDeps) {
  /** Waits for the end of the turn of the event loop, because sockets write the frames of a turn at its end. */
  const renewHere = async (cover: PauseCover): Promise<void> => {
    dispatcher.renewPermits(coverOf(cover));
    await new Promise<void>((written) => deps.loop.atTurnEnd(written));
  };
  questions.answerWith('pause', async (text) => {
    const cover = parsedJson(text);
    // Only the function below, on another node, writes this question, so its content is trusted.
    if (isRecord(cover)) await renewHere(cover as PauseCover);
    return 'renewed';
  });
  return async (cover: PauseCover): Promise<readonly string[]> => {
    const isAlone = deps.backend.pauses.quietMs === 0;
    const [silent] = await Promise.all([isAlone ? [] : askOthers(deps, questions, cover), renewHere(cover)]);
    return silent;
  };
}

async function askOthers(deps: Deps, questions: NodeQuestions, cover: PauseCover): Promise<readonly string[]> {
  const { backend, clock } = deps;
  const began = clock.monotonic();
  // While the store does not say which nodes live, there may be more than those that are known.
  const found = await nodesWithLinks(deps).catch((error: unknown) => {
    if (!isStoreUnavailable(error)) throw error;
    return null;
  });
  const { others } = found ?? (await otherNodes(deps));
  const question = { topic: 'pause', text: JSON.stringify(cover), withinMs: ASK_MS } as const;
  const answers = await Promise.all(others.map((nodeId) => questions.ask(nodeId, question)));
  const silent = others.filter((_, i) => answers[i] === null);
  const left = backend.pauses.quietMs - (clock.monotonic() - began);
  if ((silent.length > 0 || !found) && left > 0) await new Promise<void>((resolve) => void clock.after(left, resolve));
  return silent;
}
