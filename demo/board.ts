/** Starts the task board and connects it with the relay. */
import { fork, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { extname } from 'node:path';
import { z } from 'zod';
import type { Log } from '../src/core/ports.ts';
import { startCooperativeSiteControlServer, type ControlServer } from '../src/clients/host/index.ts';
import { ActionError, createRuntime, type Runtime } from '../src/clients/runtime/index.ts';
import {
  SITE_ID,
  readMessageFromBoard,
  type MessageFromBoard,
  type MessageToBoard,
  type Viewer,
} from './board-page.ts';
import { connectUrl, type Relay } from './relay.ts';

type BoardOptions = {
  /** The environment of the board's process. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  /** How often a task is added automatically, in milliseconds; null: never. */
  readonly everyMs: number | null;
};

/** A page. With `#auto` appended to its address, each viewer in it tries to finish a task from time to time. */
export type BoardPage = { readonly name: string; readonly url: string };

export interface Board extends AsyncDisposable {
  /** The origin of the board's pages, which the relay must allow. */
  readonly origin: string;
  /**
   * Hosts the board at this relay and creates two viewers: `editor`, who may finish tasks, and `reader`, who may only
   * read. Resolves when their pages are served. The result also has the page `all`, which shows both. May be called
   * once.
   */
  join(relay: Pick<Relay, 'url' | 'token'>): Promise<readonly BoardPage[]>;
}

/** The lifetime of a session, in seconds: a day, the longest that the relay allows. */
const SESSION_SECONDS = 24 * 3600;
const VIEWERS = [
  { name: 'editor', may: 'may finish tasks', actions: ['task.finish'] },
  { name: 'reader', may: 'may only look', actions: [] },
];

/** Starts the board's application in a separate process. Disposal also ends everything that `join` started. */
export async function startBoard({ env, log, everyMs }: BoardOptions): Promise<Board> {
  await using starting = new AsyncDisposableStack();
  const app = starting.use(startApp({ env, log }));
  const { port, key } = await app.firstMessage('listening');
  const origin = `http://127.0.0.1:${port}`;
  const parts = starting.move();
  return {
    origin,
    async join(relay) {
      const apiToken = randomBytes(24).toString('base64url');
      const host = parts.use(await startBoardHost({ relay, appUrl: origin, apiToken }));
      await host.runtime.ready();
      app.send({ type: 'open', control: host.control, apiToken, everyMs });
      await app.firstMessage('defined');
      const viewers = await Promise.all(VIEWERS.map((viewer) => openSession(relay, viewer)));
      app.send({ type: 'viewers', relayUrl: relay.url, viewers });
      await app.firstMessage('showing');
      return ['all', ...viewers.map(({ name }) => name)].map((name) => ({ name, url: `${origin}/${key}/${name}` }));
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const OPENED = z.object({ session_id: z.string(), token: z.string() });

/** Opens a separate session for each viewer, as the owner of the site. */
async function openSession(
  relay: Pick<Relay, 'url' | 'token'>,
  { name, may, actions }: (typeof VIEWERS)[number],
): Promise<Viewer> {
  const response = await fetch(`${relay.url}/sites/${SITE_ID}/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await relay.token(HOST.userId)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ttl_seconds: SESSION_SECONDS, actions }),
  });
  const { session_id: sessionId, token } = OPENED.parse(await response.json());
  return { name, may, sessionId, token };
}

// Starts and stops the process of the task board.

type AppProcess = AsyncDisposable & {
  send(message: MessageToBoard): void;
  /** Resolves with the first message of this type. Rejects if the process ends without sending one. */
  firstMessage<T extends MessageFromBoard['type']>(type: T): Promise<Extract<MessageFromBoard, { type: T }>>;
};

/** The program of the process. It has the extension of this file: `.ts` in a checkout, `.js` in the package. */
const PROGRAM = new URL(`./board-app${extname(import.meta.filename)}`, import.meta.url);
/** How long the process may take to end before it is killed, in milliseconds. */
const EXIT_MS = 3_000;
/** The number of characters of a process's standard error that are shown when the process has ended by itself. */
const STDERR_CHARS = 4_000;

/** Starts the board's application in a separate process. */
function startApp({ env, log }: { readonly env: NodeJS.ProcessEnv; readonly log: Log }): AppProcess {
  const child = fork(PROGRAM, [], { env: { ...env }, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const received: MessageFromBoard[] = [];
  const listeners = new Set<() => void>();
  child.on('message', (raw) => {
    const message = readMessageFromBoard(raw);
    if (message) received.push(message);
    for (const listener of listeners) listener();
  });
  const ended = endOf(child, log);
  const send = (message: MessageToBoard): void => {
    if (child.connected) child.send(message, () => {});
  };
  return {
    send,
    firstMessage(type) {
      const { promise, resolve, reject } = Promise.withResolvers<Extract<MessageFromBoard, { type: typeof type }>>();
      const look = (): void => {
        const found = received.find((message) => isOf(message, type));
        if (found && isOf(found, type)) resolve(found);
      };
      listeners.add(look);
      look();
      void ended.then(() => reject(new Error('The board ended.')));
      return promise.finally(() => listeners.delete(look));
    },
    async [Symbol.asyncDispose]() {
      send({ type: 'stop' });
      const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function endOf(child: ChildProcess, log: Log): Promise<void> {
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_CHARS)));
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('error', (error) => log.warn({ error }, 'the board of the demo cannot be started'));
  child.once('close', () => {
    if (stderr !== '') log.warn({ stderr }, 'the board of the demo failed');
    resolve();
  });
  return promise;
}

function isOf<T extends MessageFromBoard['type']>(
  message: MessageFromBoard,
  type: T,
): message is Extract<MessageFromBoard, { type: T }> {
  return message.type === type;
}

// Connects the task board with the relay: a runtime, and the control server that the board calls.

export const HOST = { userId: 'dora', clientId: 'board-host', clientType: 'console' } as const;

type BoardHost = AsyncDisposable & {
  readonly control: { readonly url: string; readonly token: string };
  readonly runtime: Runtime;
};

type BoardHostOptions = {
  readonly relay: Pick<Relay, 'url' | 'token'>;
  /** The base address of the application. */
  readonly appUrl: string;
  readonly apiToken: string;
};

/** Connects the application with the relay: a link to the relay, and the control server that the application calls. */
export async function startBoardHost({ relay, appUrl, apiToken }: BoardHostOptions): Promise<BoardHost> {
  const token = randomBytes(24).toString('base64url');
  const { userId, ...client } = HOST;
  const runtime = createRuntime({ ...client, url: connectUrl(relay.url), token: () => relay.token(userId) });
  runtime.handle(
    'task.finish',
    {
      summary: 'Finishes a task of the board.',
      schema: {
        type: 'object',
        required: ['id'],
        properties: { id: { type: 'string', pattern: '^t[0-9]{1,9}$' } },
        additionalProperties: false,
      },
    },
    async ({ id }, { signal }) => {
      const headers = { authorization: `Bearer ${apiToken}` };
      const response = await fetch(`${appUrl}/api/tasks/${id}/finish`, { method: 'POST', headers, signal });
      const answer = await response.json();
      if (!response.ok) throw new ActionError(String(answer.message));
      return answer;
    },
  );
  // This action is advertised, but is not among the site's actions, so no viewer may invoke it.
  runtime.handle('task.clear', { summary: 'Empties the board.' }, () => {
    throw new ActionError('The board may not be emptied.');
  });
  runtime.connect();
  const server = await startControl(runtime, token);
  return {
    runtime,
    control: { url: server.url, token },
    async [Symbol.asyncDispose]() {
      await server.close();
      await runtime.close({ withinMs: 1_000 });
    },
  };
}

async function startControl(runtime: Runtime, token: string): Promise<ControlServer> {
  try {
    return await startCooperativeSiteControlServer({ runtime, token, port: 0 });
  } catch (error) {
    await runtime.close({ withinMs: 0 });
    throw error;
  }
}
