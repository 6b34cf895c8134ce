/** Runs the task board: an application in its own process that uses callboard only through the control server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createTasks, startBoardServer, SITE_ID } from './pages.ts';
import { joinDemo, type Open, type Viewers } from './part-process.ts';

/**
 * The address and token of the control server, the local HTTP server of the host library. This program does not use
 * that library itself.
 */
type Control = { readonly url: string; readonly token: string };

/** The site's definition: the events that viewers may receive and the actions that they may invoke. */
const DEFINITION = {
  title: 'Task board',
  event_names: ['site_changed'],
  actions: ['task.finish'],
  capability_profile: { action_invocation: true, sharing: false },
};

/** Sends a request to the control server. Resolves with whether it was accepted. Never rejects. */
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
 * How long to wait between two attempts to define the site, in milliseconds. The program tries until the relay accepts.
 */
const RETRY_MS = 500;

const tasks = createTasks();
let opened: Open | null = null;
let viewers: Viewers | null = null;

function changed(reason: string, id: string): void {
  // On this event, viewers read the tasks again. They also do so when their streams reconnect, so a lost event does no
  // harm.
  const event = { name: 'site_changed', data: { reason, id } };
  if (opened) void ask(opened.control, 'POST', `/sites/${SITE_ID}/events`, event);
}

async function define(control: Control): Promise<void> {
  while (!(await ask(control, 'PUT', `/sites/${SITE_ID}`, DEFINITION))) await sleep(RETRY_MS);
  send({ type: 'defined' });
}

async function live(everyMs: number): Promise<void> {
  for (;;) {
    await sleep(everyMs);
    const task = tasks.add();
    if (task) changed('task_added', task.id);
  }
}

const { origin, key } = await startBoardServer({
  tasks,
  viewers: () => viewers,
  apiToken: () => opened?.apiToken ?? null,
  changed,
});

const send = joinDemo(
  (message) => {
    if (message.type === 'open') {
      opened = message;
      void define(message.control);
      if (message.everyMs !== null) void live(message.everyMs);
    } else if (message.type === 'viewers') {
      viewers = message;
      send({ type: 'showing' });
    }
  },
  () => process.exit(0),
);
send({ type: 'listening', origin, key });
