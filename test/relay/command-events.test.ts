/** Tests the subscription to events of commands, on a whole relay. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RawStream } from '../graphql/kit/stream.ts';
import { startTestRelay, until, type TestRelay, type Welcomed } from './kit/test-relay.ts';

const EVENTS = `subscription ($filter: CommandEventFilter) { commandEvents(filter: $filter) {
  stage at missed record { id commandId action clientType outcome code durationMs caller { name } } } }`;
type Told = { readonly stage: string; readonly record: Record<string, unknown>; readonly missed: number };

let at: TestRelay;
let tab: Welcomed;
const streams: RawStream[] = [];
beforeEach(async () => {
  at = await startTestRelay();
  tab = await at.client();
});
afterEach(async () => {
  for (const stream of streams.splice(0)) stream.abort();
  await at[Symbol.asyncDispose]();
});

const eventsIn = (stream: RawStream): Told[] =>
  [...stream.text().matchAll(/^data: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json).data.commandEvents);
const stages = (stream: RawStream): string[] =>
  eventsIn(stream).map(({ stage, record }) => `${String(record['commandId'])} ${stage}`);

let probes = 0;
/** Opens a subscription, and waits until events of both nodes arrive. */
async function listen(requester: string, filter: object = {}): Promise<RawStream> {
  const stream = await at.subscribe(EVENTS, { requester, variables: { filter } });
  streams.push(stream);
  await until(async () => {
    const probe = `probe-${probes++}`;
    await at.post('/connections/alice/tab/actions/open', { command_id: probe, wait_for: 'admitted' });
    await tab.next('command');
    tab.send({ type: 'error', command_id: probe, code: 'handler_failed' });
    return stream.text().includes('ENDED');
  });
  return stream;
}
const own = (stream: RawStream, commandId: string): string[] =>
  stages(stream)
    .filter((line) => line.startsWith(`${commandId} `))
    .map((line) => line.split(' ')[1] ?? '');

describe('events of commands', () => {
  it('show each stage of a command once, with its record, to administrators and to the user', async () => {
    const [admin, user] = [await listen('admin'), await listen('alice')];
    await at.post('/connections/alice/tab/actions/open', { command_id: 'c1', wait_for: 'admitted' });
    await tab.next('command');
    tab.send({ type: 'ack', command_id: 'c1' });
    await admin.until('ACKNOWLEDGED');
    tab.send({ type: 'result', command_id: 'c1' });
    const all = ['ADMITTED', 'DISPATCHED', 'ACKNOWLEDGED', 'ENDED'];
    for (const stream of [admin, user]) {
      await until(() => own(stream, 'c1').length >= all.length);
      expect(own(stream, 'c1').sort()).toEqual([...all].sort());
      const last = eventsIn(stream).find(({ stage, record }) => stage === 'ENDED' && record['commandId'] === 'c1');
      expect(last).toMatchObject({
        missed: 0,
        record: { action: 'open', clientType: 'BROWSER', outcome: 'COMPLETED' },
      });
    }
  });

  it('are those of the filter only', async () => {
    const failed = await listen('admin', { outcomes: ['FAILED'], userId: 'alice', clientType: 'BROWSER' });
    for (const [commandId, end] of [
      ['good', { type: 'result' }],
      ['bad', { type: 'error', code: 'handler_failed' }],
    ] as const) {
      await at.post('/connections/alice/tab/actions/open', { command_id: commandId, wait_for: 'admitted' });
      await tab.next('command');
      tab.send({ ...end, command_id: commandId } as never);
    }
    await until(() => own(failed, 'bad').length > 0);
    expect([own(failed, 'good'), own(failed, 'bad')]).toEqual([[], ['ENDED']]);
    const { code, outcome } = eventsIn(failed).at(-1)?.record ?? {};
    expect([code, outcome]).toEqual(['handler_failed', 'FAILED']);
  });

  it('of other users are not for a user, and invalid filters are refused', async () => {
    const refused = async (requester: string, filter: object): Promise<string> => {
      const stream = await at.subscribe(EVENTS, { requester, variables: { filter } });
      await stream.until('event: complete');
      stream.abort();
      return stream.text();
    };
    expect(await refused('bob', { userId: 'alice' })).toContain('"not_found"');
    expect(await refused('alice:connect', {})).toContain('"forbidden"');
    expect(await refused('admin', { outcomes: [] })).toContain('"invalid_argument"');
    expect(await refused('admin', { clientId: 'a b' })).toContain('"invalid_argument"');
  });
});
