/** Tests `callboard/testing`: a relay, its clock, its clients, and records, as a user's test has them. */
import { expect, test } from 'vitest';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { openTestRelay, TestClock } from '../../src/testing/index.ts';

const SPEC = { schema: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } } } as const;
const actions = { 'notes.add': SPEC, 'notes.clear': {} };
const kiosk = { userId: 'alice', clientId: 'kiosk-1', actions } as const;
const target = { userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' } as const;

test('a client answers a call as the test says, and the record is read', async () => {
  await using relay = await openTestRelay();
  const client = await relay.client(kiosk);
  client.answer('notes.add', ({ text }) => ({ added: text }));
  const answer = await relay.caller('alice').invoke(target, { text: 'milk' });
  expect(answer).toMatchObject({ outcome: 'completed', result: { added: 'milk' } });
  const record = await relay.record({ userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' });
  expect(record).toMatchObject({ commandId: answer.handle.commandId, outcome: 'COMPLETED' });
});

test('the test takes a command, reports progress, and answers or fails it', async () => {
  await using relay = await openTestRelay();
  const client = await relay.client(kiosk);
  const caller = relay.caller('alice');
  const seen: unknown[] = [];
  const called = caller.invoke(target, { text: 'milk' }, { onProgress: ({ value }) => seen.push(value) });
  const command = await client.received('notes.add');
  expect(command.params).toEqual({ text: 'milk' });
  expect(command.progress({ done: 1 })).toBe(true);
  command.answer({ count: 1 });
  expect(await called).toMatchObject({ outcome: 'completed', result: { count: 1 } });
  expect(seen).toEqual([{ done: 1 }]);
  const failing = caller.invoke(target, { text: 'tea' });
  (await client.received('notes.add')).fail('no paper');
  expect(await failing).toMatchObject({ outcome: 'failed', error: { code: 'handler_failed', message: 'no paper' } });
});

test('commands wait in the order in which they came, until something answers them', async () => {
  await using relay = await openTestRelay();
  const client = await relay.client(kiosk);
  const caller = relay.caller('alice');
  const calls = [];
  for (const [i, text] of ['a', 'b', 'c'].entries()) {
    calls.push(caller.invoke(target, { text }, { commandId: `c-${i}` }));
    await relay.record({ ...filter, commandId: `c-${i}` }, ({ delivery }) => delivery?.stage === 'ACKNOWLEDGED');
  }
  const first = await client.received('notes.add');
  expect(first.params).toEqual({ text: 'a' });
  client.answer('notes.add', ({ text }) => ({ late: text }));
  first.answer({ first: true });
  first.fail('only the first answer counts');
  const results = (await Promise.all(calls)).map((one) => (one.outcome === 'completed' ? one.result : one));
  expect(results).toEqual([{ first: true }, { late: 'b' }, { late: 'c' }]);
});
const filter = { userId: 'alice', clientId: 'kiosk-1' };

test('a deadline passes when the test moves the clock, and no link is lost by that', async () => {
  await using relay = await openTestRelay();
  const client = await relay.client(kiosk);
  const called = relay.caller('alice').invoke(target, { text: 'milk' }, { respondWithinMs: 60_000 });
  const command = await client.received('notes.add');
  await relay.clock.advance(59_000);
  expect(command.signal.aborted).toBe(false);
  await relay.clock.advance(2_000);
  expect(command.signal.aborted).toBe(true);
  expect(await called).toMatchObject({ outcome: 'outcome_unknown', lastProvenStage: 'acknowledged' });
  await relay.clock.advance(10 * 60_000);
  const { nodes } = await relay.admin.connections({ userId: 'alice', status: 'CONNECTED' });
  expect(nodes.map(({ clientId }) => clientId)).toEqual(['kiosk-1']);
});

test('a call waits for a client that is away, and expires by the clock of the test', async () => {
  await using relay = await openTestRelay();
  const caller = relay.caller('alice');
  const called = caller.invoke(target, { text: 'milk' }, { connectWithinMs: 30_000 });
  await relay.record(filter, ({ outcome }) => outcome === null);
  await relay.clock.advance(31_000);
  expect(await called).toMatchObject({ outcome: 'expired' });
  const waiting = caller.invoke(target, { text: 'tea' }, { connectWithinMs: 30_000, commandId: 'tea' });
  await relay.record({ ...filter, commandId: 'tea' }, ({ outcome }) => outcome === null);
  const client = await relay.client(kiosk);
  (await client.received('notes.add')).answer('done');
  expect(await waiting).toMatchObject({ outcome: 'completed', result: 'done' });
});

test('a link that is cut in the middle, and opened again, leaves the command to the same run of the client', async () => {
  await using relay = await openTestRelay();
  const client = await relay.client(kiosk);
  const called = relay.caller('alice').invoke(target, { text: 'milk' }, { respondWithinMs: 120_000 });
  const command = await client.received('notes.add');
  await client.cutLink();
  command.answer({ count: 1 });
  expect((await relay.record(filter, () => true)).outcome).toBeNull();
  await client.restoreLink();
  expect(await called).toMatchObject({ outcome: 'completed', result: { count: 1 } });
});

test('a client that stays away leaves the outcome unknown', async () => {
  await using relay = await openTestRelay();
  const client = await relay.client(kiosk);
  const called = relay.caller('alice').invoke(target, { text: 'milk' }, { respondWithinMs: 20_000 });
  await client.received('notes.add');
  await client.cutLink();
  await relay.clock.advance(21_000);
  expect(await called).toMatchObject({ outcome: 'outcome_unknown' });
});

test('a runtime of the program connects to it, with the clock of the test', async () => {
  await using relay = await openTestRelay();
  const runtime = createRuntime({
    ...{ url: relay.connectUrl, clock: relay.clock, token: await relay.token('bob'), clientId: 'own' },
    clientType: 'console',
    onStatus: () => {},
  });
  runtime.handle('double', {}, ({ n }) => Number(n) * 2);
  runtime.connect();
  await runtime.ready();
  const answer = await relay.caller('bob').invoke({ userId: 'bob', clientId: 'own', action: 'double' }, { n: 21 });
  expect(answer).toMatchObject({ outcome: 'completed', result: 42 });
  await runtime.close();
});

test('settings apply, and credentials hold', async () => {
  await using relay = await openTestRelay({ config: { label: 'Of a test', operatorConsole: false } });
  expect((await fetch(`${relay.url}/console/`)).status).toBe(404);
  const answer = await fetch(`${relay.url}/users`, { headers: { authorization: `Bearer ${relay.adminToken}` } });
  expect(answer.status).toBe(200);
  expect((await fetch(`${relay.url}/users`)).status).toBe(401);
  const connectOnly = await relay.token('alice', ['connect']);
  const called = await fetch(`${relay.url}/connections/alice/kiosk-1/actions/notes.add`, {
    method: 'POST',
    headers: { authorization: `Bearer ${connectOnly}`, 'content-type': 'application/json' },
    body: '{}',
  });
  expect(called.status).toBe(403);
});

test('what is misspelled or never comes is named', async () => {
  await using relay = await openTestRelay();
  const client = await relay.client(kiosk);
  expect(() => client.received('notes.ad')).toThrow('has no action "notes.ad"; it has notes.add, notes.clear');
  expect(() => client.answer('x', () => 1)).toThrow('has no action "x"');
  await expect(relay.record(filter)).rejects.toThrow('within 5000 ms. There is none at all.');
  const called = relay.caller('alice').invoke(target, { text: 'milk' }, { commandId: 'c-1' });
  const command = await client.received('notes.add');
  await expect(relay.record({ ...filter, action: 'notes.add' })).rejects.toThrow(
    'The newest is c-1 (notes.add): stage ACKNOWLEDGED, outcome null.',
  );
  command.answer();
  await called;
});

test('the clock runs timers in order, and only as far as it is moved', async () => {
  const clock = new TestClock(1_000);
  const ran: string[] = [];
  clock.after(20, () => ran.push(`b ${clock.now()}`));
  clock.after(10, () => void Promise.resolve().then(() => ran.push(`a ${clock.now()}`)));
  const stop = clock.every(15, () => ran.push(`every ${clock.now()}`));
  await clock.advance(19);
  expect(ran).toEqual(['a 1010', 'every 1015']);
  stop();
  await clock.advance(1);
  expect(ran).toEqual(['a 1010', 'every 1015', 'b 1020']);
});
