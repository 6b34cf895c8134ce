/** Starts a real relay with two users whose clients report rows with the same local ids. */
import { expect } from 'vitest';
import { createHttpCaller } from '../../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import type { CommandKey } from '../../../src/core/ids.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { eventually } from '../../kit/patience.ts';

export const USERS = ['alice', 'bob'] as const;
export type User = (typeof USERS)[number];
export const CLIENT = 'desk';
/** The number of contexts that each user's client reports. */
export const CONTEXTS = 24;
export const WINDOWS = 12;
/** The ids of two commands of each user: one that has ended, and one that runs until it is cancelled. */
export const ENDED = 'ended';
export const LIVE = 'live';

export type World = AsyncDisposable & {
  readonly relay: RealRelay;
  token(user: string): Promise<string>;
  /** Closes this runtime when the world is closed. */
  keep(runtime: Runtime): void;
  /** Cancels a command as the user who owns it. */
  cancel(key: CommandKey): Promise<void>;
  /** Lets the client of this user report another title of a context. Resolves when the relay shows it. */
  rename(user: User, contextId: string, title: string): Promise<void>;
};

export async function openWorld(): Promise<World> {
  await using opening = new AsyncDisposableStack();
  const relay = opening.use(await startRealRelay());
  const token = (user: string): Promise<string> => relay.token(user, 'connect', 'invoke', 'host');
  const runtimes = new Map<string, Runtime>();
  for (const user of USERS) runtimes.set(user, await furnish({ relay, opening }, user, () => token(user)));
  const opened = opening.move();
  return {
    relay,
    token,
    keep: (runtime) => void opened.defer(() => runtime.close({ withinMs: 0 })),
    async cancel({ userId, clientId, commandId }) {
      await using caller = createHttpCaller({ url: relay.url, token: () => token(userId) });
      await caller.cancel({ userId, clientId, commandId }, 'The test is done.');
    },
    async rename(user, contextId, title) {
      const row = { contextId, status: 'active', ownership: 'worker', windowId: 'window-3', title } as const;
      runtimes.get(user)?.reportContexts({ set: [row] });
      const rows = async (): Promise<string> => JSON.stringify(await read(relay, `/contexts?user_id=${user}`));
      await eventually(async () => expect(await rows()).toContain(JSON.stringify(title)));
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Connects a client of this user. Its local ids do not depend on the user. */
export async function openClient(
  relay: RealRelay,
  token: () => Promise<string>,
  instanceId?: string,
  clientId = CLIENT,
): Promise<Runtime> {
  const runtime = createRuntime({
    ...{ url: relay.link, token, clientId, clientType: 'browser', metadata: { desk: true } },
    ...(instanceId !== undefined && { instanceId }),
    // Runs of a client replace each other on purpose, so nothing is to be printed.
    onStatus: () => undefined,
  });
  runtime.handle('note.add', { summary: 'Adds a note' }, ({ text }) => ({ added: text }));
  runtime.handle('note.wait', {}, (_, { signal }) => {
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'), { once: true }));
  });
  const windowOf = (i: number): string => `window-${i % WINDOWS}`;
  runtime.reportWindows(
    Array.from({ length: WINDOWS }, (_, i) => ({
      ...{ windowId: windowOf(i), ownership: 'worker', focused: i === 0, type: 'normal', state: 'maximized' },
      ...{ incognito: false, tabCount: 2, draining: false, status: 'open' },
    })),
  );
  runtime.reportContexts(
    Array.from({ length: CONTEXTS }, (_, i) => ({
      ...{ contextId: `context-${i}`, status: 'active', ownership: 'worker', windowId: windowOf(i) },
      title: `Page ${i}`,
    })),
  );
  runtime.connect();
  await runtime.ready();
  return runtime;
}

async function furnish(
  { relay, opening }: { readonly relay: RealRelay; readonly opening: AsyncDisposableStack },
  userId: string,
  token: () => Promise<string>,
): Promise<Runtime> {
  const runtime = await openClient(relay, token);
  opening.defer(() => runtime.close({ withinMs: 0 }));
  await runtime.site({
    ...{ siteId: 'board', title: `Board of ${userId}`, eventNames: ['site_changed'], actions: ['note.add'] },
    capabilityProfile: { actionInvocation: true },
  }).registered;
  const caller = opening.use(createHttpCaller({ url: relay.url, token }));
  const target = { userId, clientId: CLIENT };
  await caller.invoke({ ...target, action: 'note.add' }, { text: userId }, { commandId: ENDED });
  // This command does not end while the world is open, so that a caller always waits.
  const live = caller.invoke({ ...target, action: 'note.wait' }, {}, { commandId: LIVE, respondWithinMs: 300_000 });
  live.catch(() => undefined);
  const expected = { '/contexts/count': CONTEXTS, '/browser-windows/count': WINDOWS, '/rpc/pending/count': 1 };
  for (const [path, count] of Object.entries(expected)) await shows(relay, `${path}?user_id=${userId}`, count);
  return runtime;
}

/** Resolves when the relay counts as many rows as expected, because reports and waits have no acknowledgement. */
async function shows(relay: RealRelay, path: string, expected: number): Promise<void> {
  await eventually(async () => expect(await read(relay, path)).toMatchObject({ count: expected }));
}

async function read(relay: RealRelay, path: string): Promise<unknown> {
  const answer = await fetch(`${relay.url}${path}`, { headers: { authorization: `Bearer ${relay.admin}` } });
  return answer.json();
}
