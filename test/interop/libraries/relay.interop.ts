/** Tests the GraphQL client Relay, set up as the documentation says, with a real Callboard relay. */
import { join } from 'node:path';
import { createElement, Suspense, useEffect, type ComponentType, type ReactNode } from 'react';
import { RelayEnvironmentProvider } from 'react-relay';
import { create, type ReactTestRenderer } from 'react-test-renderer';
import type { Environment } from 'relay-runtime';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi, type MockInstance } from 'vitest';
import { RECIPES } from '../kit/recipes.ts';
import { CLIENT, CONTEXTS, openClient, openWorld, USERS, type World } from '../kit/world.ts';
import { eventually } from '../../kit/patience.ts';

type Row = Readonly<Record<string, any>>;
/** The latest props with which each component of the app was rendered. */
type Shown = {
  contexts: { readonly contexts: readonly Row[]; readonly hasNext: boolean; readonly loadNext: (n: number) => void };
  readonly users: Map<string, { readonly user: Row; readonly refetch: (variables: Row, options: Row) => void }>;
  /** The rows below each user, in the order of the app. */
  readonly connections: Map<string, Row>;
};
type Recipe = { createRelayEnvironment(given: { relay: string; token: () => string }): Environment };
type App = { Overview: ComponentType<{ readonly pageSize: number; readonly views: object }> };

const PAGE = 10;
/** React logs this warning once for each renderer. The code below the renderer is the same as in a browser. */
const EXPECTED = /react-test-renderer is deprecated/;

let world: World;
let app: ReactTestRenderer;
let environment: Environment;
let shown: Shown;
let warnings: MockInstance[];

beforeAll(async () => void (world = await openWorld()));
afterAll(() => world?.[Symbol.asyncDispose]());

beforeEach(async () => {
  warnings = (['warn', 'error'] as const).map((name) => vi.spyOn(console, name).mockReturnValue(undefined));
  const { createRelayEnvironment }: Recipe = await import(join(RECIPES, 'relay-environment.mjs'));
  const { Overview }: App = await import(join(RECIPES, 'app/Overview.js'));
  environment = createRelayEnvironment({ relay: world.relay.url, token: () => world.relay.admin });
  shown = {
    contexts: { contexts: [], hasNext: false, loadNext: () => undefined },
    users: new Map(),
    connections: new Map(),
  };
  const inside = createElement(Overview, { pageSize: PAGE, views: viewsOf(shown) });
  const page = createElement(Suspense, { fallback: null }, inside);
  app = create(createElement(RelayEnvironmentProvider, { environment }, page));
  await eventually(() => {
    expect([shown.contexts.contexts.length, shown.connections.size]).toEqual([PAGE, expect.toSatisfy((n) => n >= 2)]);
  });
});
afterEach(() => {
  app.unmount();
  const said = warnings.flatMap(({ mock }) => mock.calls).filter(([text]) => !EXPECTED.test(String(text)));
  vi.restoreAllMocks();
  expect(said).toEqual([]);
});

/**
 * Returns components that record their props once they are mounted, because their functions may be called only then.
 */
function viewsOf(into: Shown): object {
  const noted = (note: () => void, children: ReactNode = null): ReactNode => (useEffect(note), children);
  return {
    Contexts: (props: Shown['contexts']) => noted(() => void (into.contexts = props)),
    User: ({ user, refetch, children }: Row & { readonly children: ReactNode }) =>
      noted(() => void into.users.set(user['userId'], { user, refetch }), children),
    Connection: ({ connection }: Row) => noted(() => void into.connections.set(connection['instanceId'], connection)),
  };
}

const idsOf = (rows: readonly Row[]): string[] => rows.map((row) => `${row['userId']}/${row['contextId']}`).sort();

test('a Relay app shows every row of two users with the same local ids, page after page', async () => {
  for (let pages = 1; shown.contexts.hasNext; pages++) {
    expect(pages).toBeLessThan(10);
    const expected = Math.min((pages + 1) * PAGE, 2 * CONTEXTS);
    shown.contexts.loadNext(PAGE);
    await eventually(() => expect(shown.contexts.contexts.length).toBe(expected));
  }
  const all = USERS.flatMap((user) => Array.from({ length: CONTEXTS }, (_, i) => `${user}/context-${i}`)).sort();
  expect(idsOf(shown.contexts.contexts)).toEqual(all);
  expect([...shown.users.keys()]).toEqual(USERS);
});

test('a Relay app loads one user again by its id', async () => {
  const bob = shown.users.get('bob');
  expect(bob?.user).toMatchObject({ userId: 'bob', connectionCount: 1 });
  const token = (): Promise<string> => world.token('bob');
  const second = await openClient(world.relay, token, 'of-a-second-client', 'second');
  bob?.refetch({}, { fetchPolicy: 'network-only' });
  await eventually(() => expect(shown.users.get('bob')?.user).toMatchObject({ connectionCount: 2 }));
  expect(shown.users.get('alice')?.user).toMatchObject({ connectionCount: 1 });
  expect(shown.connections.get('of-a-second-client')).toMatchObject({ clientId: 'second', status: 'CONNECTED' });
  await second.close({ withinMs: 0 });
});

test('a Relay app changes the row of one user when an event says so, without code for it', async () => {
  const before = [...shown.connections.values()].filter(({ clientId }) => clientId === CLIENT);
  expect(before.length).toBe(2);
  let runs = 0;
  await using clients = new AsyncDisposableStack();
  // The subscription may begin after an event, so new instances take over until the app shows one.
  await eventually(async () => {
    const runtime = await openClient(world.relay, () => world.token('bob'), `run-${runs++}`);
    clients.defer(() => runtime.close({ withinMs: 0 }));
    expect(shown.connections.get(`run-${runs - 2}`)).toBeDefined();
  });
  await eventually(() => expect(shown.connections.get(`run-${runs - 1}`)).toMatchObject({ status: 'CONNECTED' }));
  await clients.disposeAsync();
  await eventually(() => expect(shown.connections.get(`run-${runs - 1}`)).toMatchObject({ status: 'DISCONNECTED' }));
  const alice = before.find(({ instanceId }) => shown.connections.get(instanceId)?.['status'] === 'CONNECTED');
  expect(alice).toMatchObject({ clientId: CLIENT, status: 'CONNECTED' });
});
