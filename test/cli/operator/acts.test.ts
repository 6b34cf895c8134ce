/**
 * Tests the operator's commands that change something, ask for confirmation or show a payload, against a real relay.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../../src/backends/memory/backend.ts';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { silentLog } from '../../../src/core/ports.ts';
import { createShares } from '../../../src/core/shares/shares.ts';
import { createCrypto } from '../../../src/platform/system.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { VERSION } from '../../../src/version.ts';
import { ADMIN } from '../../http/kit/http-relay.ts';
import { FakeClock, meanwhile } from '../../kit/clock.ts';
import { startTestRelay } from '../../relay/kit/test-relay.ts';
import { interruption, operatorOf, type RunOperator } from './kit/operator.ts';

let relay: RealRelay;
let desk: Runtime;
const run: RunOperator = (...given) => operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: relay.admin })(...given);
const asAlice = async () => ({ env: { CALLBOARD_TOKEN: await relay.token('alice', 'invoke') } });

/** Resolves when the action `hang` runs. */
let hanging = Promise.withResolvers<void>();

beforeAll(async () => {
  relay = await startRealRelay({ nodeId: 'node-a', label: 'test' });
  const token = await relay.token('alice', 'connect');
  desk = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  desk.handle('echo', {}, (params) => params);
  desk.handle('break', {}, () => {
    throw new Error('it is broken');
  });
  desk.handle('hang', {}, ({}, { signal }) => {
    hanging.resolve();
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  desk.connect();
  await desk.ready();
  await run(['call', 'alice/desk', 'echo', 'secret=planted-payload', '--id', 'c1'], await asAlice());
});
afterAll(async () => {
  await desk.close({ withinMs: 0 });
  await relay[Symbol.asyncDispose]();
});

describe('preflight', () => {
  it('says what each layer would answer, and exits with 5 where the call would be refused', async () => {
    const alice = await asAlice();
    const admitted = await run(['preflight', 'alice/desk', 'echo', 'a=1', '-o', 'json'], alice);
    expect([admitted.code, JSON.parse(admitted.out)]).toMatchObject([0, { first_refusal: null }]);
    const refused = await run(['preflight', 'alice/gone', 'echo'], alice);
    expect(refused).toMatchObject({ code: 5, err: '' });
    expect(refused.out).toMatch(/^target +refuse +not_connected +relay +/m);
    expect((await run(['calls', 'ls', '-o', 'ids'])).out).toBe('alice/desk/c1\n');
  });
});

describe('calls reveal', () => {
  it('needs a reason, shows the value, and leaves a row in the audit', async () => {
    expect(await run(['calls', 'reveal', 'alice/desk/c1'])).toMatchObject({ code: 2, out: '' });
    const reveal = ['calls', 'reveal', 'alice/desk/c1', '--subject', 'params', '--reason', 'ticket 4711'];
    const { code, out } = await run([...reveal, '-o', 'json']);
    expect([code, JSON.parse(out)]).toMatchObject([0, { value: { secret: 'planted-payload' } }]);
    const rows = await run(['audit', 'ls', '--user-id', 'alice', '--action', 'reveal', '-o', 'json']);
    expect(JSON.parse(rows.out).items).toMatchObject([
      { action: 'reveal', outcome: 'revealed', reason: 'ticket 4711', subject: { user_id: 'alice', command_id: 'c1' } },
    ]);
    expect(rows.out).not.toContain('planted-payload');
  });

  it('says what is wrong with 2, and what is not there with 3', async () => {
    const about = (id: string, ...flags: string[]) =>
      run(['calls', 'reveal', id, '--reason', 'a look for a test', ...flags]);
    expect(await about('alice/desk/c1', '--subject', 'params', '--message', 'm1')).toMatchObject({ code: 2, out: '' });
    expect(await about('alice/desk/c1', '--subject', 'message')).toMatchObject({ code: 2, out: '' });
    expect(await about('alice/desk/none')).toMatchObject({ code: 3, out: '' });
  });

  it('says of a call without a result that it has none, and what can be shown', async () => {
    await run(['call', 'alice/desk', 'break', 'on:=true', '--id', 'f1'], await asAlice());
    const about = (...flags: string[]) =>
      run(['calls', 'reveal', 'alice/desk/f1', '--reason', 'a look for a test', ...flags]);
    const params = '--subject params shows what it was called with.';
    expect(await about()).toEqual({
      code: 3,
      out: '',
      err: `not_found: This call has no result (failed). ${params}\n`,
    });
    expect((await about('--subject', 'params')).out).toMatch(/^value\.on +true$/m);
  });
});

describe('a call that is interrupted', () => {
  it('is cancelled with --cancel-on-interrupt, and its client gets the cancellation', async () => {
    hanging = Promise.withResolvers();
    const { stop, interrupt } = interruption();
    const alice = await asAlice();
    const argv = ['call', 'alice/desk', 'hang', '--id', 'h1', '--cancel-on-interrupt'];
    const calling = run(argv, { ...alice, stop });
    await hanging.promise;
    interrupt();
    expect(await calling).toMatchObject({ code: 130, err: expect.stringContaining('Cancelling alice/desk/h1') });
    expect(await run(['calls', 'await', 'alice/desk/h1', '-o', 'json'], alice)).toMatchObject({
      code: 6,
      out: expect.stringContaining('"outcome":"cancelled"'),
    });
  });
});

describe('clients disconnect', () => {
  it('does nothing unless the name is typed again, or --yes is given', async () => {
    const argv = ['clients', 'disconnect', 'alice/desk', '--reason', 'a test'];
    expect(await run(argv)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    const questions: string[] = [];
    const ask = async (question: string) => (questions.push(question), 'table');
    expect(await run(argv, { ask })).toMatchObject({ code: 2, err: expect.stringContaining('nothing was done') });
    expect(questions).toEqual(['Closing the link of alice/desk. Type desk to go on: ']);
    const back = new Promise<void>((resolve) => {
      const forget = desk.onStatus(({ state }) => {
        if (state === 'disconnected') (forget(), resolve());
      });
    });
    const done = await run([...argv, '-o', 'json'], { ask: async () => 'desk' });
    expect([done.code, JSON.parse(done.out)]).toMatchObject([0, { state: expect.stringMatching(/closed|requested/) }]);
    await back;
    expect((await run(['audit', 'ls', '--action', 'disconnect'])).out).toMatch(
      /^ID +AT +WHO +ACTION +OUTCOME +SUBJECT +REASON\n\d+ .* disconnect .* alice\/desk, instance i-\S+ +a test\n/,
    );
    expect(await run(['clients', 'disconnect', 'alice/none', '--yes'])).toMatchObject({ code: 3 });
    await desk.ready();
  });
});

describe('status, top and doctor', () => {
  it('show figures, and exit with 1 exactly if something needs a person', async () => {
    const { code, out } = await run(['status', '-o', 'json']);
    const status = JSON.parse(out);
    // Whether the node needs attention depends on the machine, which may be too busy to run the node's loops in time.
    expect(code).toBe(status.needs_attention.length === 0 ? 0 : 1);
    expect(status).toMatchObject({ label: 'test', calls_per_second: expect.any(Number), waits: 0 });
    expect(status.p99_ms).toBeGreaterThan(0);
    const top = await run(['top', '--count', '1', '--sort', 'queued'], { screen: true });
    expect(top.out).toMatch(/^\u001b\[H\u001b\[J/);
    expect(top.out).toMatch(/^alice +desk +console /m);
    const twice = await run(['top', '--count', '2', '--interval', '500ms', '-o', 'jsonl']);
    const clients = twice.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).clients[0].client_id);
    expect(clients).toEqual(['desk', 'desk']);
  });

  it('checks each step, and ends at the first fault', async () => {
    const well = await run(['doctor', '-o', 'jsonl']);
    const checks = well.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(checks.map(({ check }) => check)).toEqual([
      ...['contexts', 'address', 'token source', 'relay', 'token', 'version', 'deployment'],
    ]);
    expect(checks.slice(0, -1).map(({ verdict }) => verdict)).toEqual(Array(6).fill('ok'));
    expect(well.out).not.toContain(relay.admin);
    const wrong = await run(['doctor'], { env: { CALLBOARD_TOKEN: 'wrong' } });
    expect(wrong).toMatchObject({ code: 4, out: expect.stringMatching(/^token +fault +unauthenticated/m) });
    const away = await run(['doctor'], { env: { CALLBOARD_URL: 'http://127.0.0.1:1' } });
    expect(away).toMatchObject({ code: 11, out: expect.stringMatching(/^relay +fault +unreachable/m) });
  });
});

describe('nodes of different versions', () => {
  const report = {
    ...{ listenerAlive: true, reconciliationAlive: true, activeDrainers: 0, connectionWaiters: 0, links: 3 },
    ...{ unfinishedCommands: 0, draining: false, counters: new Map<string, number>() },
  };

  it('are listed with the facts of their processes; status names the versions, and doctor warns', async () => {
    const clock = new FakeClock(Date.now());
    const { sha256 } = createCrypto('test');
    const backend = createMemoryBackend({
      markSecret: 'x',
      clock,
      log: silentLog,
      sha256,
      shares: createShares(),
      history: {},
    });
    await using mixed = await startTestRelay({ nodeId: 'relay-a' }, { clock, backend });
    const { nodes } = backend;
    await nodes.attach('relay-b', {
      deliver: () => {},
      lost: () => Promise.resolve(),
      linksLost: () => {},
      revived: () => {},
    });
    const startedAt = clock.now() - 93_600_000;
    const facts = { version: '9.8.7', startedAt, memoryBytes: 93_240_000, loopDelayMs: 1.25 };
    const there = { env: { CALLBOARD_URL: mixed.url, CALLBOARD_TOKEN: ADMIN }, clock };
    const printed = async (line: string, process: typeof facts | null = facts): Promise<string> => {
      await nodes.beat('relay-b', { ...report, process });
      // The relay asks the other node for its waits and series. That node never answers, so the clock must go on.
      return (await meanwhile(clock, run(line.split(' '), there))).out;
    };
    expect(await printed('nodes ls')).toMatch(/^relay-b +9\.8\.7 +26 h 0 m +3 +0 +93 MB +1\.25 ms +- +false +false /m);
    expect(await printed('status')).toMatch(
      new RegExp(`^versions +differ: relay-a ${VERSION}; relay-b 9\\.8\\.7$`, 'm'),
    );
    expect(await printed('doctor')).toMatch(
      /^versions of the nodes +warning +they differ: relay-a .*; relay-b 9\.8\.7$/m,
    );
    expect(await printed('nodes ls', null)).toMatch(/^relay-b +- +- +3 +0 +- +- +- +false +false /m);
    expect(await printed('status', null)).toMatch(/^versions +differ: relay-a .*; relay-b not reported$/m);
  });
});

describe('nodes drain', () => {
  it('drains a node, which then refuses calls with 5', async () => {
    await using other = await startRealRelay({ nodeId: 'node-b' });
    const there = { CALLBOARD_URL: other.url, CALLBOARD_TOKEN: other.admin };
    const [node = ''] = (await run(['nodes', 'ls', '-o', 'ids'], { env: there })).out.split('\n');
    expect(await run(['nodes', 'drain', node], { env: there })).toMatchObject({ code: 2 });
    const flags = ['--yes', '--within', '1s', '--reason', 'a new kernel', '-o', 'json'];
    const drained = await run(['nodes', 'drain', node, ...flags], { env: there });
    expect([drained.code, JSON.parse(drained.out)]).toMatchObject([0, { node_id: node, draining: true }]);
    const audit = await run(['audit', 'ls', '--action', 'drain'], { env: there });
    expect(audit.out).toMatch(new RegExp(` node ${node} .* a new kernel$`, 'm'));
    expect(await run(['nodes', 'drain', 'none', '--yes'], { env: there })).toMatchObject({ code: 3 });
    if ((await run(['nodes', 'ls', '-o', 'ids'], { env: there })).out.trimEnd().includes('\n')) return;
    const alice = { ...there, CALLBOARD_TOKEN: await other.token('alice', 'invoke') };
    const refused = await run(['call', 'alice/desk', 'echo', '--connect', '5s', '-o', 'json'], { env: alice });
    expect([refused.code, JSON.parse(refused.err)]).toMatchObject([5, { code: 'draining', status: 503 }]);
  });
});
