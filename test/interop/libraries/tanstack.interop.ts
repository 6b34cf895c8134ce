/** Tests TanStack Query, set up as the documentation says, with a real relay. */
import { join } from 'node:path';
import type { QueryClient, QueryObserver } from '@tanstack/query-core';
import { expect, test } from 'vitest';
import { RECIPES } from '../kit/recipes.ts';
import { openClient, openWorld, USERS } from '../kit/world.ts';

type Row = { readonly userId: string; readonly status: string };
type Queries = {
  readonly queries: QueryClient;
  readonly connections: QueryObserver<readonly Row[]>;
  readonly stop: () => void;
};
type Recipe = { createQueries(given: { relay: string; token: () => string }): Queries };

test('TanStack Query, as the documentation sets it up, loads a list again after an event', async () => {
  await using world = await openWorld();
  const { createQueries }: Recipe = await import(join(RECIPES, 'tanstack.mjs'));
  const { queries, connections, stop } = createQueries({ relay: world.relay.url, token: () => world.relay.admin });
  let shown: readonly Row[] = [];
  const unsubscribe = connections.subscribe(({ data }) => void (shown = data ?? []));
  const users = (): readonly string[] => shown.map(({ userId }) => userId);
  await expect.poll(users).toEqual(USERS);
  const token = (): Promise<string> => world.token('carol');
  // The first event may come before the subscription does, so clients connect until one is noticed.
  let clients = 0;
  const connect = async (): Promise<readonly string[]> => {
    world.keep(await openClient(world.relay, token, `run-${clients++}`));
    return users();
  };
  await expect.poll(connect, { interval: 500 }).toEqual([...USERS, 'carol']);
  unsubscribe();
  stop();
  queries.clear();
});
