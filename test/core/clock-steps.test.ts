/** Tests that a step of the wall clock ends nothing early or late in direct mode, with and without a data directory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openCallboard, type Callboard } from '../../src/callboard.ts';
import { connectionStatus } from '../../src/core/connections/connection.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { connect, user, type TestClient } from '../kit/core.ts';

const HOUR = 3_600_000;
const ALICE = user('alice');
const KEY = { userId: 'alice', clientId: 'tab' };

async function opened(clock: FakeClock, durable: boolean): Promise<Callboard> {
  const dataDir = durable ? await mkdtemp(join(tmpdir(), 'callboard-steps-')) : undefined;
  const callboard = await openCallboard({
    clock,
    config: { ...(dataDir && { dataDir }), auth: { secret: 's'.repeat(32) } },
  });
  await callboard.listen();
  onTestFinished(async () => {
    await callboard.close();
    if (dataDir) await rm(dataDir, { recursive: true, force: true });
  });
  return callboard;
}

function call({ core }: Callboard, commandId: string, respondWithinMs: number) {
  return core.rpc.invoke(ALICE, { ...KEY, action: 'open', params: null, commandId, respondWithinMs });
}

/** Lets time pass in steps of a second, in each of which the client gives a sign of life. */
async function pass(clock: FakeClock, client: TestClient, seconds: number): Promise<boolean> {
  let isAlive = true;
  for (let i = 0; i < seconds; i++) {
    await clock.advance(1_000);
    isAlive &&= await client.session.alive();
  }
  return isAlive;
}

describe.each([
  ['memory', false],
  ['a data directory', true],
] as const)('over %s', (_, durable) => {
  test.each([HOUR, -HOUR])('a step of %i ms closes no link and ends no command early or late', async (step) => {
    const clock = new FakeClock();
    const callboard = await opened(clock, durable);
    const client = await connect(callboard.core, ALICE);
    const long = call(callboard, 'long', 60_000);
    const short = call(callboard, 'short', 3_000);
    await settle();
    expect(client.sent.map(({ command }) => command.commandId)).toEqual(['long', 'short']);
    let isShortOver = false;
    void short.then(() => (isShortOver = true));
    await pass(clock, client, 1);
    clock.stepWall(step);
    expect([await pass(clock, client, 1), isShortOver]).toEqual([true, false]);
    const connection = await callboard.core.connections.get(ALICE, KEY);
    expect(connection).toMatchObject({ disconnectedAt: null });
    if (connection) expect(connectionStatus(connection, connection.lastSeenAt + 1_000)).toBe('connected');
    expect([await pass(clock, client, 2), isShortOver]).toEqual([true, true]);
    expect(await short).toMatchObject({ command: { outcome: 'outcome_unknown', error: { code: 'response_timeout' } } });
    const next = call(callboard, 'next', 30_000);
    await settle();
    expect(client.last.commandId).toBe('next');
    await client.session.end('next', { kind: 'result', payload: null, error: null, refused: false });
    expect(await next).toMatchObject({ command: { outcome: 'completed' } });
    await pass(clock, client, 40);
    await client.session.end('long', { kind: 'result', payload: null, error: null, refused: false });
    expect(await long).toMatchObject({ command: { outcome: 'completed' } });
    expect(client.closes).toEqual([]);
  });
});
