/** Makes all nodes ask again for the dispatches that they have not written yet, when a pause begins. */
import type { Deps } from '../deps.ts';
import { parsedJson, isRecord } from '../json.ts';
import { coverOf, type PauseCover } from '../pauses/pause.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { NodeQuestions } from './node-questions.ts';
import { nodesWithLinks } from './other-nodes.ts';

/** How long a node may take to answer, before it counts as silent. */
const ASK_MS = 1_000;

type PermitsDeps = {
  readonly deps: Deps;
  readonly dispatcher: Pick<Dispatcher, 'renewPermits'>;
  readonly questions: NodeQuestions;
};

/**
 * Makes this node answer when another one asks, and returns the function that asks all. It resolves with the nodes that
 * did not answer, after they can write nothing more that was dispatched before the call.
 */
export function createPermits({ deps, dispatcher, questions }: PermitsDeps) {
  /** Sockets write the frames of a turn of the event loop at its end. */
  const renewHere = async (cover: PauseCover): Promise<void> => {
    dispatcher.renewPermits(coverOf(cover));
    await new Promise<void>((written) => deps.loop.atTurnEnd(written));
  };
  questions.answerWith('pause', async (text) => {
    const cover = parsedJson(text);
    // Only `renewPermits` of another node writes the question.
    if (isRecord(cover)) await renewHere(cover as PauseCover);
    await bytesOut(deps);
    return 'renewed';
  });
  return async (cover: PauseCover): Promise<readonly string[]> => {
    const isAlone = deps.backend.pauses.quietMs === 0;
    const [silent] = await Promise.all([isAlone ? [] : askOthers(deps, questions, cover), renewHere(cover)]);
    return silent;
  };
}

/**
 * Resolves once what was written to sockets before has left, or never will: a store may hold it back until what it depends
 * on is recorded. The answer to a client leaves in the same order, but mail to other nodes does not.
 */
function bytesOut({ backend }: Pick<Deps, 'backend'>): Promise<void> {
  return new Promise((done) => (backend.onRecord ? backend.onRecord(done, { destroy: done }) : done()));
}

async function askOthers(deps: Deps, questions: NodeQuestions, cover: PauseCover): Promise<readonly string[]> {
  const { backend, clock } = deps;
  const began = clock.monotonic();
  const { others } = await nodesWithLinks(deps);
  const question = { topic: 'pause', text: JSON.stringify(cover), withinMs: ASK_MS } as const;
  const answers = await Promise.all(others.map((nodeId) => questions.ask(nodeId, question)));
  const silent = others.filter((_, i) => answers[i] === null);
  const left = backend.pauses.quietMs - (clock.monotonic() - began);
  if (silent.length > 0 && left > 0) await new Promise<void>((resolve) => void clock.after(left, resolve));
  return silent;
}
