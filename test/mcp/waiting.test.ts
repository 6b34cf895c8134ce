/** Tests how long calls of agents wait, what happens when an agent hangs up, and when an answer counts as delivered. */
import { Agent as HttpAgent } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { AGENT_ARRIVED_MS, AGENT_HUNG_UP_MS, AGENT_WAIT_MS } from '../../src/core/limits.ts';
import { startTestRelay, until, type TestRelay, type Welcomed } from '../relay/kit/test-relay.ts';
import { callTool, postText, recordOf, textOf, type RawAnswer, type RawMessage } from './kit/agents.ts';

type Args = Readonly<Record<string, unknown>>;

async function start(): Promise<{ relay: TestRelay; tab: Welcomed; call: Call } & AsyncDisposable> {
  const relay = await startTestRelay({ mcp: 'on' });
  const tab = await relay.client();
  const token = await relay.token('alice:invoke');
  const call: Call = (args, more, name = 'open') => callTool({ url: relay.url, token }, name, args, more);
  return { relay, tab, call, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}
type Call = (args?: Args, more?: Omit<RawMessage, 'method' | 'params'>, name?: string) => Promise<RawAnswer>;

const commandsOf = (tab: Welcomed) => tab.seen('command').length;

/** Waits until the relay has handled what the socket did. */
async function advance({ clock }: TestRelay, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) await clock.advance(Math.min(1_000, ms - passed));
}

async function keepAlive(relay: TestRelay, tab: Welcomed, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 15_000) {
    await advance(relay, Math.min(15_000, ms - passed));
    await tab.sync();
  }
}

describe('a call of an agent', () => {
  it('ends as unknown within the call if the client stays silent, and is refused when it is repeated', async () => {
    await using at = await start();
    const { relay, tab, call } = at;
    const answer = call({ n: 1 });
    await tab.next('command');
    await advance(relay, 31_000);
    const said = textOf((await answer).result);
    expect((await answer).result.isError).toBe(true);
    expect(said).toMatch(/^response_timeout: /);
    expect(said).toContain('MAY HAVE RUN');
    const [, id = ''] = /repeat_of: "(mcp-[^"]+)"/.exec(said) ?? [];
    const refused = textOf((await call({ n: 1 })).result);
    expect(refused).toMatch(/^repeat_refused: .*outcome_unknown/);
    expect(refused).toContain(id);
    expect(commandsOf(tab)).toBe(1);
    const again = call({ n: 1, repeat_of: id });
    const { command_id } = await tab.next('command');
    expect(command_id).not.toBe(id);
    tab.send({ type: 'result', command_id }, { ok: true });
    expect((await again).result.structuredContent).toEqual({ ok: true });
  });

  it('of a longer action returns before hosts give up, and await_command gets its end', async () => {
    await using at = await start();
    const { relay, tab, call } = at;
    const answer = call({ respond_within_ms: 200_000 });
    const { command_id } = await tab.next('command');
    tab.send({ type: 'ack', command_id });
    await tab.sync();
    await keepAlive(relay, tab, AGENT_WAIT_MS);
    const said = textOf((await answer).result);
    expect(said).toMatch(/^still_running: .*acknowledged/);
    expect(said).toContain(command_id);
    const awaited = call({ command_id, client: 'tab' }, {}, 'await_command');
    const other = call({ respond_within_ms: 200_000 });
    const second = await tab.next('command');
    tab.send({ type: 'result', command_id }, { late: true });
    expect((await awaited).result.structuredContent).toEqual({ late: true });
    tab.send({ type: 'result', command_id: second.command_id }, { other: true });
    const { result } = await other;
    expect(result.structuredContent).toBeUndefined();
    expect(textOf(result)).toMatch(
      new RegExp(
        `^This call ran as .*An equal earlier call.*${command_id}, ended as completed[^]*\n\n\\{"other":true\\}$`,
      ),
    );
  });

  it('sends progress every five seconds to an agent that asks for it', async () => {
    await using at = await start();
    const { relay, tab, call } = at;
    const answer = call({}, { meta: { progressToken: 'p' } });
    const { command_id } = await tab.next('command');
    tab.send({ type: 'progress', command_id }, { done: 3, text: 'a\u0000b' });
    await tab.sync();
    await advance(relay, 11_000);
    tab.send({ type: 'result', command_id }, { ok: true });
    const { text, result, headers } = await answer;
    expect(headers['content-type']).toMatch(/^text\/event-stream/);
    expect(result.structuredContent).toEqual({ ok: true });
    const sent = [...text.matchAll(/^data: (.*)$/gm)]
      .map(([, data = '']) => JSON.parse(data))
      .filter(({ method }) => method);
    expect(sent.map(({ params }) => params.progress)).toEqual([5, 10]);
    expect(sent[1].params).toMatchObject({ progressToken: 'p', message: expect.stringContaining('{"done":3') });
  });
});

