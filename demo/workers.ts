/** Assigns tasks to workers, and drains windows. */
import type { ReportedContext, ReportedWindow } from '../clients/runtime/index.ts';
import type { DemoPlace } from './place.ts';
import { deskContexts, deskWindow, emptied, isEmpty, openDesk, type Desk, type Worker } from './worker-desk.ts';

export type WorkerTask = { readonly taskId: string; readonly signal: AbortSignal };

export type WorkerPoolOptions = {
  readonly windows: number;
  readonly workersInEach: number;
};

/** A pool of windows of workers. Each worker does one task at a time. */
export interface WorkerPool extends DemoPlace {
  /**
   * Waits for an idle worker, assigns the task to it and runs `work`. Settles like `work`. Rejects with the signal's
   * reason if the signal is aborted before a worker is idle; `work` is then not called.
   */
  run<T>(task: WorkerTask, work: () => Promise<T>): Promise<T>;
  /**
   * Drains the oldest window: assigns no more tasks to it, waits until it has none, awaits `rest`, and replaces it with
   * a new window. Rejects if `rest` rejects; the window is then still draining.
   */
  renew(rest: () => Promise<void>): Promise<void>;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  return new DeskPool(options);
}

class DeskPool implements WorkerPool {
  readonly #workersInEach: number;
  #opened = 0;
  #desks: readonly Desk[];
  #changed = (): void => {};
  /** The tasks that wait for an idle worker, oldest first. */
  readonly #waiting = new Set<(worker: Worker) => void>();

  constructor({ windows, workersInEach }: WorkerPoolOptions) {
    this.#workersInEach = workersInEach;
    this.#desks = Array.from({ length: windows }, () => this.#open());
  }

  contexts(): readonly ReportedContext[] {
    return this.#desks.flatMap(deskContexts);
  }

  windows(): readonly ReportedWindow[] {
    return this.#desks.map(deskWindow);
  }

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  async run<T>(task: WorkerTask, work: () => Promise<T>): Promise<T> {
    const worker = await this.#assign(task);
    this.#changed();
    try {
      return await work();
    } finally {
      this.#release(worker);
    }
  }

  async renew(rest: () => Promise<void>): Promise<void> {
    const old = this.#desks.find(({ draining }) => !draining);
    if (!old) return;
    old.draining = true;
    this.#changed();
    await emptied(old);
    await rest();
    this.#desks = [...this.#desks.filter((desk) => desk !== old), this.#open()];
    this.#hand();
    this.#changed();
  }

  #open(): Desk {
    return openDesk(++this.#opened, this.#workersInEach);
  }

  /**
   * Waits for an idle worker. Sets the worker's `taskId` as soon as it is found, so that no other task gets the same
   * worker.
   */
  #assign({ taskId, signal }: WorkerTask): Promise<Worker> {
    const { promise, resolve, reject } = Promise.withResolvers<Worker>();
    const take = (worker: Worker): void => {
      signal.removeEventListener('abort', giveUp);
      worker.taskId = taskId;
      resolve(worker);
    };
    const giveUp = (): void => {
      this.#waiting.delete(take);
      reject(signal.reason);
    };
    signal.throwIfAborted();
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.add(take);
    this.#hand();
    return promise;
  }

  #release(worker: Worker): void {
    worker.taskId = null;
    worker.tasksDone++;
    for (const desk of this.#desks) if (desk.draining && isEmpty(desk)) desk.emptied();
    this.#hand();
    this.#changed();
  }

  #hand(): void {
    for (const take of this.#waiting) {
      const worker = this.#idle();
      if (!worker) return;
      this.#waiting.delete(take);
      take(worker);
    }
  }

  #idle(): Worker | undefined {
    const workers = this.#desks.flatMap((desk) => (desk.draining ? [] : desk.workers));
    return workers.find(({ taskId }) => taskId === null);
  }
}
