import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Principal } from '../core/auth/principal.ts';
import type { Executor, Operation, Results } from './executor.ts';
import { completeFrame, nextFrame, type Wire } from './sse-wire.ts';

/** One operation that runs on a stream. */
export type Running = {
  /** Ends it and tells the client that it is complete. */
  complete(): void;
  /** Ends it without a word: the stream itself is gone. */
  drop(): void;
};

export type OperationOptions = {
  readonly executor: Executor;
  readonly wire: Wire;
  /** Its name on a stream of several; null on a stream of its own. */
  readonly id: string | null;
  /** Called once, when it has ended for whatever reason. */
  readonly onEnd: () => void;
};

export type Asked = Omit<Operation, 'signal' | 'who'> & { readonly who: Principal };

/** Runs what was asked (or shows why it cannot be) as `next` frames and one `complete`, at the reader's pace. */
export function startOperation(asked: Asked | readonly GraphQLError[], options: OperationOptions): Running {
  const { executor, wire, id, onEnd } = options;
  const hangUp = new AbortController();
  let ended = false;
  let results: Results | null = null;
  const end = (tell: boolean): void => {
    if (ended) return;
    ended = true;
    if (tell) wire.send(completeFrame(id));
    hangUp.abort();
    results?.return();
    onEnd();
  };
  const show = (result: ExecutionResult): void => {
    if (!ended) wire.send(nextFrame(id, result));
  };
  const pump = async (source: Results): Promise<void> => {
    results = source;
    while (!ended) {
      await wire.ready();
      const { done, value } = await source.next();
      if (done) return;
      show(value);
    }
    source.return();
  };
  const run = async (): Promise<void> => {
    if (isFaults(asked)) return show({ errors: asked });
    const answer = await answerOf(executor, { ...asked, signal: hangUp.signal });
    return 'next' in answer ? pump(answer) : show(answer);
  };
  const failed = (error: unknown): void => show({ errors: [executor.mask(error)] });
  void run()
    .catch(failed)
    .then(() => end(true));
  return { complete: () => end(true), drop: () => end(false) };
}

function answerOf(executor: Executor, operation: Operation): Promise<Results | ExecutionResult> {
  return executor.kindOf(operation) === 'subscription' ? executor.subscribe(operation) : executor.execute(operation);
}

function isFaults(asked: Asked | readonly GraphQLError[]): asked is readonly GraphQLError[] {
  return Array.isArray(asked);
}
