/**
 * Tests what requests of agents may cost a relay: bounds before a message is parsed, shares and turns, the list of tools
 * and its changes.
 */
import { request } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import {
  AGENT_MESSAGE_CHARS,
  AGENT_MESSAGE_PARTS,
  AGENT_QUERY_CHARS,
  AGENT_QUERY_WORDS,
} from '../../src/core/limits.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { MODERN, callTool, connectClient, post, postText, textOf } from './kit/agents.ts';

const at = async (relay: RealRelay) => ({ url: relay.url, token: await relay.token('alice', 'invoke') });

/** The text of a call of the protocol before 2026-07-28. */
function callText(params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
}

describe('a message', () => {
  it('that is a batch is refused, and nothing runs', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    let runs = 0;
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('run', {}, () => ++runs));
    const batch = await postText(await at(relay), `[${callText({ name: 'run' })}]`);
    expect([batch.status, batch.text]).toEqual([400, expect.stringContaining('Batches are not accepted')]);
    expect(runs).toBe(0);
  });

  it('with too much besides the arguments of its call is refused, in both protocols', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const agent = await at(relay);
    const many = Object.fromEntries(Array.from({ length: AGENT_MESSAGE_PARTS }, (_, n) => [`m${n}`, n]));
    const long = { text: 'x'.repeat(AGENT_MESSAGE_CHARS) };
    for (const meta of [many, long]) {
      const modern = await post(agent, { method: 'tools/list', meta });
      const old = await postText(agent, callText({ name: 'list_clients', _meta: meta }));
      expect([modern.status, old.status]).toEqual([413, 413]);
      expect(modern.text).toContain('besides the arguments of its call');
    }
    const few = await post(agent, { method: 'tools/list', meta: { text: 'x'.repeat(1_000) } });
    expect(few.status).toBe(200);
  });

  it('may have large arguments, which reach the action as they were written', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const texts: string[] = [];
    await using _desk = await connectClient(relay, (runtime) =>
      runtime.handle('take', {}, (_, { paramsText }) => void texts.push(paramsText)),
    );
    const args = { rows: Array.from({ length: 20_000 }, (_, n) => n), text: 'x'.repeat(100_000) };
    const answer = await callTool(await at(relay), 'take', args);
    expect(textOf(answer.result)).toContain('completed');
    expect(texts).toEqual([JSON.stringify(args)]);
  });

  it('counts as a request and as a document of its user until its answer is written', async () => {
    await using relay = await startRealRelay({ mcp: 'on', shares: { documents: { guarantee: 2 } } });
    const gate = Promise.withResolvers<void>();
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('wait', {}, () => gate.promise));
    const agent = await at(relay);
    const held = (): number => relay.callboard.core.shares.of('alice').held('documents');
    const calls = [1, 2].map((n) => callTool(agent, 'wait', { n }));
    await expect.poll(held).toBe(2);
    expect(relay.callboard.core.shares.of('alice').held('requests')).toBe(2);
    const refused = await post(agent, { method: 'tools/list' });
    expect([refused.status, refused.text]).toEqual([429, expect.stringContaining('share_exceeded')]);
    gate.resolve();
    for (const answer of await Promise.all(calls)) expect(answer.status).toBe(200);
    await expect.poll(held).toBe(0);
    expect((await post(agent, { method: 'tools/list' })).status).toBe(200);
  });
});

describe('find_actions', () => {
  it('takes a bounded number of words and characters', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const agent = await at(relay);
    for (const query of ['x'.repeat(AGENT_QUERY_CHARS + 1), 'a b c d e f g h i'.slice(0, 2 * AGENT_QUERY_WORDS + 1)]) {
      const { result } = await callTool(agent, 'find_actions', { query });
      expect(textOf(result)).toMatch(/^invalid_argument: query: expected at most 8 words, in 128 characters/);
    }
  });

  it('finds actions by their names and texts, in whatever case', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    await using _desk = await connectClient(relay, (runtime) => {
      runtime.handle('lamp.set', { summary: 'Switches the LIGHT' }, () => null);
      runtime.handle('door.open', { summary: 'Opens it' }, () => null);
    });
    const agent = await at(relay);
    const found = async (query: string): Promise<readonly string[]> => {
      const { result } = await callTool(agent, 'find_actions', { query });
      return result.structuredContent.actions.map(({ action }: { action: string }) => action);
    };
    expect(await found('light LAMP')).toEqual(['lamp.set']);
    expect(await found('')).toEqual(['door.open', 'lamp.set']);
    expect(await found('light door')).toEqual([]);
  });
});

