/** Starts the task board, connects it to the relay as a site, and opens a session for each viewer. */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Log } from '../src/core/ports.ts';
import { startCooperativeSiteControlServer, type ControlServer } from '../src/clients/host/index.ts';
import { ActionError, createRuntime, type Runtime } from '../src/clients/runtime/index.ts';
import { SITE_ID } from './pages.ts';
import { startPart, type Viewer } from './part-process.ts';
import { connectUrl, type Relay } from './relay.ts';

type BoardOptions = {
  /** The environment of the board's process. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  /** How often a task is added automatically, in milliseconds; null: never. */
  readonly everyMs: number | null;
};

/**
 * A page of the board. If `#auto` is appended to its address, each viewer in it tries to finish a task from time to
 * time.
 */
export type BoardPage = { readonly name: string; readonly url: string };

/** The lifetime of a session, in seconds: a day, which is the longest that the relay permits. */
const SESSION_SECONDS = 24 * 3600;
const VIEWERS = [
  { name: 'editor', may: 'may finish tasks', actions: ['task.finish'] },
  { name: 'reader', may: 'may only look', actions: [] },
];

export type Board = Awaited<ReturnType<typeof startBoard>>;

/**
 * Starts the board's application in its own process. Disposing of the result ends it, and everything that `join`
 * started.
 */
export async function startBoard({ env, log, everyMs }: BoardOptions) {
  const listening = Promise.withResolvers<{ readonly origin: string; readonly key: string }>();
  const defined = Promise.withResolvers<void>();
  const showing = Promise.withResolvers<void>();
  await using starting = new AsyncDisposableStack();
  const app = startPart({
    program: 'board-app',
    what: 'the board of the demo',
    env,
    log,
    onMessage(message) {
      if (message.type === 'listening') listening.resolve(message);
      if (message.type === 'defined') defined.resolve();
      if (message.type === 'showing') showing.resolve();
    },
  });
  starting.defer(() => app.end());
  const ended = app.ended.then(() => Promise.reject(new Error('The board ended.')));
  // The process may end when nothing awaits `ended`. Its rejection must not crash the demo.
  ended.catch(() => {});
  const { origin, key } = await Promise.race([listening.promise, ended]);
  const parts = starting.move();
  return {
    /** The origin of the board's pages, which the relay must allow. */
    origin,
    /**
     * Hosts the board at this relay, and creates two viewers: `editor`, who may finish tasks, and `reader`, who may
     * only read. Resolves with their pages and the page `all`, which shows both. Call it only once.
     */
    async join(relay: Pick<Relay, 'url' | 'token'>): Promise<readonly BoardPage[]> {
      const apiToken = randomBytes(24).toString('base64url');
      const host = parts.use(await startBoardHost({ relay, appUrl: origin, apiToken }));
      await host.runtime.ready();
      app.send({ type: 'open', control: host.control, apiToken, everyMs });
      await Promise.race([defined.promise, ended]);
      const viewers = await Promise.all(VIEWERS.map((viewer) => openSession(relay, viewer)));
      app.send({ type: 'viewers', relayUrl: relay.url, viewers });
      await Promise.race([showing.promise, ended]);
      return ['all', ...viewers.map(({ name }) => name)].map((name) => ({ name, url: `${origin}/${key}/${name}` }));
    },
    [Symbol.asyncDispose]: (): Promise<void> => parts.disposeAsync(),
  };
}

const OPENED = z.object({ session_id: z.string(), token: z.string() });

/** Opens a session for one viewer, in the name of the site's owner. */
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

export const HOST = { userId: 'dora', clientId: 'board-host', clientType: 'console' } as const;

type BoardHostOptions = {
  readonly relay: Pick<Relay, 'url' | 'token'>;
  /** The base address of the application. */
  readonly appUrl: string;
  readonly apiToken: string;
};

/**
 * Connects the application to the relay: opens a link to the relay, and the control server that the application calls.
 */
async function startBoardHost({ relay, appUrl, apiToken }: BoardHostOptions) {
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
  // The client advertises this action, but the site does not list it, so no viewer can invoke it.
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
