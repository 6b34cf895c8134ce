import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Principal } from '../core/auth/principal.ts';
import type { Executor, Operation, Results } from './executor.ts';
import { completeFrame, nextFrame } from './sse-frame.ts';
import type { Groups, Joining, Member } from './sse-group.ts';
import type { Guest, Wire } from './sse-wire.ts';

/** One operation that runs on a stream. When the stream goes, it ends by itself. */
export type Running = {
  /** Ends it and tells the client that it is complete. */
  complete(): void;
};

export type OperationOptions = {
  readonly executor: Executor;
  readonly groups: Groups<unknown>;
  readonly wire: Wire;
  /** Its name on a stream of several; null on a stream of its own. */
  readonly id: string | null;
  /** Called once, later, when it has ended for whatever reason. A stream of its own ends by itself then. */
  readonly onEnd: () => void;
};

export type Asked = Omit<Operation, 'signal' | 'who'> & { readonly who: Principal };

/** Runs what was asked (or shows why it cannot be) as `next` frames and one `complete`, at the reader's pace. */
export function startOperation(asked: Asked | readonly GraphQLError[], options: OperationOptions): Running {
  const operation = new SseOperation(options);
  void operation.run(asked);
  return operation;
}

/** What is shared goes on as the member of a group, which takes its place on the wire. */
class SseOperation implements Guest, Running {
  readonly #options: OperationOptions;
  readonly #hangUp = new AbortController();
  #results: Results | null = null;
  #member: Member<unknown> | null = null;
  #ended = false;

  constructor(options: OperationOptions) {
    this.#options = options;
    options.wire.admit(this);
  }

  async run(asked: Asked | readonly GraphQLError[]): Promise<void> {
    try {
      if (isFaults(asked)) this.#show({ errors: asked });
      else await this.#answer(asked);
    } catch (error) {
      this.#show({ errors: [this.#options.executor.mask(error)] });
    }
    if (!this.#member) this.#end(true);
  }

  complete(): void {
    if (this.#member) this.#member.complete();
    else this.#end(true);
  }

  /** It waits for `ready`. */
  drained(): void {}

  gone(): void {
    this.#end(false);
  }

  async #answer(asked: Asked): Promise<void> {
    const { executor } = this.#options;
    const operation = { ...asked, signal: this.#hangUp.signal };
    if (executor.kindOf(operation) !== 'subscription') return this.#show(await executor.execute(operation));
    const answer = await executor.subscribe(operation);
    if ('shared' in answer) return this.#join(answer);
    return 'next' in answer ? this.#pump(answer) : this.#show(answer);
  }

  #join(joining: Joining<unknown>): void {
    const { groups, wire, id, onEnd } = this.#options;
    if (this.#ended) return joining.shared.tenure.close();
    wire.dismiss(this);
    this.#member = groups.join(joining, { wire, id, onEnd });
  }

  async #pump(source: Results): Promise<void> {
    const { wire } = this.#options;
    this.#results = source;
    while (!this.#ended) {
      await wire.ready();
      const { done, value } = await source.next();
      if (done) return;
      this.#show(value);
    }
    source.return();
  }

  #show(result: ExecutionResult): void {
    if (!this.#ended) this.#options.wire.send(nextFrame(this.#options.id, result));
  }

  #end(tell: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    const { wire, id, onEnd } = this.#options;
    if (tell) wire.send(completeFrame(id));
    wire.dismiss(this);
    this.#hangUp.abort();
    this.#results?.return();
    if (id === null) wire.end();
    onEnd();
  }
}

function isFaults(asked: Asked | readonly GraphQLError[]): asked is readonly GraphQLError[] {
  return Array.isArray(asked);
}
