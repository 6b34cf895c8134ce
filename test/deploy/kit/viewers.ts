/** Viewers of a cooperative site, which report whether their stream broke and which events they got about it. */
import { createSiteEventPublisher, type SiteEventPublisher } from '../../../src/clients/host/index.ts';
import { createRuntime } from '../../../src/clients/runtime/index.ts';
import { CooperativeSiteBrowserClient } from '../../../src/clients/site/index.ts';

const SITE = 'board';
const EVENT = 'site_changed';

export type Viewer = {
  /** How often its stream became live. */
  readonly lives: number;
  readonly gaps: number;
  /** Resolves when the viewer has received an event with this data. */
  received(data: number): Promise<void>;
};

export type Audience = AsyncDisposable & {
  readonly viewers: readonly Viewer[];
  readonly publisher: SiteEventPublisher;
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
  const viewers = Array.from({ length: count }, () => watch(url, { sessionId, token: grant }, stop.signal));
  await Promise.all(viewers.map(({ live }) => live));
  return {
    viewers: viewers.map(({ viewer }) => viewer),
    publisher: createSiteEventPublisher({ runtime, siteId: SITE }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(viewers.map(({ done }) => done));
      await runtime.close();
    },
  };
}

type Watching = { readonly viewer: Viewer; readonly live: Promise<void>; readonly done: Promise<void> };

function watch(url: string, session: { sessionId: string; token: string }, signal: AbortSignal): Watching {
  const site = new CooperativeSiteBrowserClient({ url, ...session });
  const first = Promise.withResolvers<void>();
  const arrivals = new Map<number, PromiseWithResolvers<void>>();
  const arrival = (data: number): PromiseWithResolvers<void> => {
    const known = arrivals.get(data) ?? Promise.withResolvers<void>();
    arrivals.set(data, known);
    return known;
  };
  const seen = { lives: 0, gaps: 0 };
  const onStatus = (status: string): void => {
    if (status !== 'live') return;
    seen.lives += 1;
    first.resolve();
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
    received: (data) => arrival(data).promise,
  };
  return { viewer, live: first.promise, done: follow() };
}
