/** Starts a relay with one client and one row of every kind. Its ids and times are the same in each run. */
import { FakeClock } from '../../../kit/clock.ts';
import { startTestRelay, until, type TestRelay, type Welcomed } from '../../../relay/kit/test-relay.ts';

const NOON = Date.UTC(2026, 0, 31, 12);
/** The only action of the client. */
export const ACTION = { name: 'lamp.set', version: '1', summary: 'Switches the lamp' };
const CONTEXT = { context_id: 'tab-1', status: 'idle', ownership: 'worker', window_id: 'win-1', title: 'Mail' };
const WINDOW = {
  ...{ window_id: 'win-1', ownership: 'worker', focused: true, type: 'normal', state: 'normal', incognito: false },
  ...{ tab_count: 1, capacity: 2, draining: false, status: 'open' },
};

export type GoldenRelay = AsyncDisposable & {
  readonly relay: TestRelay;
  readonly desk: Welcomed;
};

/** Starts the relay. Call c1 has completed, c2 has failed, and c3 runs while one caller waits for it. */
export async function startGoldenRelay(): Promise<GoldenRelay> {
  const relay = await startTestRelay({ nodeId: 'node-a', label: 'golden' }, { clock: new FakeClock(NOON) });
  const hello = { client_id: 'desk', instance_id: 'i1', client_type: 'browser' } as const;
  const payload = { actions: [ACTION], metadata: { room: '12' } };
  const desk = await relay.client({ ...hello, payload });
  desk.send(
    { type: 'report' },
    { contexts: { snapshot: true, set: [CONTEXT] }, windows: { snapshot: true, set: [WINDOW] } },
  );
  await until(async () => (await relay.data(CONTEXTS))['contextCount'].count === 1);
  await relay.data(SITE, { requester: 'alice' });
  const ended = async (command_id: string, end: () => void): Promise<void> => {
    const answered = relay.post('/connections/alice/desk/actions/lamp.set', { command_id, params: { on: true } });
    await desk.next('command');
    await relay.clock.advance(250);
    end();
    await answered;
  };
  await ended('c1', () => desk.send({ type: 'result', command_id: 'c1' }, { on: true }));
  const fault = { code: 'handler_failed', message: 'The lamp is gone.' } as const;
  await ended('c2', () => desk.send({ type: 'error', command_id: 'c2', ...fault }));
  void relay.post('/connections/alice/desk/actions/lamp.set', { command_id: 'c3' });
  await desk.next('command');
  // The node writes its report every two seconds, so the report exists after this step.
  await relay.clock.advance(2000);
  return { relay, desk, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}

const CONTEXTS = '{ contextCount { count } }';
const SITE = `mutation {
  registerSite(input: { siteId: "board", clientId: "desk", title: "Board", eventNames: ["moved"], actions: ["lamp.set"] }) {
    __typename
  }
}`;
