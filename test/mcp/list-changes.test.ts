/** Tests when the list of tools changes, when its readers hear of it, and how long a catalog is kept; by a test clock. */
import { beforeEach, describe, expect, it } from 'vitest';
import { trustJson } from '../../src/core/json.ts';
import {
  AGENT_CATALOG_MS,
  AGENT_LIST_CHANGED_MS,
  AGENT_TOOLS,
  DEAD_MS,
  FORGET_MS,
  PING_MS,
} from '../../src/core/limits.ts';
import { silentLog } from '../../src/core/ports.ts';
import { BUILTIN_NAMES } from '../../src/mcp/builtin-tools.ts';
import { createAgentServers, type AgentSession } from '../../src/mcp/server.ts';
import { advertisement, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { GENERATIONS, inMemory, type Agent } from './kit/agents.ts';
import { MENDED, REFUSED } from './kit/hostile-schemas.ts';

const alice = user('alice', 'connect', 'invoke', 'mcp');
const bob = user('bob', 'connect', 'invoke', 'mcp');

let relay: TestCore & AsyncDisposable;
let agent: Agent;

beforeEach(async () => {
  relay = await testCore();
  agent = await inMemory('SDK 1', relay);
  return async () => {
    await agent[Symbol.asyncDispose]();
    await relay[Symbol.asyncDispose]();
  };
});

function join(clientId: string, actions: readonly string[], requester = alice): Promise<TestClient> {
  return connect(relay.core, requester, { clientId, instanceId: clientId, actions: actions.map(advertisement) });
}

async function names(): Promise<readonly string[]> {
  return (await agent.list()).map(({ name }) => name).filter((name) => !BUILTIN_NAMES.has(name));
}

/** Counts how often a reader hears that the list has changed. */
function watching(choice?: AgentSession['choice']) {
  const servers = createAgentServers({ core: relay.core, log: silentLog, version: '1' });
  const heard = { times: 0 };
  const session = { requester: alice, choice, session: null, headers: {} };
  const { end } = servers.watch(session, () => heard.times++);
  return { heard, end: () => (end(), servers.close()) };
}

describe('a tool', () => {
  it('stays for a minute after its last client went, and then goes', async () => {
    const desk = await join('desk', ['lamp.set', 'door.open']);
    const kiosk = await join('kiosk', ['lamp.set']);
    expect(await names()).toEqual(['door_open', 'lamp_set']);
    await desk.session.closed('client_closed');
    await relay.clock.advance(FORGET_MS - 1);
    await kiosk.session.alive();
    expect(await names()).toEqual(['door_open', 'lamp_set']);
    await relay.clock.advance(2);
    expect(await names()).toEqual(['lamp_set']);
  });
});

describe('a catalog', () => {
  it('is dropped a minute after its last use, and gives back what it held', async () => {
    const desk = await join('desk', ['lamp.set']);
    const held = () => relay.core.shares.of('alice').held('advertised_bytes');
    const before = held();
    await names();
    const withCatalog = held();
    expect(withCatalog).toBeGreaterThan(before);
    await relay.clock.advance(AGENT_CATALOG_MS - 1);
    await desk.session.alive();
    expect(held()).toBe(withCatalog);
    await names();
    await relay.clock.advance(AGENT_CATALOG_MS - 1);
    await desk.session.alive();
    expect(held()).toBe(withCatalog);
    await relay.clock.advance(1);
    expect(held()).toBe(before);
    expect(await names()).toEqual(['lamp_set']);
    expect(held()).toBe(withCatalog);
  });
});

describe('a reader', () => {
  it('hears of a change within a second, once for many, and again when a client is forgotten', async () => {
    const { heard, end } = watching();
    await relay.clock.advance(0);
    const desk = await join('desk', ['lamp.set']);
    await join('kiosk', ['door.open']);
    expect(heard.times).toBe(0);
    await relay.clock.advance(AGENT_LIST_CHANGED_MS);
    expect(heard.times).toBe(1);
    await desk.session.closed('client_closed');
    await relay.clock.advance(AGENT_LIST_CHANGED_MS);
    expect(heard.times).toBe(1);
    await relay.clock.advance(FORGET_MS + AGENT_LIST_CHANGED_MS);
    expect(heard.times).toBe(2);
    expect(await names()).toEqual(['door_open']);
    end();
  });

  it('hears nothing of what changes no tool that it is shown: other tabs, other users, tools that it did not choose', async () => {
    const desk = await join('desk', ['lamp.set']);
    const all = watching();
    const kiosks = watching({ tools: 'actions', prefix: 'kiosk_' });
    await relay.clock.advance(0);
    await join('tab-2', ['lamp.set']);
    await join('tab-2', ['door.open'], bob);
    await relay.clock.advance(AGENT_LIST_CHANGED_MS);
    expect([all.heard.times, kiosks.heard.times]).toEqual([0, 0]);
    await join('tab-3', ['door.open']);
    await relay.clock.advance(AGENT_LIST_CHANGED_MS);
    expect([all.heard.times, kiosks.heard.times]).toEqual([1, 0]);
    await join('tab-4', ['kiosk.open']);
    await relay.clock.advance(AGENT_LIST_CHANGED_MS);
    expect([all.heard.times, kiosks.heard.times]).toEqual([2, 1]);
    await desk.session.alive();
    all.end();
    kiosks.end();
  });

  it('hears nothing more once it has gone', async () => {
    const { heard, end } = watching();
    await relay.clock.advance(0);
    await join('desk', ['lamp.set']);
    end();
    await relay.clock.advance(DEAD_MS + PING_MS);
    expect(heard.times).toBe(0);
  });
});

describe.each(GENERATIONS)('a client of %s', (generation) => {
  it('takes a list to which pages advertise whatever they like', async () => {
    const all = [...REFUSED.map(([schema]) => schema), ...MENDED];
    const actions = all.map((schema, n) => ({
      ...advertisement(`page.a${n}`),
      summary: `\u202e${n}\u{e0041}`,
      schema: trustJson(JSON.stringify(schema)),
    }));
    await connect(relay.core, alice, { clientId: 'page', instanceId: 'p', actions });
    await join('desk', ['lamp.set']);
    await using other = await inMemory(generation, relay);
    const tools = await other.list();
    expect(tools).toHaveLength(BUILTIN_NAMES.size + all.length + 1);
    expect(all.length).toBeLessThan(AGENT_TOOLS);
    expect(tools.map(({ name }) => name)).toContain('lamp_set');
  });
});
