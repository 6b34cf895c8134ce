/** Serves the task board's own pages and its tasks, which it keeps in memory. It does not use callboard. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HTML, allHtml, boardHtml, send, servePages } from './pages.ts';
import type { Viewers } from './parts.ts';

type BoardServerOptions = {
  readonly tasks: Tasks;
  /** Returns the viewers; null until their sessions are open. */
  viewers(): Viewers | null;
  /** Returns the bearer token required for changing tasks; null while they cannot be changed. */
  apiToken(): string | null;
  changed(reason: string, id: string): void;
};

/** Serves pages and tasks for viewers, and an authenticated API to change tasks. */
export function startBoardServer(options: BoardServerOptions) {
  return servePages((request, response, key) => {
    const { method, url = '' } = request;
    const [, id] = /^\/api\/tasks\/(t\d{1,9})\/finish$/.exec(url) ?? [];
    if (method === 'POST' && id !== undefined) return finish(request, response, { ...options, id });
    const [, given, name = ''] = /^\/([\w-]+)\/(\w+)$/.exec(url) ?? [];
    const shown = options.viewers();
    if (method !== 'GET' || given !== key || !shown) return void response.writeHead(404).end();
    if (name === 'tasks') return json(response, 200, options.tasks.list());
    const viewer = shown.viewers.find((known) => known.name === name);
    if (viewer) return send(response, HTML, boardHtml(shown.relayUrl, viewer));
    if (name === 'all') return send(response, HTML, allHtml(shown.viewers));
    response.writeHead(404).end();
  });
}

function finish(
  request: IncomingMessage,
  response: ServerResponse,
  { tasks, apiToken, changed, id }: BoardServerOptions & { readonly id: string },
): void {
  const wanted = Buffer.from(`Bearer ${apiToken() ?? randomBytes(24).toString('hex')}`);
  const given = Buffer.from(request.headers.authorization ?? '');
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return void response.writeHead(401).end();
  const before = tasks.list().find((task) => task.id === id);
  const task = tasks.finish(id);
  if (!task) return json(response, 404, { message: `There is no task ${id}.` });
  if (before?.done === false) changed('task_finished', id);
  json(response, 200, task);
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

type Task = { readonly id: string; readonly title: string; readonly done: boolean };

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

type Tasks = ReturnType<typeof createTasks>;

/** Creates the board's tasks. Only the application holds them; the relay does not. */
export function createTasks() {
  const tasks = new Map<string, Task>();
  let made = 0;

  /** Adds a task; returns null if too many are open. Above KEPT_MAX tasks, the oldest finished ones are removed. */
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
    list: (): readonly Task[] => [...tasks.values()],
    add,
    /** Finishes a task; returns null if there is no such task. Finishing it again changes nothing. */
    finish(id: string): Task | null {
      const task = tasks.get(id);
      if (!task) return null;
      const finished = { ...task, done: true };
      tasks.set(id, finished);
      return finished;
    },
  };
}
