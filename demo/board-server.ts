/** Runs the task board's own HTTP server, which keeps the tasks in memory. It does not use callboard. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { allHtml, boardHtml, type Viewers } from './board-page.ts';

type BoardServer = {
  readonly server: Server;
  readonly port: number;
  /** A secret in the addresses of the pages, because a page contains its viewer's token. */
  readonly key: string;
};

type BoardServerOptions = {
  readonly tasks: Tasks;
  /** Returns the viewers; null until there are any. */
  viewers(): Viewers | null;
  /** Returns the bearer token required for changing tasks; null while they cannot be changed. */
  apiToken(): string | null;
  changed(reason: string, id: string): void;
};

/** Starts the application's own HTTP server: pages and tasks for viewers, and an authenticated API to change tasks. */
export function startBoardServer(options: BoardServerOptions): Promise<BoardServer> {
  const key = randomBytes(12).toString('base64url');
  const server = createServer((request, response) => answer(request, response, { ...options, key }));
  const { promise, resolve, reject } = Promise.withResolvers<BoardServer>();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    resolve({ server, key, port: typeof address === 'object' && address !== null ? address.port : 0 });
  });
  return promise;
}

type Answering = BoardServerOptions & { readonly key: string };

function answer(request: IncomingMessage, response: ServerResponse, options: Answering): void {
  const { method, url = '' } = request;
  response.setHeader('cache-control', 'no-store');
  const [, id] = /^\/api\/tasks\/(t\d{1,9})\/finish$/.exec(url) ?? [];
  if (method === 'POST' && id !== undefined) return finish(request, response, { ...options, id });
  const [, key, name = ''] = /^\/([\w-]+)\/(\w+)$/.exec(url) ?? [];
  const viewers = options.viewers();
  if (method !== 'GET' || key !== options.key || !viewers) return void response.writeHead(404).end();
  if (name === 'tasks') return json(response, 200, options.tasks.list());
  const html = htmlOf(viewers, name);
  if (html === null) return void response.writeHead(404).end();
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.end(html);
}

function htmlOf({ relayUrl, viewers }: Viewers, name: string): string | null {
  if (name === 'all') return allHtml(viewers);
  const viewer = viewers.find((known) => known.name === name);
  return viewer ? boardHtml(relayUrl, viewer) : null;
}

function finish(
  request: IncomingMessage,
  response: ServerResponse,
  { tasks, apiToken, changed, id }: Answering & { readonly id: string },
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

// Keeps the tasks of the demo's board in memory.

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

/** The tasks of the board. Only the application has them. */
interface Tasks {
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
