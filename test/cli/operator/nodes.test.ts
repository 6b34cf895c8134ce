/**
 * Tests the operator's commands that read data of the whole deployment, run against each of its relays: one in direct
 * mode, two over Redis. The client `near` is connected to the relay that most commands ask, and `far` to the other one.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { eventually } from '../../kit/patience.ts';
import { nodesOf } from '../../kit/store.ts';
import { interruption, operatorOf, type Ended, type RunOperator } from './kit/operator.ts';

const NODES = nodesOf('n');
const CLIENTS = ['near', 'far'] as const;

let relay: RealRelay;
const clients: Runtime[] = [];
/** Runs a command against the relay to which `near` is connected. */
const run: RunOperator = (...given) => operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: relay.admin })(...given);
/** Runs a command against the relay to which `far` is connected. */
const atFar: RunOperator = (argv, settings) =>
  run(argv, { ...settings, env: { CALLBOARD_URL: relay.linkUrl, ...settings?.env } });
/**
 * Reads until the answer is complete: where an owner does not answer for a second, as on a busy machine, it is not, and
 * the command says so.
 */
const read = (line: string, ask = run): Promise<string> =>
  eventually(async () => succeeded(await ask(line.split(' '))).out);
const json = async (line: string, ask = run) => JSON.parse(await read(`${line} -o json`, ask));

function succeeded(ended: Ended): Ended {
  expect([ended.code, ended.err]).toEqual([0, '']);
  return ended;
}

/** Resolves when the action `hang` runs at `far`. `release` ends the action. */
const hanging = Promise.withResolvers<void>();
const release = Promise.withResolvers<string>();
/**
 * A call of `hang`, made at the relay of `far`. That relay therefore holds the wait. Its budget is the greatest, so that
 * it does not end before it is released.
 */
let hangingCall: Promise<Ended>;

beforeAll(async () => {
  relay = await startRealRelay({ nodeId: 'n' });
  const token = await relay.token('alice', 'connect', 'invoke');
  for (const [i, clientId] of CLIENTS.entries()) {
    const url = i === 0 ? `${relay.url.replace(/^http/, 'ws')}/connect` : relay.link;
    const client = createRuntime({ url, token, clientId, clientType: 'console' });
    clients.push(client);
    client.handle('echo', {}, (params) => params);
    client.handle('hang', {}, () => {
      hanging.resolve();
      return release.promise;
    });
    client.connect();
    await client.ready();
    succeeded(await run(['call', `alice/${clientId}`, 'echo', 'a=1', '--id', `c-${clientId}`]));
  }
  hangingCall = atFar(['call', 'alice/far', 'hang', '--id', 'h1', '--respond', '5m']);
  await hanging.promise;
  // With owners, a relay learns with its next lease that another one reports.
  for (const ask of [run, atFar])
    await eventually(async () => expect((await json('nodes ls', ask)).items).toHaveLength(NODES.length));
});
afterAll(async () => {
  for (const client of clients) await client.close({ withinMs: 0 });
  await relay[Symbol.asyncDispose]();
});

describe('every relay answers for the deployment', () => {
  it('with all nodes and their links', async () => {
    const { items } = await json('nodes ls');
    expect(items.map((row: { node_id: string }) => row.node_id)).toEqual(NODES);
    for (const row of items) expect(row).toMatchObject({ stale: false, draining: false, mailbox_listener_alive: true });
    for (const ask of [run, atFar]) {
      const status = JSON.parse((await ask(['status', '-o', 'json'])).out);
      expect(status).toMatchObject({ nodes: NODES.length, waits: 1, oldest_wait: 'alice/far/h1' });
    }
  });

  // Both relays must show these members alike. Values that depend on the time of reading, such as the age of a wait,
  // are not among them.
  it.each([
    ['clients ls', ['client_id', 'node_id', 'status', 'client_type']],
    ['clients ls --action hang', ['client_id', 'node_id']],
    ['calls ls', ['client_id', 'command_id', 'outcome', 'code', 'admitted_at', 'duration_ms']],
    ['waits ls', ['client_id', 'command_id', 'action', 'caller_node_id']],
    ['users ls', ['user_id', 'connection_count', 'stream_count']],
    ['capacity ls', ['scope_id', 'reserved_commands', 'limit']],
    ['streams ls alice', ['stream', 'message_count']],
    ['messages ls alice/clients/far', ['message_id', 'kind', 'command_id']],
    ['messages ls alice/clients/near', ['message_id', 'kind', 'command_id']],
    ['actions ls echo', ['client_id', 'user_id']],
  ])('%s', async (line, members) => {
    const [here, there] = [await json(line), await json(line, atFar)];
    const shown = ({ items }: { items: Record<string, unknown>[] }) =>
      items.map((row) => members.map((member) => row[member]));
    expect(here.completeness.complete).toBe(true);
    expect(shown(here).length).toBeGreaterThan(0);
    expect(shown(there)).toEqual(shown(here));
  });

  it('with the clients, calls and waits of both', async () => {
    const onNode = (await json('clients ls')).items.map((row: Record<string, string>) => [
      row['client_id'],
      row['node_id'],
    ]);
    expect(Object.fromEntries(onNode)).toEqual({ near: NODES.at(-1), far: 'n' });
    expect((await read('calls ls -o ids')).split('\n').sort()).toEqual([
      ...['', 'alice/far/c-far', 'alice/far/h1', 'alice/near/c-near'],
    ]);
    expect(await read('waits ls -o ids')).toBe('alice/far/h1\n');
    expect(await read('waits count')).toBe('1\n');
    expect((await json('capacity ls')).items).toMatchObject([{ scope_id: 'alice', reserved_commands: 1 }]);
    expect(await json('calls get alice/far/h1')).toMatchObject({ delivery: { stage: 'acknowledged' } });
  });

  it('with the calls that all nodes counted', async () => {
    // Those of `beforeAll` may have ended more than a minute ago.
    succeeded(await run(['call', 'alice/near', 'echo', '--id', 'm-near']));
    succeeded(await atFar(['call', 'alice/far', 'echo', '--id', 'm-far']));
    const frame = JSON.parse((await run(['top', '--count', '1', '-o', 'json'])).out);
    expect(frame).toMatchObject({ nodes: NODES.length });
    expect(frame.ended_last_minute.completed).toBeGreaterThanOrEqual(2);
    expect(frame.p99_ms).toBeGreaterThan(0);
    expect(frame.clients).toMatchObject([
      { client_id: 'far', in_flight: 1 },
      { client_id: 'near', in_flight: 0 },
    ]);
    expect(frame.clients[0].oldest_wait_ms).toBeGreaterThan(0);
  });

  it('with the acts of administrators, in one chain', async () => {
    const reveal = ['calls', 'reveal', 'alice/far/c-far', '--reason'];
    succeeded(await run([...reveal, 'asked at near']));
    succeeded(await atFar([...reveal, 'asked at far']));
    const here = await json('audit ls');
    expect(here.items).toMatchObject([
      { action: 'reveal', reason: 'asked at far', node_id: 'n', outcome: 'revealed' },
      { action: 'reveal', reason: 'asked at near', node_id: NODES.at(-1), outcome: 'revealed' },
    ]);
    expect((await json('audit ls', atFar)).items).toEqual(here.items);
    for (const url of [relay.url, relay.linkUrl]) {
      const env = { CALLBOARD_SECRET: relay.secret };
      const verified = await run(['audit', 'verify', '--url', url], { env });
      expect(verified).toMatchObject({ code: 0, out: expect.stringMatching(/^4 rows verified, 1 to 4;/) });
    }
  });
});

