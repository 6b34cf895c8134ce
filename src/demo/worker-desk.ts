/** Defines a desk of the demo: one browser window whose contexts are workers, and the tasks that they do. */
import type { ReportedContext, ReportedWindow } from '../clients/runtime/index.ts';
import { windowOf } from './place.ts';

/** A worker. It does one task at a time. */
export type Worker = {
  readonly contextId: string;
  readonly windowId: string;
  taskId: string | null;
  tasksDone: number;
};

/** A window of workers. `emptied` is called when the window is draining and its last task ends. */
export type Desk = {
  readonly windowId: string;
  readonly workers: readonly Worker[];
  draining: boolean;
  emptied: () => void;
};

export function openDesk(number: number, workers: number): Desk {
  const windowId = `desk-${number}`;
  const worker = (_: unknown, i: number): Worker => {
    return { contextId: `${windowId}-worker-${i + 1}`, windowId, taskId: null, tasksDone: 0 };
  };
  return { windowId, workers: Array.from({ length: workers }, worker), draining: false, emptied() {} };
}

/** Resolves when a draining window has no tasks. */
export function emptied(desk: Desk): Promise<void> {
  if (isEmpty(desk)) return Promise.resolve();
  return new Promise((resolve) => (desk.emptied = resolve));
}

export function isEmpty({ workers }: Desk): boolean {
  return workers.every(({ taskId }) => taskId === null);
}

/** Returns the contexts of a window. In a draining window, idle workers are left out, which closes their contexts. */
export function deskContexts({ draining, workers }: Desk): readonly ReportedContext[] {
  return workers.filter(({ taskId }) => !draining || taskId !== null).map(contextOf);
}

export function deskWindow({ windowId, workers, draining }: Desk): ReportedWindow {
  const size = { tabCount: workers.length, capacity: workers.length };
  return windowOf(windowId, { ownership: 'worker', state: 'minimized', ...size, draining });
}

function contextOf({ contextId, windowId, taskId, tasksDone }: Worker): ReportedContext {
  const metadata = { purpose: 'reports', tasks_done: tasksDone };
  const status = taskId === null ? 'idle' : 'active';
  return { contextId, status, ownership: 'worker', windowId, taskId, title: 'Report builder', metadata };
}
