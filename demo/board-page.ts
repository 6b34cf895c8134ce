/** Writes the web pages of the task board as HTML. */
import { z } from 'zod';

export const SITE_ID = 'board';

/**
 * Returns a viewer's page of the board: an ordinary page of the application that receives change events through the
 * relay.
 */
export function boardHtml(relayUrl: string, { name, may, sessionId, token }: Viewer): string {
  const settings = JSON.stringify({ url: relayUrl, sessionId, token }).replaceAll('<', '\\u003c');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Task board (${name})</title>
<link rel="icon" href="data:,">
<style>
body { font: 17px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; color-scheme: light dark }
li { display: flex; gap: 1rem; align-items: baseline }
li.done span { text-decoration: line-through; opacity: .6 }
#said { min-height: 1.6em }
</style></head>
<body>
<h1>Task board</h1>
<p>You are the <b>${name}</b>: you ${may}. The board is <b id="status">…</b>.</p>
<ul id="tasks"></ul>
<p id="said" role="status"></p>
<script type="module">
import { CooperativeSiteBrowserClient } from ${JSON.stringify(`${relayUrl}/clients/site.js`)};
${SCRIPT}
show(new CooperativeSiteBrowserClient(${settings}));
</script>
</body></html>
`;
}

/** Returns a page that shows all viewers' pages side by side in frames. */
export function allHtml(viewers: readonly Viewer[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Task board</title>
<link rel="icon" href="data:,">
<style>body { margin: 0; display: flex; height: 100vh } iframe { flex: 1; border: 0 }</style></head>
<body>
<script type="module">
for (const name of ${JSON.stringify(viewers.map(({ name }) => name))}) {
  const frame = document.createElement('iframe');
  frame.src = name + location.hash;
  document.body.append(frame);
}
</script>
</body></html>
`;
}

/** JavaScript for the browser. With `#auto` in its address, the page finishes a task from time to time. */
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

// Defines and checks the messages between the demo and the process of its task board.

const VIEWER = z.object({ name: z.string(), may: z.string(), sessionId: z.string(), token: z.string() });

/**
 * The messages to the board's process. `open` contains the address of the control server. `viewers` contains the
 * viewers and the address of their relay.
 */
const TO_BOARD = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('open'),
    control: z.object({ url: z.string(), token: z.string() }),
    /** The bearer token required for changing tasks from outside. */
    apiToken: z.string(),
    /** How often a task is added automatically, in milliseconds; null: never. */
    everyMs: z.number().positive().nullable(),
  }),
  z.object({ type: z.literal('viewers'), relayUrl: z.string(), viewers: z.array(VIEWER) }),
  z.object({ type: z.literal('stop') }),
]);

/**
 * The messages from the board's process. `listening`: its page is served. `defined`: its site is defined. `showing`: it
 * shows the pages of its viewers.
 */
const FROM_BOARD = z.discriminatedUnion('type', [
  z.object({ type: z.literal('listening'), port: z.number(), key: z.string() }),
  z.object({ type: z.literal('defined') }),
  z.object({ type: z.literal('showing') }),
]);

export type Viewer = z.infer<typeof VIEWER>;
export type MessageToBoard = z.infer<typeof TO_BOARD>;
export type MessageFromBoard = z.infer<typeof FROM_BOARD>;
export type Open = Extract<MessageToBoard, { type: 'open' }>;
export type Viewers = Extract<MessageToBoard, { type: 'viewers' }>;

/** Checks a message and returns it; null if it is unknown. */
export function readMessageToBoard(message: unknown): MessageToBoard | null {
  return TO_BOARD.safeParse(message).data ?? null;
}

/** Checks a message and returns it; null if it is unknown. */
export function readMessageFromBoard(message: unknown): MessageFromBoard | null {
  return FROM_BOARD.safeParse(message).data ?? null;
}
