/** Serves the demo's web pages: carol's page, and the pages and tasks of the task board. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { PAGE } from './cast.ts';
import type { Viewer, Viewers } from './part-process.ts';
import { connectUrl } from './relay.ts';

export const SITE_ID = 'board';

/**
 * Serves pages on a free port of this machine, as an application's own server would. `answer`: answers each request.
 * `key`: a secret in the addresses of the pages, because anyone who can open a page gets its token.
 */
async function servePages(
  answer: (request: IncomingMessage, response: ServerResponse, key: string) => void | Promise<void>,
) {
  const key = randomBytes(12).toString('base64url');
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.setHeader('cache-control', 'no-store');
    try {
      await answer(request, response, key);
    } catch {
      response.destroy();
    }
  };
  const server = createServer((request, response) => void serve(request, response));
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', resolve);
  await listening;
  const address = server.address();
  return {
    /** The origin of the pages, which the relay must allow. */
    origin: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    key,
    async [Symbol.asyncDispose](): Promise<void> {
      const { promise: closed, resolve: close } = Promise.withResolvers<void>();
      server.close(() => close());
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Sends a text as a response. */
function send(response: ServerResponse, type: string, text: string): void {
  response.writeHead(200, { 'content-type': type }).end(text);
}

export type PageServer = Awaited<ReturnType<typeof startPageServer>>;

/** Starts the server of carol's page, which answers with 404 until `show` is called. */
export async function startPageServer() {
  let shown: { readonly html: string; readonly token: () => Promise<string> } | null = null;
  const pages = await servePages(async ({ url }, response, key) => {
    if (shown && url === `/${key}/`) send(response, HTML, shown.html);
    else if (shown && url === `/${key}/token`) send(response, 'text/plain', await shown.token());
    else response.writeHead(404).end();
  });
  return {
    ...pages,
    url: `${pages.origin}/${pages.key}/`,
    /** Starts serving the page. `relayUrl` is the relay's base address. */
    show(relayUrl: string, token: () => Promise<string>): void {
      shown = { html: pageHtml(relayUrl), token };
    },
  };
}

const HTML = 'text/html; charset=utf-8';
const STYLE = `body { font: 17px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; color-scheme: light dark }
`;

type Page = { readonly title: string; readonly style: string; readonly body: string; readonly script: string };

/** Returns a complete HTML page. `script`: a module that runs after the body. */
function html({ title, style, body, script }: Page): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<link rel="icon" href="data:,">
<style>
${style}
</style></head>
<body>
${body}
<script type="module">
${script}
</script>
</body></html>
`;
}

/** Returns the value as a JavaScript literal that is safe inside a script element, because it contains no `<`. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

// The page that is carol's client in the demo.

/** Returns carol's page: an ordinary web page that imports the relay's browser library and connects as a client. */
function pageHtml(relayUrl: string): string {
  return html({
    title: "Carol's reading list",
    style: `${STYLE}.highlight { background: #fe6; color: #000; transition: background .3s }
#log { font: 13px/1.5 ui-monospace, monospace; opacity: .8; white-space: pre-wrap }`,
    body: `<h1>Carol's reading list</h1>
<p>This page is a client of callboard: it connects from a browser and runs the commands that it receives.</p>
<ul><li>How to wait without holding on</li><li>What a receipt proves, and what not</li><li>A short history of the callboard</li></ul>
<p>On a stage, the callboard is where everybody looks before they go on.</p>
<h2>Link: <span id="status">…</span></h2>
<div id="log"></div>`,
    script: pageScript(relayUrl),
  });
}

/** The page's actions, as JavaScript for the browser. */
const ACTIONS = `const selector = { type: 'string', minLength: 1, maxLength: 100 };
const schema = (properties, required = []) => ({ type: 'object', properties, required, additionalProperties: false });
const byId = (id) => document.getElementById(id);

function tell(text) {
  const log = byId('log');
  log.prepend(new Date().toLocaleTimeString() + '  ' + text + '\\n');
  while (log.childNodes.length > 50) log.lastChild.remove();
}

const actions = [
  {
    name: 'page.title',
    summary: 'The title of the page.',
    version: '1.0.0',
    schema: schema({}),
    run: () => ({ title: document.title, lang: document.documentElement.lang }),
  },
  {
    name: 'page.highlight',
    summary: 'Highlights the elements that match a CSS selector for 1.5 seconds.',
    version: '1.1.0',
    schema: schema({ selector }, ['selector']),
    run({ selector }) {
      const found = [...document.querySelectorAll(selector)];
      for (const element of found) element.classList.add('highlight');
      setTimeout(() => found.forEach((element) => element.classList.remove('highlight')), 1500);
      return { highlighted: found.length };
    },
  },
  {
    name: 'page.count-words',
    summary: 'Counts the words of the page, or of the first element that matches a CSS selector.',
    version: '1.0.0',
    schema: schema({ selector }),
    run({ selector = 'body' }) {
      const element = document.querySelector(selector);
      if (!element) throw new Error('Nothing matches ' + selector + '.');
      return { selector, words: element.innerText.split(/\\s+/).filter((word) => word !== '').length };
    },
  },
];`;

/**
 * JavaScript for the browser. It reports the page's window, as far as a page can know it, and the page's tab as a
 * context.
 */
const PLACE = `const windowId = 'window-' + crypto.randomUUID().slice(0, 8);
const contextId = newContextId();

function report() {
  const visible = document.visibilityState === 'visible';
  const place = { ownership: 'user-owned', windowId };
  const looks = { focused: document.hasFocus(), type: 'normal', state: visible ? 'normal' : 'minimized', incognito: false };
  runtime.reportWindows([{ ...place, ...looks, tabCount: 1, draining: false, status: 'open' }]);
  const status = visible ? 'active' : 'idle';
  runtime.reportContexts([{ ...place, contextId, status, title: document.title, metadata: { path: '/' } }]);
}

document.addEventListener('visibilitychange', report);
for (const change of ['focus', 'blur']) addEventListener(change, report);
report();`;

