/** Runs viewers of a cooperative site, and records which events they received and whether their streams broke. */
import { createSiteEventPublisher } from '../../src/clients/host/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { CooperativeSiteBrowserClient } from '../../src/clients/site/index.ts';

const SITE = 'board';
const EVENT = 'site_changed';

export type Viewer = {
  /** How often the viewer's stream has become live. */
  readonly lives: number;
  /** Resolves when the viewer's stream is live. */
  live(): Promise<void>;
  readonly gaps: number;
  /** Resolves when the viewer has received an event with this data. */
  received(data: number): Promise<void>;
};

export type Audience = AsyncDisposable & {
  readonly viewers: readonly Viewer[];
  /**
   * Publishes one event as soon as the site's host is connected and all streams are live. Resolves when all viewers
   * have received it. Rejects if a stream has ended for good.
   */
  reachAll(): Promise<void>;
};

export type AudienceOptions = {
  readonly url: string;
  readonly token: () => Promise<string>;
  readonly count: number;
};

/** Registers a site, opens a session, and opens the streams of `count` viewers. Resolves when all are live. */
export async function openAudience({ url, token, count }: AudienceOptions): Promise<Audience> {
  const link = `${url.replace(/^http/, 'ws')}/connect`;
  const runtime = createRuntime({ url: link, token, clientId: 'board-host', clientType: 'console' });
  runtime.connect();
  await runtime.ready();
  await runtime.site({ siteId: SITE, eventNames: [EVENT] }).registered;
  const opened = await fetch(`${url}/sites/${SITE}/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' },
    body: '{}',
  });
  const { session_id: sessionId, token: grant } = (await opened.json()) as { session_id: string; token: string };
  const stop = new AbortController();
  const watching = Array.from({ length: count }, () => watch(url, { sessionId, token: grant }, stop.signal));
  const viewers = watching.map(({ viewer }) => viewer);
  await Promise.all(viewers.map((viewer) => viewer.live()));
  const publisher = createSiteEventPublisher({ runtime, siteId: SITE });
  let published = 0;
  const publish = async (): Promise<void> => {
    await Promise.all([runtime.ready(), ...viewers.map((viewer) => viewer.live())]);
    const data = ++published;
    await publisher.publish({ name: EVENT, data });
    await Promise.all(viewers.map((viewer) => viewer.received(data)));
  };
  return {
    viewers,
    reachAll: () => Promise.race([publish(), ...watching.map(({ done }) => done)]),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.allSettled(watching.map(({ done }) => done));
      await runtime.close();
    },
  };
}

/** A viewer and its stream. `done` rejects if the stream ends for good, and resolves only after it was aborted. */
type Watching = { readonly viewer: Viewer; readonly done: Promise<void> };

function watch(url: string, session: { sessionId: string; token: string }, signal: AbortSignal): Watching {
  const site = new CooperativeSiteBrowserClient({ url, ...session });
  let live = Promise.withResolvers<void>();
  const arrivals = new Map<number, PromiseWithResolvers<void>>();
  const arrival = (data: number): PromiseWithResolvers<void> => {
    const known = arrivals.get(data) ?? Promise.withResolvers<void>();
    arrivals.set(data, known);
    return known;
  };
  const seen = { lives: 0, gaps: 0 };
  const onStatus = (status: string): void => {
    // After each break of the stream, a new promise is needed.
    if (status === 'waiting') live = Promise.withResolvers<void>();
    if (status !== 'live') return;
    seen.lives += 1;
    live.resolve();
  };
  const follow = async (): Promise<void> => {
    for await (const news of site.subscribe({ signal, onStatus })) {
      if (news.type === 'gap') seen.gaps += 1;
      else arrival(Number(news.data)).resolve();
    }
  };
  const viewer: Viewer = {
    get lives() {
      return seen.lives;
    },
    get gaps() {
      return seen.gaps;
    },
    live: () => live.promise,
    received: (data) => arrival(data).promise,
  };
  const done = follow();
  // Ignored here, because `reachAll` reports the failure.
  done.catch(() => {});
  return { viewer, done };
}
