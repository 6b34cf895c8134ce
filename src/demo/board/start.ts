import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Log } from '../../core/log.ts';
import type { Relay } from '../relay.ts';
import { SITE_ID } from './control.ts';
import { HOST, startBoardHost } from './host.ts';
import type { Viewer } from './messages.ts';
import { startApp } from './process.ts';

export type BoardOptions = {
  /** The variables of the board's process. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  /** How often a task comes in by itself, milliseconds; null: never. */
  readonly everyMs: number | null;
};

/** A page. With `#auto` behind its address, each viewer in it finishes a task now and then by itself, or tries to. */
export type BoardPage = { readonly name: string; readonly url: string };

export interface Board extends AsyncDisposable {
  /** Of its pages, as a browser writes it: what the relay must allow. */
  readonly origin: string;
  /**
   * Hosts the board at this relay and lets two viewers in: `editor`, who may finish tasks, and `reader`, who may only look. Resolves with
   * their pages, and `all` that shows both, when they are served. Once.
   */
  join(relay: Pick<Relay, 'url' | 'token'>): Promise<readonly BoardPage[]>;
}

/** A day: as long as a session may last. */
const SESSION_SECONDS = 24 * 3600;
const VIEWERS = [
  { name: 'editor', may: 'may finish tasks', actions: ['task.finish'] },
  { name: 'reader', may: 'may only look', actions: [] },
];

/** Starts the board's application in a process of its own. It is ended with everything that `join` started. */
export async function startBoard({ env, log, everyMs }: BoardOptions): Promise<Board> {
  await using starting = new AsyncDisposableStack();
  const app = starting.use(startApp({ env, log }));
  const { port, key } = await app.heard('listening');
  const origin = `http://127.0.0.1:${port}`;
  const parts = starting.move();
  return {
    origin,
    async join(relay) {
      const apiToken = randomBytes(24).toString('base64url');
      const host = parts.use(await startBoardHost({ relay, appUrl: origin, apiToken }));
      await host.runtime.ready();
      app.tell({ type: 'open', control: host.control, apiToken, everyMs });
      await app.heard('defined');
      const viewers = await Promise.all(VIEWERS.map((viewer) => openSession(relay, viewer)));
      app.tell({ type: 'viewers', relayUrl: relay.url, viewers });
      await app.heard('showing');
      return ['all', ...viewers.map(({ name }) => name)].map((name) => ({ name, url: `${origin}/${key}/${name}` }));
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const OPENED = z.object({ session_id: z.string(), token: z.string() });

/** A session of its own for each viewer, as whoever owns the site opens it. */
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