describe('an action whose schema is not listed', () => {
  it('says why in describe_action and preflight, and shows the schema with its hidden characters', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    await using _desk = await connectClient(relay, (runtime) =>
      runtime.handle(
        'send',
        { jsonSchema: { type: 'object', properties: { 'to[]': { description: 'a\u202eb' } } } } as never,
        () => null,
      ),
    );
    const agent = await at(relay);
    const described = await callTool(agent, 'describe_action', { action: 'send', client: '' });
    const [client] = described.result.structuredContent.clients;
    expect(client.listed_open).toContain('"to[]", which hosts refuse');
    expect(client.schema.properties['to[]'].description).toBe('a\\u202eb');
    const preflight = await callTool(agent, 'preflight', { action: 'send', client: 'desk', context_id: '' });
    expect(preflight.result.structuredContent).toMatchObject({ would_admit: 'pass', listed_open: client.listed_open });
  });
});

describe('the list of tools', () => {
  it('may be kept for five seconds, and has the tools of actions', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('lamp.set', {}, () => null));
    const { result } = await post(await at(relay), { method: 'tools/list' });
    expect(result.ttlMs).toBe(5_000);
    expect(result.tools.map(({ name }: { name: string }) => name)).toContain('lamp_set');
  });

  it.each([
    ['application/json', /^application\/json/],
    ['application/json, text/event-stream', /^text\/event-stream/],
    ['*/*', /^text\/event-stream/],
    ['text/event-stream', /^text\/event-stream/],
    ['', /^text\/event-stream/],
  ])('is given to an old host that accepts "%s"', async (accept, type) => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const agent = await at(relay);
    const answer = await postText(agent, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', { accept });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(type);
    expect(answer.result.tools.length).toBeGreaterThan(7);
  });

  it('is told to have changed to the streams of its user alone, when a client comes', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const alice = await listen(await at(relay));
    const bob = await listen({ url: relay.url, token: await relay.token('bob', 'invoke') });
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('lamp.set', {}, () => null));
    await expect.poll(alice.text).toContain('notifications/tools/list_changed');
    expect(bob.text()).toContain('acknowledged');
    expect(bob.text()).not.toContain('list_changed');
    alice.close();
    bob.close();
    await expect.poll(() => relay.callboard.core.shares.of('alice').held('documents')).toBe(0);
  });

  it('is read before an agent knows that it listens, however slow the store is', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const agent = await at(relay);
    const { connections } = relay.callboard.core;
    const { list } = connections;
    const asked = Promise.withResolvers<void>();
    const answers = Promise.withResolvers<void>();
    const held = vi.spyOn(connections, 'list').mockImplementation(async (...args) => {
      asked.resolve();
      await answers.promise;
      return list(...args);
    });
    const opening = listen(agent);
    await asked.promise;
    const other = post(agent, { method: 'ping' }).then(() => 'nothing');
    expect(await Promise.race([opening.then(({ text }) => text()), other])).toBe('nothing');
    answers.resolve();
    held.mockRestore();
    const stream = await opening;
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('lamp.set', {}, () => null));
    await expect.poll(stream.text).toContain('notifications/tools/list_changed');
    stream.close();
  });
});

/** Opens a stream of changes. */
async function listen({ url, token }: { readonly url: string; readonly token: string }) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'raw-host', version: '3.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { notifications: { toolsListChanged: true }, _meta: meta };
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let text = '';
  const headers = {
    ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': MODERN },
    'mcp-method': 'subscriptions/listen',
  };
  const sent = request(`${url}/mcp`, { method: 'POST', headers, agent: false }, (response) => {
    response.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      resolve();
    });
    response.on('error', () => {});
  });
  sent.on('error', reject);
  sent.end(JSON.stringify({ jsonrpc: '2.0', id: 'listen', method: 'subscriptions/listen', params }));
  await promise;
  return { text: () => text, close: () => void sent.destroy() };
}

describe('the address of the endpoint', () => {
  it('may end with a slash, and says how to get a token', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const { token } = await at(relay);
    const ask = (path: string, authorization: string) =>
      fetch(`${relay.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(authorization !== '' && { authorization }) },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      });
    expect((await ask('/mcp/', `Bearer ${token}`)).status).toBe(200);
    const refused = await ask('/mcp/', '');
    expect(refused.status).toBe(401);
    expect(await refused.text()).toContain('callboard token --mcp --user <user>');
  });
});
