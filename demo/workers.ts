/** Assigns tasks to workers, and drains windows. */
import type { ReportedContext, ReportedWindow } from '../src/clients/runtime/index.ts';
import { roughly, type Pause } from './relay.ts';

type WorkerTask = { readonly taskId: string; readonly signal: AbortSignal };

type WorkerPoolOptions = {
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

// Defines a desk of the demo: one browser window whose contexts are workers, and the tasks that they do.

/** A worker. It does one task at a time. */
type Worker = {
  readonly contextId: string;
  readonly windowId: string;
  taskId: string | null;
  tasksDone: number;
};

/** A window of workers. `emptied` is called when the window is draining and its last task ends. */
type Desk = {
  readonly windowId: string;
  readonly workers: readonly Worker[];
  draining: boolean;
  emptied: () => void;
};

function openDesk(number: number, workers: number): Desk {
  const windowId = `desk-${number}`;
  const worker = (_: unknown, i: number): Worker => {
    return { contextId: `${windowId}-worker-${i + 1}`, windowId, taskId: null, tasksDone: 0 };
  };
  return { windowId, workers: Array.from({ length: workers }, worker), draining: false, emptied() {} };
}

/** Resolves when a draining window has no tasks. */
function emptied(desk: Desk): Promise<void> {
  if (isEmpty(desk)) return Promise.resolve();
  return new Promise((resolve) => (desk.emptied = resolve));
}

function isEmpty({ workers }: Desk): boolean {
  return workers.every(({ taskId }) => taskId === null);
}

/** Returns the contexts of a window. In a draining window, idle workers are left out, which closes their contexts. */
function deskContexts({ draining, workers }: Desk): readonly ReportedContext[] {
  return workers.filter(({ taskId }) => !draining || taskId !== null).map(contextOf);
}

function deskWindow({ windowId, workers, draining }: Desk): ReportedWindow {
  const size = { tabCount: workers.length, capacity: workers.length };
  return windowOf(windowId, { ownership: 'worker', state: 'minimized', ...size, draining });
}

function contextOf({ contextId, windowId, taskId, tasksDone }: Worker): ReportedContext {
  const metadata = { purpose: 'reports', tasks_done: tasksDone };
  const status = taskId === null ? 'idle' : 'active';
  return { contextId, status, ownership: 'worker', windowId, taskId, title: 'Report builder', metadata };
}

// Defines what a demo client reports: its contexts and windows, and how it announces their changes.

/** The current contexts and windows of a client, for its report. */
export interface DemoPlace {
  contexts(): readonly ReportedContext[];
  windows(): readonly ReportedWindow[];
  /** Sets the one listener that is called after each change. A later call replaces it. */
  onChange(listener: () => void): void;
}

/** Returns a place that never changes: these contexts and no windows. */
export function stillPlace(contexts: readonly ReportedContext[]): DemoPlace {
  return { contexts: () => contexts, windows: () => [], onChange() {} };
}

/** Returns a window of a user's screen. `more` overrides its defaults. */
function windowOf(windowId: string, more: Partial<ReportedWindow> = {}): ReportedWindow {
  const looks = { focused: false, type: 'normal', state: 'normal', incognito: false, tabCount: 1 } as const;
  return { windowId, ownership: 'user-owned', ...looks, draining: false, status: 'open', ...more };
}

// Makes the report of the kiosk, which contains its windows and workers, and renews the windows.

/** The approximate time between two replacements of a worker's window, in milliseconds. */
const RENEW_EVERY_MS = 20_000;
/** How long a window without tasks stays open, in milliseconds. */
const LINGER_MS = 3_000;
const HALL = 'hall';

/** Returns what the kiosk reports: the screen in the entrance hall, and the windows of the workers. */
export function kioskPlace(pool: WorkerPool): DemoPlace {
  const screen = { contextId: 'hall-screen', windowId: HALL, title: 'Welcome' } as const;
  return {
    contexts: () => [{ ...screen, status: 'active', ownership: 'user-owned' }, ...pool.contexts()],
    windows: () => [windowOf(HALL, { focused: true, type: 'app', state: 'fullscreen' }), ...pool.windows()],
    onChange: (listener) => pool.onChange(listener),
  };
}

/**
 * Replaces the windows of workers one after the other: drains a window and opens a new one. Programs do this to bound
 * the memory that their windows leak.
 */
export async function renewDesks(pool: WorkerPool, pause: Pause, signal: AbortSignal): Promise<never> {
  for (;;) {
    await pause(roughly(RENEW_EVERY_MS), signal);
    await pool.renew(() => pause(LINGER_MS, signal));
  }
}
