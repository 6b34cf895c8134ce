/**
 * Runs the task board, an application in its own process. It reaches callboard only through the HTTP API of the control
 * server.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { SITE_ID, readMessageToBoard, type MessageFromBoard, type Open, type Viewers } from './board-page.ts';
import { createTasks, startBoardServer } from './board-server.ts';

/** The control server as any local program uses it: plain HTTP and a token, without a callboard library. */
type Control = { readonly url: string; readonly token: string };

/** The site's definition: the events that viewers may receive and the actions that they may invoke. */
const DEFINITION = {
  title: 'Task board',
  event_names: ['site_changed'],
  actions: ['task.finish'],
  capability_profile: { action_invocation: true, sharing: false },
};

/** Defines the site. Resolves with whether the control server accepted it; never rejects. */
function defineSite(control: Control): Promise<boolean> {
  return ask(control, 'PUT', `/sites/${SITE_ID}`, DEFINITION);
}

/** Notifies all viewers of a change; they then read the tasks from the application. Never rejects. */
function announce(control: Control, data: object): Promise<boolean> {
  return ask(control, 'POST', `/sites/${SITE_ID}/events`, { name: 'site_changed', data });
}

async function ask({ url, token }: Control, ...[method, path, body]: readonly [string, string, object]) {
  try {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const { ok } = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
    return ok;
  } catch {
    return false;
  }
}

/**
 * The pause between two attempts of this program to define its site, in milliseconds. It tries until the relay accepts.
 */
const RETRY_MS = 500;

const tasks = createTasks();
let opened: Open | null = null;
let viewers: Viewers | null = null;

function send(message: MessageFromBoard): void {
  if (process.connected) process.send?.(message);
}

function changed(reason: string, id: string): void {
  // A lost event does no harm: viewers read all tasks again whenever their streams reconnect.
  if (opened) void announce(opened.control, { reason, id });
}

async function define(control: Control): Promise<void> {
  while (!(await defineSite(control))) await sleep(RETRY_MS);
  send({ type: 'defined' });
}

async function live(everyMs: number): Promise<void> {
  for (;;) {
    await sleep(everyMs);
    const task = tasks.add();
    if (task) changed('task_added', task.id);
  }
}

const { port, key } = await startBoardServer({
  tasks,
  viewers: () => viewers,
  apiToken: () => opened?.apiToken ?? null,
  changed,
});

process.on('message', (message) => {
  const command = readMessageToBoard(message);
  if (command?.type === 'open') {
    opened = command;
    void define(command.control);
    if (command.everyMs !== null) void live(command.everyMs);
  } else if (command?.type === 'viewers') {
    viewers = command;
    send({ type: 'showing' });
  } else if (command?.type === 'stop') process.exit(0);
});
// The demo has ended, so this process ends too.
process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole process group. This process ignores it, because the demo stops each process itself.
process.on('SIGINT', () => {});
send({ type: 'listening', port, key });
