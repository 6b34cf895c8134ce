/** Starts the task board and connects it with the relay. */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Log } from '../../core/log.ts';
import type { Relay } from '../relay.ts';
import { SITE_ID } from './control.ts';
import { HOST, startBoardHost } from './host.ts';
import type { Viewer } from './messages.ts';
import { startApp } from './process.ts';

export type BoardOptions = {
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
