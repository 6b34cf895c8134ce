/** Tests that the JSON writer answers random queries as graphql-js does, also from its cache. */
import { NoUnusedVariablesRule, execute, parse, specifiedRules, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import {
  connectionStatus,
  derivedChangeAt,
  heartbeat,
  recentlyReplaced,
} from '../../src/core/connections/connection.ts';
import { writeJson } from '../../src/core/json.ts';
import { createContext } from '../../src/graphql/schema/context.ts';
import { createJsonCaches } from '../../src/graphql/writer/texts.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
import { schema, restSchema } from '../../src/graphql/schema/schema.ts';
import { unaudited } from './kit/run.ts';
import { admin, advertisement, connect, testCore, user, type TestCore } from '../kit/core.ts';
import { randomQuery } from './kit/random.ts';
import { createFeeds, smallSchema } from './kit/small-schema.ts';

const RULES = specifiedRules.filter((rule) => rule !== NoUnusedVariablesRule);
const known = {
  id: 'alice',
  userId: 'alice',
  clientId: 'tab',
  commandId: 'k1',
  action: 'open',
  name: 'open',
  stream: 'alice/clients/tab',
  nodeId: 'n1',
  siteId: 'board',
  sessionId: 's1',
  windowId: 'w1',
  taskId: 't1',
};

async function populate({ core }: TestCore): Promise<void> {
  for (const name of ['alice', 'bob']) {
    const owner = user(name);
    const tab = await connect(core, owner, { metadata: '{"a":"\\u2028 \\" \\\\"}' as never });
    const requested = { userId: name, clientId: 'tab', action: 'open', waitFor: 'admitted' } as const;
    await core.rpc.invoke(owner, { ...requested, commandId: 'k1', params: null });
    await tab.result(tab.last);
    await core.rpc.invoke(owner, { ...requested, commandId: 'k2', params: null });
  }
}

describe.each([
  ['the served schema', schema],
  ['the schema of wire words', restSchema],
])('random queries over %s', (_name, of) => {
  it.each([1, 2, 3, 4])(
    'are written as graphql-js answers them, the first time and from the cache (batch %i)',
    async (batch) => {
      await using test = await testCore({ rawMessages: true });
      await populate(test);
      const plans = createPlans(of);
      const forgetful = createPlans(of, { keep: false });
      let written = 0;
      let answered = 0;
      for (let seed = batch * 1000; seed < batch * 1000 + 100; seed++) {
        const { text, variables } = randomQuery(of, { seed, known });
        const document = parse(text);
        if (validate(of, document, RULES).length > 0) continue;
        const plan = plans.of(document);
        const core = unaudited(test.core);
        const context = () => createContext({ core, requester: seed % 5 ? admin : user('alice') });
        const args = {
          schema: of,
          document,
          variableValues: variables,
          contextValue: context(),
          hideSuggestions: true,
        };
        const { data, errors } = await execute(args);
        for (let run = 0; run < 3; run++) {
          const note = { nonAscii: false };
          const own = await plan?.bind(variables).write(context(), note);
          if (typeof own === 'string') expect(note.nonAscii, text).toBe(Buffer.byteLength(own) !== own.length);
          expect(await forgetful.of(document)?.bind(variables).write(context()), text).toBe(own);
          if (errors) expect(own, text).toBeNull();
          else if (own !== null) expect(own, text).toBe(writeJson(data));
          if (run === 0 && !errors) (answered++, (written += own === null ? 0 : 1));
        }
      }
      expect(answered).toBeGreaterThan(30);
      expect(written / answered).toBeGreaterThan(0.9);
    },
  );
});

describe('the cached text of an entity', () => {
  const DOCUMENT = parse(`{
    connection(userId: "alice", clientId: "tab") {
      clientId status heartbeat recentlyReplaced lastSeenAt metadata disconnectCause
      actions { items { name summary } }
      mixed: actions { items { name } completeness { complete } }
    }
  }`);
  async function watched() {
    const test = await testCore();
    const plan = createPlans(schema).of(DOCUMENT);
    const ask = async (): Promise<string | null | undefined> => {
      const contextValue = createContext({ core: test.core, requester: admin });
      const { data } = await execute({ schema, document: DOCUMENT, contextValue });
      const own = await plan?.bind({}).write(createContext({ core: test.core, requester: admin }));
      expect(own).toBe(writeJson(data));
      return own;
    };
    return { ...test, ask };
  }

  it('changes with the time from which its status and its heartbeat are derived', async () => {
    await using test = await watched();
    await connect(test.core, user('alice'));
    const answers = [await test.ask(), await test.ask()];
    expect(answers[0]).toBe(answers[1]);
    for (const seconds of [30, 20, 15, 20]) {
      await test.clock.advance(seconds * 1000);
      answers.push(await test.ask());
    }
    expect(new Set(answers).size).toBe(4);
  });

  it('changes with a heartbeat, other actions, a disconnect, another instance', async () => {
    await using test = await watched();
    const { backend, clock } = test;
    const link = await connect(test.core, user('alice'));
    const key = { userId: 'alice', clientId: 'tab' };
    const epoch = (await backend.connections.get([key]))[0]?.epoch ?? 0;
    const answers = [await test.ask()];
    await clock.advance(1000);
    await backend.connections.touch(key, epoch);
    answers.push(await test.ask());
    await backend.connections.advertise(key, epoch, [advertisement('close')]);
    answers.push(await test.ask());
    await backend.connections.disconnect(key, epoch, 'operator');
    answers.push(await test.ask());
    await connect(test.core, user('alice'), { instanceId: 'another' });
    answers.push(await test.ask());
    expect(new Set(answers).size).toBe(5);
    expect(link.sent).toEqual([]);
  });

  it('is valid for a whole list until any derived field changes, for any time that the clock shows', async () => {
    await using test = await testCore();
    const { backend, clock } = test;
    for (const clientId of ['a', 'b', 'c']) {
      await connect(test.core, user('alice'), { clientId });
      await clock.advance(7_000);
    }
    await connect(test.core, user('alice'), { clientId: 'b', instanceId: 'another' });
    const LIST = parse(`{ user(userId: "alice") { connectionCount connections { nodes {
      clientId status heartbeat recentlyReplaced lastSeenAt disconnectCause actions { items { name } } } } } }`);
    const plan = createPlans(schema).of(LIST);
    const context = () => createContext({ core: test.core, requester: admin });
    const seen = new Set<string>();
    const look = async (): Promise<void> => {
      const { data } = await execute({ schema, document: LIST, contextValue: context() });
      for (let time = 0; time < 2; time++) expect(await plan?.bind({}).write(context())).toBe(writeJson(data));
      seen.add(writeJson(data) ?? '');
    };
    const [row] = await backend.connections.get([{ userId: 'alice', clientId: 'c' }]);
    for (let second = 0; second < 130; second++) {
      await look();
      if (second === 20) await backend.connections.touch({ userId: 'alice', clientId: 'c' }, row?.epoch ?? 0);
      if (second === 22) await backend.connections.advertise({ userId: 'alice', clientId: 'c' }, row?.epoch ?? 0, []);
      if (second === 40)
        await backend.connections.disconnect({ userId: 'alice', clientId: 'c' }, row?.epoch ?? 0, 'operator');
      await clock.advance(1_000 - 1);
      await look();
      await clock.advance(1);
    }
    expect(seen.size).toBeGreaterThan(10);
  });

  it('is written again exactly at the millisecond of derivedChangeAt, and not before', async () => {
    await using test = await testCore();
    await connect(test.core, user('alice'));
    await connect(test.core, user('alice'), { instanceId: 'another' });
    const [row] = await test.backend.connections.get([{ userId: 'alice', clientId: 'tab' }]);
    if (!row) throw new Error('There is no connection.');
    const derived = (now: number): string =>
      [connectionStatus(row, now), heartbeat(row, now), recentlyReplaced(row, now)].join();
    const changes: string[] = [];
    for (let now = row.lastSeenAt, next = now; next < Infinity; now = next) {
      next = derivedChangeAt(row, now);
      if (next === Infinity) break;
      expect(derived(next - 1)).toBe(derived(now));
      if (derived(next) !== derived(now)) changes.push(derived(next));
    }
    expect(changes.length).toBeGreaterThanOrEqual(3);
  });

  it('is bounded: beyond the bound it is dropped, and written again', () => {
    const stores = createJsonCaches(10_000);
    const one = stores.create<string>();
    const other = stores.create<string>();
    const entities = Array.from({ length: 100 }, () => ({}));
    for (const entity of entities) one.set(entity, 'text', 400);
    expect(entities.filter((entity) => one.get(entity) !== undefined).length).toBeLessThanOrEqual(10_000 / 400);
    other.set(entities, 'text', 400);
    expect(other.get(entities)).toBe('text');
    for (const entity of entities.slice(0, 30)) one.set(entity, 'again', 400);
    expect(other.get(entities)).toBeUndefined();
  });
});

describe('a writer', () => {
  const contextValue = { requester: admin, subscriptions: createFeeds(), seen: new Set<string>() };
  const write = (text: string) => createPlans(smallSchema).of(parse(text))?.bind({}).write(contextValue);

  it.each(['{ boom }', '{ boomLater hello }', '{ badInt }', '{ strictDog { weight } }', '{ boomLater boom me }'])(
    'gives up an answer with an error: %s',
    async (text) => {
      expect(await write(text)).toBeNull();
    },
  );

  it.each(['mutation { a: touch b: touch }', '{ __schema { queryType { name } } }', '{ pets { __typename } }'])(
    'does not write: %s',
    async (text) => {
      expect(await write(text)).toBeNull();
    },
  );

  it('writes the first time that a document is seen, and nothing when it is switched off', async () => {
    const document = parse('{ hello }');
    const plan = createPlans(smallSchema).of(document);
    expect(await plan?.bind({}).write(contextValue)).toBe('{"hello":"hello you"}');
    const slow = createPlans(smallSchema, { fast: false }).of(document);
    for (let run = 0; run < 3; run++) expect(await slow?.bind({}).write(contextValue)).toBeNull();
  });
});
