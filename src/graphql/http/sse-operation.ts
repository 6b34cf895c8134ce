/** Runs one operation on an event stream. It must not produce results faster than the reader reads them. */
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import type { Executor, Operation, Results } from '../execution/executor.ts';
import { completeFrame, nextFrame, SSE_FRAMES } from './sse-frame.ts';
import type { Groups, Joining, GroupMember } from '../../web/sse-group.ts';
import type { StreamMember, SseStream } from '../../web/sse-stream.ts';

/** One operation that runs on a stream. It ends by itself when the stream ends. */
export type Running = {
  /** Ends the operation with a `complete` frame. */
  complete(): void;
};

export type OperationOptions = {
  readonly executor: Executor;
  readonly groups: Groups<unknown>;
  readonly stream: SseStream;
  /** The operation id on a stream that carries several; null on a stream of its own. */
  readonly id: string | null;
  /**
   * Called once, when the operation has ended for any reason, but never before `startOperation` returns. If the
   * operation has a stream of its own, that stream ends first.
   */
  readonly onEnd: () => void;
};

export type StreamOperation = Omit<Operation, 'signal' | 'requester'> & { readonly requester: Principal };

/**
 * Runs the operation, or sends the errors of its document. Results and errors are sent as `next` frames, followed by
 * one `complete`. Results are produced no faster than the reader reads them.
 */
export function startOperation(
  requested: StreamOperation | readonly GraphQLError[],
  options: OperationOptions,
): Running {
  const operation = new SseOperation(options);
  void operation.run(requested);
  return operation;
}

/**
 * An operation that writes to its stream itself. If its subscription is shared, a group writes to the stream instead.
 */
class SseOperation implements StreamMember, Running {
  readonly #options: OperationOptions;
  readonly #hangUp = new AbortController();
  #results: Results | null = null;
  #member: GroupMember<unknown> | null = null;
  #ended = false;

  constructor(options: OperationOptions) {
    this.#options = options;
    options.stream.addMember(this);
  }

  async run(requested: StreamOperation | readonly GraphQLError[]): Promise<void> {
    try {
      if (!isFaults(requested)) await this.#answer(requested);
      else {
        this.#show({ errors: requested });
        // The end is reported later, after the caller of `startOperation` has registered the operation.
        await null;
      }
    } catch (error) {
      this.#show({ errors: [this.#options.executor.mask(error)] });
    }
    if (!this.#member) this.#end(true);
  }

  complete(): void {
    if (this.#member) this.#member.complete();
    else this.#end(true);
  }

  /** Does nothing, because `#pump` awaits `ready`. */
  drained(): void {}

  gone(): void {
    this.#end(false);
  }

  async #answer(requested: StreamOperation): Promise<void> {
    const { executor } = this.#options;
    const operation = { ...requested, signal: this.#hangUp.signal };
    if (executor.kindOf(operation) !== 'subscription') return this.#show(await executor.execute(operation));
    const answer = await executor.subscribe(operation, SSE_FRAMES);
    if ('shared' in answer) return this.#join(answer);
    return 'next' in answer ? this.#pump(answer) : this.#show(answer);
  }

  #join(joining: Joining<unknown>): void {
    const { groups, stream, id, onEnd } = this.#options;
    if (this.#ended) return joining.shared.lifetime.close();
    stream.removeMember(this);
    this.#member = groups.join(joining, { stream, id, onEnd });
  }

  async #pump(source: Results): Promise<void> {
    const { stream } = this.#options;
    this.#results = source;
    while (!this.#ended) {
      await stream.ready();
      const { done, value } = await source.next();
      if (done) return;
      this.#show(value);
    }
    source.return();
  }

  #show(result: ExecutionResult): void {
    if (!this.#ended) this.#options.stream.send(nextFrame(this.#options.id, result));
  }

  #end(tell: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    const { stream, id, onEnd } = this.#options;
    if (tell) stream.send(completeFrame(id));
    stream.removeMember(this);
    this.#hangUp.abort();
    this.#results?.return();
    if (id === null) stream.end();
    onEnd();
  }
}

function isFaults(requested: StreamOperation | readonly GraphQLError[]): requested is readonly GraphQLError[] {
  return Array.isArray(requested);
}
