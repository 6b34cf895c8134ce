import type { ReportedContext, ReportedWindow } from '../clients/runtime/index.ts';
import { windowOf, type Place } from './place.ts';

export type Task = { readonly taskId: string; readonly signal: AbortSignal };

export type WorkerPoolOptions = {
  readonly windows: number;
  readonly workersInEach: number;
};

/** Windows with workers in them, of which each does one task at a time. */
export interface WorkerPool extends Place {
  /**
   * Does the task's work on a worker, once one is idle, and settles as the work does. Rejects with the signal's reason when it is aborted
   * before; then the work was not begun.
   */
  run<T>(task: Task, work: () => Promise<T>): Promise<T>;
  /**
   * Gives the oldest window no more tasks, waits until it has none left and for `rest`, and opens another in its place. Rejects as `rest`
   * does, with the window still draining.
   */
  renew(rest: () => Promise<void>): Promise<void>;
}

type Worker = { readonly contextId: string; readonly windowId: string; taskId: string | null; tasksDone: number };
type Desk = { readonly windowId: string; readonly workers: readonly Worker[]; draining: boolean; empty: () => void };

export function createWorkerPool({ windows, workersInEach }: WorkerPoolOptions): WorkerPool {
  let opened = 0;
  let desks: readonly Desk[] = Array.from({ length: windows }, () => open(++opened, workersInEach));
  let changed = (): void => {};
  const waiting = new Set<(worker: Worker) => void>();

  const idle = (): Worker | undefined =>
    desks.flatMap((desk) => (desk.draining ? [] : desk.workers)).find((worker) => worker.taskId === null);

  /** To those who waited longest. */
  function hand(): void {
    for (const take of waiting) {
      const worker = idle();
      if (!worker) return;
      waiting.delete(take);
      take(worker);
    }
  }

  /** Assigned already, so that nobody else is given it meanwhile. */
  function assign({ taskId, signal }: Task): Promise<Worker> {
    const { promise, resolve, reject } = Promise.withResolvers<Worker>();
    const take = (worker: Worker): void => {
      signal.removeEventListener('abort', giveUp);
      worker.taskId = taskId;
      resolve(worker);
    };
    const giveUp = (): void => {
      waiting.delete(take);
      reject(signal.reason);
    };
    signal.throwIfAborted();
    signal.addEventListener('abort', giveUp, { once: true });
    waiting.add(take);
    hand();
    return promise;
  }

  function release(worker: Worker): void {
    worker.taskId = null;
    worker.tasksDone++;
    for (const desk of desks) if (desk.draining && isEmpty(desk)) desk.empty();
    hand();
    changed();
  }

  return {
    contexts: () => desks.flatMap((desk) => desk.workers.filter((worker) => isShown(desk, worker)).map(contextOf)),
    windows: () => desks.map((desk) => deskWindow(desk)),
    onChange(listener) {
      changed = listener;
    },
    async run(task, work) {
      const worker = await assign(task);
      changed();
      try {
        return await work();
      } finally {
        release(worker);
      }
    },
    async renew(rest) {
      const old = desks.find(({ draining }) => !draining);
      if (!old) return;
      old.draining = true;
      changed();
      await emptied(old);
      await rest();
      desks = [...desks.filter((desk) => desk !== old), open(++opened, workersInEach)];
      hand();
      changed();
    },
  };
}

function open(number: number, workers: number): Desk {
  const windowId = `desk-${number}`;
  const worker = (_: unknown, i: number): Worker => {
    return { contextId: `${windowId}-worker-${i + 1}`, windowId, taskId: null, tasksDone: 0 };
  };
  return { windowId, workers: Array.from({ length: workers }, worker), draining: false, empty() {} };
}

function emptied(desk: Desk): Promise<void> {
  if (isEmpty(desk)) return Promise.resolve();
  return new Promise((resolve) => (desk.empty = resolve));
}

function isEmpty({ workers }: Desk): boolean {
  return workers.every(({ taskId }) => taskId === null);
}

/** What has nothing left to do in a window that is to go is closed. */
function isShown({ draining }: Desk, { taskId }: Worker): boolean {
  return !draining || taskId !== null;
}

function contextOf({ contextId, windowId, taskId, tasksDone }: Worker): ReportedContext {
  const metadata = { purpose: 'reports', tasks_done: tasksDone };
  const status = taskId === null ? 'idle' : 'active';
  return { contextId, status, ownership: 'worker', windowId, taskId, title: 'Report builder', metadata };
}

function deskWindow({ windowId, workers, draining }: Desk): ReportedWindow {
  const size = { tabCount: workers.length, capacity: workers.length };
  return windowOf(windowId, { ownership: 'worker', state: 'minimized', ...size, draining });
}
