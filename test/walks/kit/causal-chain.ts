/** Finds the files of `src` whose code led from one moment to a later one, through callbacks, promises and ticks. */
import { createHook, executionAsyncId } from 'node:async_hooks';

/**
 * A moment at which code scheduled a callback or resolved a promise: when that was, the id of the async resource in
 * which the code ran, and the files of the code.
 */
type Moment = { readonly at: number; readonly by: number; readonly files: readonly string[] };
type Resource = Moment & { readonly type: string; readonly trigger: number };

const FRAME = /^\s+at (?!async ).*\/src\/([^:]+\.ts):\d+/;

/**
 * Records the causes of what happens in this process until it is disposed. A callback is caused by the code that
 * scheduled it. The continuation of a promise is also caused by the code that resolved the promise. Each cause has the
 * files of its stack, and the async resource in which it ran. That resource has causes of its own.
 */
export class CausalChain implements Disposable {
  readonly #resources = new Map<number, Resource>();
  readonly #resolved = new Map<number, Moment>();
  readonly #stackTraceLimit = Error.stackTraceLimit;
  readonly #hook = createHook({
    init: (id, type, trigger) => void this.#resources.set(id, { ...this.#moment(), type, trigger }),
    promiseResolve: (id) => {
      if (!this.#resolved.has(id)) this.#resolved.set(id, this.#moment());
    },
  });
  #clock = 0;

  constructor() {
    Error.stackTraceLimit = Infinity;
    this.#hook.enable();
  }

  /** Records the present moment and returns its number for `since`. */
  mark(): number {
    return this.#clock++;
  }

  /** Returns the files below `src` whose code led from the moment `mark` to this call, in order. */
  since(mark: number): readonly string[] {
    const found: Moment[] = [this.#moment()];
    const seen = new Set<number>();
    const visit = (id: number): void => {
      const resource = this.#resources.get(id);
      if (seen.has(id) || !resource) return;
      seen.add(id);
      const causes = [resource];
      if (resource.type === 'PROMISE') visit(resource.trigger);
      const resolved = resource.type === 'PROMISE' ? this.#resolved.get(resource.trigger) : undefined;
      for (const cause of resolved ? [...causes, resolved] : causes) {
        if (cause.at < mark) continue;
        found.push(cause);
        visit(cause.by);
      }
    };
    visit(executionAsyncId());
    return [...new Set(found.sort((a, b) => a.at - b.at).flatMap(({ files }) => files))];
  }

  [Symbol.dispose](): void {
    this.#hook.disable();
    Error.stackTraceLimit = this.#stackTraceLimit;
  }

  #moment(): Moment {
    const lines = (new Error().stack ?? '').split('\n');
    const files = lines.flatMap((line) => FRAME.exec(line)?.[1] ?? []).reverse();
    return { at: this.#clock++, by: executionAsyncId(), files };
  }
}
