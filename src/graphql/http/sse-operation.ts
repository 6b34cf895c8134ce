/** Runs one operation on an event stream. It must not produce results faster than the reader reads them. */
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { GroupMember, Groups, Joining } from '../../web/sse-group.ts';
import type { SseStream, StreamMember } from '../../web/sse.ts';
import type { Executor, Operation } from '../execute/executor.ts';
import type { Results } from '../execute/subscriptions.ts';
import { SSE_FRAMES, nextFrame, completeFrame } from './sse-frames.ts';

/** A running operation of a stream. It ends by itself when the stream ends. */
export type Running = {
  /** Ends the operation with a `complete` frame. */
  complete(): void;
};

export type OperationOptions = {
  readonly executor: Executor;
  readonly groups: Groups<unknown>;
  readonly stream: SseStream;
  /** See `Core.subscribed`. */
  readonly subscribed: () => MaybePromise<void>;
  /** The operation's id on a stream that carries several operations; null if the stream carries only this one. */
  readonly id: string | null;
  /**
   * Called once when the operation has ended for any reason, but never before `run` has returned its promise. A stream
   * that carries only this operation ends first.
   */
  readonly onEnd: () => void;
};

type StreamOperation = Omit<Operation, 'signal' | 'requester'> & { readonly requester: Principal };
/** The requested operation, or the errors of the request's document. */
export type Requested = StreamOperation | readonly GraphQLError[];

/**
 * Runs an operation and writes its results to the stream. If its subscription is shared, a group writes them instead.
 */
export class SseOperation implements StreamMember, Running {
  readonly #options: OperationOptions;
  readonly #hangUp = new AbortController();
  #results: Results | null = null;
  #member: GroupMember<unknown> | null = null;
  #ended = false;

  constructor(options: OperationOptions) {
    this.#options = options;
    options.stream.addMember(this);
  }

  /**
   * Runs the operation, or sends the errors of its document. Results and errors are sent as `next` frames, followed by
   * one `complete`. Results are not produced faster than the reader reads them.
   */
  async run(requested: Requested): Promise<void> {
    try {
      if ('plan' in requested) await this.#answer(requested);
      else {
        this.#show({ errors: requested });
        // Delayed by one microtask, so that `onEnd` is called only after the caller has registered the operation.
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
    const { executor, stream, subscribed } = this.#options;
    const operation = { ...requested, signal: this.#hangUp.signal };
    if (operation.plan?.operation !== 'subscription') {
      stream.begin();
      return this.#show(await executor.execute(operation));
    }
    const answer = await executor.subscribe(operation, SSE_FRAMES);
    if ('shared' in answer) this.#join(answer);
    else if (!('next' in answer)) return this.#show(answer);
    void thenDo(subscribed(), () => stream.begin());
    if ('next' in answer) await this.#pump(answer);
  }

  #join(joining: Joining<unknown>): void {
    const { groups, stream, id, onEnd } = this.#options;
    // The operation ended while it was subscribing. There is no member that would end the lifetime, so it is ended
    // here.
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