describe('a verb that follows events', () => {
  /** Repeats `act` until the command has ended, because a subscription begins some time after its request. */
  async function whileRunning(running: Promise<Ended>, act: () => Promise<unknown>): Promise<Ended> {
    let over = false;
    void running.finally(() => (over = true));
    while (!over) await act();
    return running;
  }

  it('calls tail prints calls that were made at the other node', async () => {
    const tail = run(['calls', 'tail', '--client-id', 'far', '--outcome', 'completed', '--count', '1', '-o', 'jsonl']);
    const ended = await whileRunning(tail, () => atFar(['call', 'alice/far', 'echo']));
    expect(JSON.parse(succeeded(ended).out)).toMatchObject({ event: 'ended', record: { client_id: 'far' } });
  });

  it('clients watch prints clients of the other node', async () => {
    const token = await relay.token('bob', 'connect');
    const ended = await whileRunning(
      run(['clients', 'watch', '--user-id', 'bob', '--count', '1', '-o', 'ids']),
      async () => {
        const guest = createRuntime({ url: relay.link, token, clientId: 'guest', clientType: 'console' });
        guest.connect();
        await guest.ready();
        await guest.close({ withinMs: 0 });
      },
    );
    expect(succeeded(ended).out).toBe('bob/guest\n');
  });

  it('waits watch prints a wait of the other node', async () => {
    const { stop, interrupt } = interruption();
    const onPrint = (out: string): void => void (out.includes('alice/far/h1') && interrupt());
    const watch = await run(['waits', 'watch', '--older', '1s', '-o', 'ids'], { stop, onPrint });
    expect(watch).toMatchObject({ code: 130, out: expect.stringMatching(/^alice\/far\/h1$/m) });
  });

  it('messages tail prints messages that come to the other node', async () => {
    let called: Promise<unknown> | null = null;
    const onPrint = (): void => void (called ??= atFar(['call', 'alice/near', 'echo', '--id', 'last']));
    const argv = [
      'messages',
      'tail',
      'alice/clients/near',
      '--kind',
      'result',
      '--last',
      '1',
      '--count',
      '2',
      '-o',
      'json',
    ];
    const ended = await run(argv, { onPrint });
    const lines = succeeded(ended).out.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).command_id)).toEqual(['m-near', 'last']);
    await called;
  });
});

describe('an act', () => {
  it('calls await and cancel work at the node that did not admit the call', async () => {
    expect(await run(['calls', 'await', 'alice/far/h1', '--within', '1ms'])).toMatchObject({ code: 9 });
    const awaited = run(['calls', 'await', 'alice/far/h1', '-o', 'json']);
    release.resolve('released');
    expect(JSON.parse(succeeded(await awaited).out)).toMatchObject({ outcome: 'completed', result: 'released' });
    succeeded(await hangingCall);
  });

  it('clients disconnect closes a link of the other node', async () => {
    const gone = new Promise<void>((resolve) => {
      const forget = clients[1]?.onStatus(({ state }) => {
        if (state === 'disconnected') (forget?.(), resolve());
      });
    });
    const done = await run(['clients', 'disconnect', 'alice/far', '--yes', '--reason', 'a test', '-o', 'json']);
    expect(JSON.parse(succeeded(done).out).state).toMatch(/closed|requested/);
    await gone;
    await clients[1]?.ready();
  });

  it('nodes drain drains the other node', async () => {
    const drained = await run(['nodes', 'drain', 'n', '--within', '1s', '--yes', '-o', 'json']);
    expect(JSON.parse(succeeded(drained).out)).toMatchObject({ node_id: 'n', draining: true });
    const answer = await atFar(['call', 'alice/near', 'echo', '-o', 'json']);
    expect([answer.code, JSON.parse(answer.err).code]).toEqual([5, 'draining']);
  });
});
