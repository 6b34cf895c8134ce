/** Starts a relay with one client and one row of every kind. Its ids and times are the same in each run. */
import { FakeClock } from '../../../kit/clock.ts';
import type { Ended } from './operator.ts';
import { startTestRelay, until, type TestRelay, type Welcomed } from '../../../relay/kit/test-relay.ts';

const NOON = Date.UTC(2026, 0, 31, 12);
/** The only action of the client. */
const ACTION = { name: 'lamp.set', version: '1', summary: 'Switches the lamp' };
const CONTEXT = { context_id: 'tab-1', status: 'idle', ownership: 'worker', window_id: 'win-1', title: 'Mail' };
const WINDOW = {
  ...{ window_id: 'win-1', ownership: 'worker', focused: true, type: 'normal', state: 'normal', incognito: false },
  ...{ tab_count: 1, capacity: 2, draining: false, status: 'open' },
};

export type GoldenRelay = AsyncDisposable & {
  readonly relay: TestRelay;
  readonly desk: Welcomed;
  /** The action that the client advertises. */
  readonly action: typeof ACTION;
};

/**
 * Starts the relay. Call c1 has completed, c2 has failed, and c3 runs while one caller waits for it. Each text that a
 * client may choose ends with `ending`.
 */
export async function startGoldenRelay(ending = ''): Promise<GoldenRelay> {
  const action = { ...ACTION, summary: `${ACTION.summary}${ending}` };
  const relay = await startTestRelay({ nodeId: 'node-a', label: 'golden' }, { clock: new FakeClock(NOON) });
  const hello = { client_id: 'desk', instance_id: 'i1', client_type: 'browser' } as const;
  const payload = { actions: [action], metadata: { room: `12${ending}` } };
  const desk = await relay.client({ ...hello, payload });
  desk.send(
    { type: 'report' },
    {
      contexts: { snapshot: true, set: [{ ...CONTEXT, title: `${CONTEXT.title}${ending}` }] },
      windows: { snapshot: true, set: [WINDOW] },
    },
  );
  await until(async () => (await relay.data(CONTEXTS))['contextCount'].count === 1);
  await relay.data(siteOf(`Board${ending}`), { requester: 'alice' });
  const ended = async (command_id: string, end: () => void): Promise<void> => {
    const answered = relay.post('/connections/alice/desk/actions/lamp.set', { command_id, params: { on: true } });
    await desk.next('command');
    await relay.clock.advance(250);
    end();
    await answered;
  };
  await ended('c1', () =>
    desk.send({ type: 'result', command_id: 'c1' }, ending === '' ? { on: true } : { on: ending }),
  );
  // Of the message of an error the relay keeps one line.
  const fault = { code: 'handler_failed', message: `The lamp is gone.${ending.trimStart()}` } as const;
  await ended('c2', () => desk.send({ type: 'error', command_id: 'c2', ...fault }));
  void relay.post('/connections/alice/desk/actions/lamp.set', { command_id: 'c3' });
  await desk.next('command');
  // The node writes its report every two seconds, so the report exists after this step.
  await relay.clock.advance(2000);
  return { relay, desk, action, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}

const CONTEXTS = '{ contextCount { count } }';
const siteOf = (title: string): string => `mutation {
  registerSite(input: { siteId: "board", clientId: "desk", title: ${JSON.stringify(title)}, eventNames: ["moved"], actions: ["lamp.set"] }) {
    __typename
  }
}`;

/** The arguments with which each verb is run. Verbs that change something come last within their noun. */
export const ARGUMENTS: Readonly<Record<string, string>> = {
  'devices rename': 'alice/none Hall',
  'devices rm': 'alice/none --yes',
  top: '--count 1',
  'nodes drain': 'node-a --yes --within 1s',
  revoke: '--user-id nobody --issued-before 2026-01-31T00:00:00Z --reason golden --yes',
  'policy check': 'test/cli/operator/kit/policy.json',
  'policy diff': 'test/cli/operator/kit/policy.json',
  'clients get': 'alice/desk',
  'clients actions': 'alice/desk',
  'clients watch': '--count 1',
  'clients disconnect': 'alice/desk --yes',
  'users get': 'alice',
  'sites get': 'alice/board',
  mcp: '--token-file nowhere/token',
  call: 'alice/desk lamp.set on:=true --id c1',
  preflight: 'alice/desk lamp.set on:=true',
  'calls find': 'c2',
  'calls get': 'alice/desk/c2',
  'calls await': 'alice/desk/c3 --within 0ms',
  'calls cancel': 'alice/desk/c1',
  'calls tail': '--outcome completed --count 1',
  'calls reveal': 'alice/desk/c1 --subject params --reason golden-output',
  'waits watch': '--older 1s --count 1',
  pause: '--user-id bob --action lamp.* --until 2026-03-01T00:00:00Z --reason golden',
  resume: 'none',
  'streams ls': 'alice',
  'messages ls': 'alice/clients/desk',
  'messages tail': 'alice/clients/desk --count 2',
  'context add': 'prod https://relay.example --token-command pass',
  'context use': 'prod',
  'context rm': 'prod',
  conformance: '--list',
  completion: 'fish',
};
/** The verbs that need events while they run, because they print nothing else. */
export const EVENTS = ['clients watch', 'calls tail'];
/** The verbs that are run after all others, because they change what the others show. */
export const LAST = ['clients disconnect', 'nodes drain'];

/** Repeats `act` until the run has ended, since a subscription begins some time after its request. */
export async function repeated(running: Promise<Ended>, act: () => Promise<unknown>): Promise<Ended> {
  let over = false;
  void running.finally(() => (over = true));
  while (!over) await act();
  return running;
}

let made = 0;

/** Calls the action once, and answers it. */
export async function callOnce({ relay, desk }: GoldenRelay): Promise<void> {
  const command_id = `t${String(++made).padStart(4, '0')}`;
  const answered = relay.post('/connections/alice/desk/actions/lamp.set', { command_id });
  await desk.next('command');
  desk.send({ type: 'result', command_id }, null);
  await answered;
}

/** Changes the actions of the client and restores them, so that events occur. */
export async function changeActions({ relay, desk, action }: GoldenRelay): Promise<void> {
  for (const actions of [[], [action]]) {
    desk.send({ type: 'actions' }, { actions });
    const names = JSON.stringify(actions.map(({ name }) => name));
    await until(async () => JSON.stringify((await relay.data(NAMES))['connection'].actionNames) === names);
  }
}

const NAMES = '{ connection(userId: "alice", clientId: "desk") { actionNames } }';