function pageScript(relayUrl: string): string {
  const { clientId, clientType } = PAGE;
  return `import { createRuntime, newContextId } from ${literal(`${relayUrl}/clients/runtime.js`)};

${ACTIONS}

async function token() {
  const answer = await fetch('token');
  if (!answer.ok) throw new Error('No token is available.');
  return answer.text();
}

const runtime = createRuntime({
  url: ${literal(connectUrl(relayUrl))},
  token,
  clientId: ${literal(clientId)},
  clientType: ${literal(clientType)},
  // The page is the only context of its client, so each command runs in the context that it names.
  places: true,
  metadata: { path: '/', language: navigator.language },
  actions: actions.map((action) => ({
    ...action,
    run: (params, call) => {
      tell(action.name + ' ' + JSON.stringify(params));
      return action.run(params, call);
    },
  })),
  onStatus(status) {
    byId('status').textContent = status.state;
    tell('link: ' + status.state + (status.reason ? ' (' + status.reason + ')' : ''));
  },
});

${PLACE}

runtime.connect();`;
}

// The pages of the task board.

/** Returns a viewer's page: an ordinary page of the application that receives events through the relay. */
function boardHtml(relayUrl: string, { name, may, sessionId, token }: Viewer): string {
  return html({
    title: `Task board (${name})`,
    style: `${STYLE}li { display: flex; gap: 1rem; align-items: baseline }
li.done span { text-decoration: line-through; opacity: .6 }
#said { min-height: 1.6em }`,
    body: `<h1>Task board</h1>
<p>You are the <b>${name}</b>: you ${may}. The board is <b id="status">…</b>.</p>
<ul id="tasks"></ul>
<p id="said" role="status"></p>`,
    script: `import { CooperativeSiteBrowserClient } from ${JSON.stringify(`${relayUrl}/clients/site.js`)};
${SCRIPT}
show(new CooperativeSiteBrowserClient(${literal({ url: relayUrl, sessionId, token })}));`,
  });
}

/** Returns a page that shows the pages of all viewers side by side. */
function allHtml(viewers: readonly Viewer[]): string {
  return html({
    title: 'Task board',
    style: 'body { margin: 0; display: flex; height: 100vh } iframe { flex: 1; border: 0 }',
    body: '',
    script: `for (const name of ${JSON.stringify(viewers.map(({ name }) => name))}) {
  const frame = document.createElement('iframe');
  frame.src = name + location.hash;
  document.body.append(frame);
}`,
  });
}

/** JavaScript for the browser. If the address ends with `#auto`, the page finishes a task from time to time. */
const SCRIPT = `const byId = (id) => document.getElementById(id);
const AUTO_MS = 6000;

function show(client) {
  const say = (text) => { byId('said').textContent = text; };

  async function finish(id) {
    try {
      const answer = await client.invoke('task.finish', { id }, { timeoutMs: 10000 });
      say(answer.outcome === 'completed' ? 'Finished: ' + answer.result.title : 'Not done: ' + (answer.error?.message ?? answer.outcome));
    } catch (error) {
      say('Refused: ' + error.message + ' (' + error.code + ')');
    }
  }

  function rowOf({ id, title, done }) {
    const row = document.createElement('li');
    const text = document.createElement('span');
    const button = document.createElement('button');
    row.id = id;
    row.className = done ? 'done' : 'open';
    text.textContent = title;
    button.textContent = 'Finish';
    button.disabled = done;
    button.onclick = () => finish(id);
    row.append(button, text);
    return row;
  }

  async function refresh() {
    const tasks = await (await fetch('tasks')).json();
    byId('tasks').replaceChildren(...tasks.map(rowOf));
  }

  async function listen() {
    const onStatus = (status) => {
      byId('status').textContent = status;
      // Read only when the stream is live, so that no later change is missed.
      if (status === 'live') void refresh();
    };
    try {
      for await (const news of client.subscribe({ names: ['site_changed'], onStatus })) {
        if (news.type === 'event') await refresh();
      }
    } catch (error) {
      byId('status').textContent = 'over: ' + error.message;
    }
  }

  void listen();
  if (location.hash === '#auto') setInterval(() => document.querySelector('li.open button')?.click(), AUTO_MS);
}`;

type BoardServerOptions = {
  readonly tasks: Tasks;
  /** Returns the viewers; null until their sessions are open. */
  viewers(): Viewers | null;
  /** Returns the bearer token for changing tasks; null while tasks cannot be changed. */
  apiToken(): string | null;
  changed(reason: string, id: string): void;
};

/** Serves pages and tasks to viewers, and an API with a token to change tasks. */
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
/** The most open tasks. */
const OPEN_MAX = 6;
/** If there are more tasks than this, finished ones are removed. */
const KEPT_MAX = 12;

type Tasks = ReturnType<typeof createTasks>;

/** Creates the board's tasks. They are only in the memory of the application, and not at the relay. */
export function createTasks() {
  const tasks = new Map<string, Task>();
  let made = 0;

  /**
   * Adds a task. Returns null if too many are open. If there are more than KEPT_MAX tasks, removes the oldest finished
   * ones.
   */
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
    /** Finishes a task. Returns null if there is no such task. Finishing it again changes nothing. */
    finish(id: string): Task | null {
      const task = tasks.get(id);
      if (!task) return null;
      const finished = { ...task, done: true };
      tasks.set(id, finished);
      return finished;
    },
  };
}
