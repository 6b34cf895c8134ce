/** Keeps the tasks of the demo's board in memory. */

export type Task = { readonly id: string; readonly title: string; readonly done: boolean };

const TITLES = [
  'Sweep the stage',
  'Mend the curtain',
  'Call the half',
  'Tune the piano',
  'Print the programmes',
  'Hang the lamps',
  'Feed the cat',
  'Find the other glove',
];
/** The most tasks that may be open at once. */
const OPEN_MAX = 6;
/** The number of tasks above which finished ones are removed. */
const KEPT_MAX = 12;

/** The tasks of the board. Only the application has them. */
export interface Tasks {
  list(): readonly Task[];
  /** Adds a task. Null: too many tasks are open. The oldest finished tasks are removed to make room. */
  add(): Task | null;
  /** Finishes a task. Null: there is no such task. Finishing it again changes nothing. */
  finish(id: string): Task | null;
}

export function createTasks(): Tasks {
  const tasks = new Map<string, Task>();
  let made = 0;

  function add(): Task | null {
    const open = [...tasks.values()].filter(({ done }) => !done);
    if (open.length >= OPEN_MAX) return null;
    const title = TITLES[made % TITLES.length] ?? 'Do something';
    const task = { id: `t${++made}`, title, done: false };
    tasks.set(task.id, task);
    for (const { id, done } of tasks.values()) if (tasks.size > KEPT_MAX && done) tasks.delete(id);
    return task;
  }

  for (let count = 0; count < 3; count++) add();
  return {
    list: () => [...tasks.values()],
    add,
    finish(id) {
      const task = tasks.get(id);
      if (!task) return null;
      const finished = { ...task, done: true };
      tasks.set(id, finished);
      return finished;
    },
  };
}