describe('when an agent hangs up', () => {
  type At = Awaited<ReturnType<typeof start>>;
  /** A call in the older form of the protocol, in which a closed connection says nothing. */
  async function oldCall({ relay }: At, signal: AbortSignal): Promise<unknown> {
    const token = (await relay.token('alice:invoke')) ?? '';
    const params = { name: 'open', arguments: { n: 1 } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    return postText({ url: relay.url, token }, body, {}, signal).catch((error: unknown) => error);
  }
  const waits = async ({ relay }: At): Promise<number> =>
    (await relay.data('{ pendingRpcCount { count } }'))['pendingRpcCount'].count;
  async function hangUp(at: At): Promise<void> {
    const hungUp = new AbortController();
    const answer = oldCall(at, hungUp.signal);
    await at.tab.next('command');
    hungUp.abort();
    await answer;
    await until(async () => (await waits(at)) === 0);
  }
  const outcomes = async (relay: TestRelay) => {
    const { commands } = await relay.data('{ commands { nodes { outcome stage cancelRequestedAt } } }');
    return commands.nodes;
  };

  it('a command that runs is asked to cancel after ten seconds, and is not ended by that', async () => {
    await using at = await start();
    const { relay, tab } = at;
    await hangUp(at);
    await advance(relay, AGENT_HUNG_UP_MS - 1_000);
    expect(tab.seen('cancel')).toHaveLength(0);
    await advance(relay, 1_000);
    await tab.next('cancel');
    expect(await outcomes(relay)).toMatchObject([{ outcome: null, cancelRequestedAt: expect.anything() }]);
    const repeat = oldCall(at, new AbortController().signal);
    const { command_id } = tab.seen('command')[0]!;
    await until(async () => (await waits(at)) === 1);
    tab.send({ type: 'result', command_id }, { ok: true });
    expect((await repeat) as RawAnswer).toMatchObject({
      text: expect.stringContaining('did not run the action again'),
    });
    expect(commandsOf(tab)).toBe(1);
  });

  it('nothing is cancelled if an equal call came within ten seconds', async () => {
    await using at = await start();
    const { relay, tab } = at;
    await hangUp(at);
    const repeat = oldCall(at, new AbortController().signal);
    await until(async () => (await waits(at)) === 1);
    await advance(relay, AGENT_HUNG_UP_MS + 1_000);
    await tab.sync();
    expect(tab.seen('cancel')).toHaveLength(0);
    const { command_id } = tab.seen('command')[0]!;
    tab.send({ type: 'result', command_id }, { ok: true });
    expect((await repeat) as RawAnswer).toMatchObject({ text: expect.stringContaining('{\\"ok\\":true}') });
  });

  it('at 2026-07-28, where that is the word for it, the client is asked to cancel at once', async () => {
    await using at = await start();
    const { tab, call } = at;
    const hungUp = new AbortController();
    const answer = call({ n: 1 }, { signal: hungUp.signal }).catch((error: unknown) => error);
    await tab.next('command');
    hungUp.abort();
    await answer;
    expect(await tab.next('cancel')).toMatchObject({ command_id: tab.seen('command')[0]!.command_id });
  });
});

describe('an answer', () => {
  /** Calls `open` and lets the client answer. Returns how often it was dispatched so far. */
  async function complete(
    { tab, call }: Awaited<ReturnType<typeof start>>,
    more: Omit<RawMessage, 'method' | 'params'> = {},
  ) {
    const before = commandsOf(tab);
    const answer = call({ n: 1 }, more);
    const first = await Promise.race([tab.next('command').catch(() => null), answer.then(() => null)]);
    if (first) tab.send({ type: 'result', command_id: first.command_id }, { run: commandsOf(tab) });
    const { result } = await answer;
    return { ran: commandsOf(tab) - before, result };
  }

  /** Completes a call over a connection of its own, which is reset after the answer. */
  async function completeAndReset(at: Awaited<ReturnType<typeof start>>): Promise<void> {
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    const sockets: Socket[] = [];
    agent.on('free', (socket: Socket) => sockets.push(socket));
    expect((await complete(at, { agent })).ran).toBe(1);
    expect(sockets).toHaveLength(1);
    sockets[0]?.resetAndDestroy();
    agent.destroy();
  }

  it('that was written whole ends its call: the next equal one runs, over any connection and at any time', async () => {
    await using at = await start();
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    for (let n = 0; n < 5; n++) expect((await complete(at, { agent })).ran).toBe(1);
    agent.destroy();
    for (const ms of [0, 1_000, AGENT_ARRIVED_MS, 60_000]) {
      await keepAlive(at.relay, at.tab, ms);
      expect((await complete(at)).ran).toBe(1);
    }
  });

  it('is not delivered if its connection is reset, however long ago that was', async () => {
    await using at = await start();
    await completeAndReset(at);
    await advance(at.relay, 2 * AGENT_ARRIVED_MS);
    expect((await complete(at)).ran).toBe(0);
  });

  it('is not delivered by cancel_command, which does not tell the result', async () => {
    await using at = await start();
    await completeAndReset(at);
    const { nodes } = (await at.relay.data('{ commands { nodes { commandId } } }'))['commands'];
    const cancelled = await at.call({ command_id: nodes[0].commandId }, {}, 'cancel_command');
    expect(cancelled.result.structuredContent).toMatchObject({ state: 'too_late', outcome: 'completed' });
    await advance(at.relay, 2 * AGENT_ARRIVED_MS);
    expect((await complete(at)).ran).toBe(0);
  });

  it('is noted in the record of its command, unless the caller chose the id', async () => {
    await using at = await start();
    const { core } = at.relay.callboard;
    const keyed = await complete(at, { meta: { 'callboard/idempotencyKey': 'order-1' } });
    const plain = await complete(at);
    await advance(at.relay, AGENT_ARRIVED_MS);
    await until(async () => (await recordOf(core, plain.result))?.answeredAt !== undefined);
    const record = await recordOf(core, keyed.result);
    expect(record).toMatchObject({ commandId: 'order-1', outcome: 'completed' });
    expect(record).not.toHaveProperty('answeredAt');
  });

  it('has no effect on a call with a key of its own, which names its command', async () => {
    await using at = await start();
    const withKey = (key: string) => complete(at, { meta: { 'callboard/idempotencyKey': key } });
    expect((await withKey('order-1')).ran).toBe(1);
    expect((await withKey('order-1')).ran).toBe(0);
    const other = await at.call({ n: 2 }, { meta: { 'callboard/idempotencyKey': 'order-1' } });
    expect(textOf(other.result)).toMatch(/^command_conflict: /);
    expect((await withKey('order-2')).ran).toBe(1);
    const [command] = (await at.relay.data('{ findCommands(idOrTrace: "order-1") { nodes { commandId } } }'))[
      'findCommands'
    ].nodes;
    expect(command.commandId).toBe('order-1');
    expect(textOf((await withKey('not an id')).result)).toMatch(
      /^invalid_argument: callboard\/idempotencyKey: The key is not a valid id of a command\.\nNothing ran\./,
    );
  });
});

describe('an id that begins with `mcp-`', () => {
  it('is refused as an idempotency key, and from callers of every other interface', async () => {
    await using at = await start();
    const { relay, tab, call } = at;
    const keyed = await call({ n: 1 }, { meta: { 'callboard/idempotencyKey': 'mcp-1' } });
    expect(textOf(keyed.result)).toMatch(
      /^invalid_argument: callboard\/idempotencyKey: Ids that begin with "mcp-" are reserved\.\nNothing ran\./,
    );
    const posted = await relay.post('/connections/alice/tab/actions/open', { command_id: 'mcp-1' });
    expect([posted.status, posted.text]).toEqual([400, expect.stringContaining('are reserved')]);
    const input = '{ userId: "alice", clientId: "tab", action: "open", commandId: "mcp-1" }';
    const mutation = `mutation { invokeAction(input: ${input}) { __typename ... on Refusal { code } } }`;
    const asked = await relay.graphql(mutation, { requester: 'alice' });
    expect(asked.text).toContain('invalid_argument');
    const caller = await relay.caller('alice');
    caller.send({ type: 'invoke', ref: 'r', client_id: 'tab', action: 'open', command_id: 'mcp-1' }, {});
    expect(await caller.next('refused')).toMatchObject({ code: 'invalid_argument', ref: 'r' });
    await tab.sync();
    expect(commandsOf(tab)).toBe(0);
  });
});
