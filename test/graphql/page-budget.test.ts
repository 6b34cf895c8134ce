/** Tests the limit of an answer's bytes, over all its pages. */
import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ActionAdvertisement } from '../../src/core/connections/connection.ts';
import { trustJson } from '../../src/core/json.ts';
import { ANSWER_BYTES, ANSWER_PAGE_BYTES, ANSWER_ROW_BYTES } from '../../src/core/limits.ts';
import type { Page } from '../../src/core/page.ts';
import { createContext } from '../../src/graphql/schema/context.ts';
import { AnswerBudget, type RowSize } from '../../src/graphql/schema/answer-budget.ts';
import { createPlans, type Plan } from '../../src/graphql/execute/executor.ts';
import type { Variables } from '../../src/graphql/variables-coercion.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { admin, testCore } from '../kit/core.ts';

const USERS = 4;
const CLIENTS = 10;
/** The maximum size of the JSON that describes one client, in bytes: that of a full frame. */
const CLIENT_BYTES = 1024 * 1024;
const PARTS = 16;
const SCHEMA = trustJson(`{"x":"${'y'.repeat(CLIENT_BYTES / PARTS - 200)}"}`);

const action = (i: number): ActionAdvertisement => ({
  name: `a${i}`,
  summary: null,
  description: null,
  version: null,
  checksArguments: null,
  schema: SCHEMA,
  metadata: null,
});

let test: Awaited<ReturnType<typeof testCore>>;

beforeAll(async () => {
  test = await testCore();
  for (let u = 0; u < USERS; u++) {
    for (let c = 0; c < CLIENTS; c++) {
      await test.backend.connections.connect({
        userId: `user${u}`,
        clientId: `client${String(c).padStart(2, '0')}`,
        instanceId: 'i',
        nodeId: 'n1',
        clientType: 'browser',
        host: false,
        metadata: trustJson(`"${'m'.repeat(15_000)}"`),
        actions: Array.from({ length: PARTS }, (_, i) => action(i)),
      });
    }
  }
});
afterAll(() => test[Symbol.asyncDispose]());

const plans = createPlans(schema);

function planOf(text: string): Plan {
  const plan = plans.of(parse(text));
  if (!plan) throw new Error('no operation');
  return plan;
}

/** Returns the data of the answer as text. Checks that graphql-js and the JSON writer answer the same text. */
async function answerOf(text: string, variables: Variables = {}): Promise<string> {
  const plan = planOf(text);
  const context = () => createContext({ core: test.core, requester: admin, asks: plan.bind(variables).asks });
  const { data, errors } = await plan.bind(variables).run(context());
  expect(errors).toBeUndefined();
  const run = JSON.stringify(data);
  expect(await plan.bind(variables).write(context())).toBe(run);
  return run;
}

const LISTED = `query ($first: Int!, $after: String) { connections(first: $first, after: $after) {
  nodes { userId clientId actions { items { name schema } } } nextCursor pageInfo { hasNextPage endCursor }
  completeness { complete sources { source observed limit reason } } } }`;

describe('a page of large rows', () => {
  it('is written without graphql-js at its first run already', async () => {
    const bound = createPlans(schema).of(parse(LISTED))?.bind({ first: 1_000 });
    const context = createContext({ core: test.core, requester: admin });
    expect(typeof (await bound?.write(context))).toBe('string');
  });

  it('ends early, reports it, and continues there until every row was returned once', async () => {
    const seen: string[] = [];
    let after: string | null = null;
    let pages = 0;
    do {
      const text = await answerOf(LISTED, { first: 1000, after });
      expect(text.length).toBeLessThan(ANSWER_PAGE_BYTES + 64 * 1024);
      const { nodes, nextCursor, pageInfo, completeness } = JSON.parse(text).connections;
      expect(nodes.length).toBeGreaterThan(0);
      expect(pageInfo.hasNextPage).toBe(nextCursor !== null);
      expect(completeness.complete).toBe(nextCursor === null);
      if (nextCursor !== null) {
        expect(pageInfo.endCursor).toBe(nextCursor);
        expect(completeness.sources[0]).toEqual({
          source: 'CONNECTIONS',
          observed: nodes.length,
          limit: nodes.length,
          reason: 'LIMIT_REACHED',
        });
      }
      seen.push(...nodes.map(({ userId, clientId }: Record<string, string>) => `${userId}/${clientId}`));
      after = nextCursor;
      pages++;
    } while (after !== null);
    expect(seen).toHaveLength(USERS * CLIENTS);
    expect(new Set(seen).size).toBe(USERS * CLIENTS);
    expect(pages).toBeGreaterThan(5);
  });

  it('is complete if nothing large is selected', async () => {
    const text = await answerOf(
      '{ connections(first: 1000) { nodes { clientId } nextCursor completeness { complete } } }',
    );
    const { nodes, nextCursor, completeness } = JSON.parse(text).connections;
    expect([nodes.length, nextCursor, completeness.complete]).toEqual([USERS * CLIENTS, null, true]);
  });

  it('cuts edges, cursors and counts alike, whichever of them are selected', async () => {
    const text = await answerOf(
      '{ connections(first: 1000) { pageInfo { startCursor endCursor } edges { cursor node { metadata actions { items { schema } } } } } }',
    );
    const { edges, pageInfo } = JSON.parse(text).connections;
    expect([pageInfo.startCursor, pageInfo.endCursor]).toEqual([edges[0].cursor, edges.at(-1).cursor]);
    expect(edges.length).toBeLessThan(CLIENTS);
  });
});

describe('an answer of many pages', () => {
  const nested = `{ users(first: 100) { nodes { id
    summaryCompleteness(first: 50) { complete }
    connections(first: 50) { nodes { clientId actions { items { schema } } } nextCursor completeness { complete } } } } }`;

  it('is bounded in total', async () => {
    const users =
      'user(userId: "user0") { connections(first: 50) { nodes { actions { items { schema } } } nextCursor } }';
    const pages = Array.from(
      { length: 9 },
      (_, i) => `p${i}: connections(first: ${i + 20}) { nodes { ...C } nextCursor }`,
    );
    const text = await answerOf(
      `{ u: ${users} ${pages.join(' ')} } fragment C on ConnectionSnapshot { actions { items { schema } } }`,
    );
    expect(text.length).toBeLessThan(ANSWER_BYTES + 2 * CLIENT_BYTES);
    expect(text.length).toBeGreaterThan(ANSWER_BYTES / 2);
    const { p8 } = JSON.parse(text);
    expect(p8.nodes.length).toBeLessThanOrEqual(1);
  });

  it('is refused if one page is selected again and again', async () => {
    const again = Array.from({ length: 9 }, (_, i) => `u${i}: user(userId: "user0") { ...U }`);
    const text = `{ ${again.join(' ')} } fragment U on User { connections(first: 50) { nodes { actions { items { schema } } } } }`;
    const plan = planOf(text);
    const context = () => createContext({ core: test.core, requester: admin, asks: plan.bind({}).asks });
    expect(await plan.bind({}).write(context())).toBeNull();
    const { errors } = await plan.bind({}).run(context());
    expect(errors?.[0]?.cause).toMatchObject({ code: 'too_complex' });
  });

  it('reports in a summary what was cut', async () => {
    const { nodes } = JSON.parse(await answerOf(nested)).users;
    expect(nodes).toHaveLength(USERS);
    for (const user of nodes) {
      expect(user.connections.nodes.length).toBeLessThan(CLIENTS);
      expect([user.summaryCompleteness.complete, user.connections.completeness.complete]).toEqual([false, false]);
    }
  });
});

describe('the sample of actions', () => {
  it('is bounded by bytes and reports that it is incomplete', async () => {
    const text = await answerOf(
      '{ actions { items { userId action { name schema } } complete completeness { sources { source reason } } } }',
    );
    const { items, complete, completeness } = JSON.parse(text).actions;
    expect(text.length).toBeLessThan(ANSWER_PAGE_BYTES + 64 * 1024);
    expect(items.length).toBeGreaterThan(0);
    expect(complete).toBe(false);
    expect(completeness.sources).toContainEqual({ source: 'ACTIONS', reason: 'LIMIT_REACHED' });
  });
});

describe('the budget of an answer', () => {
  const size: RowSize<number> = { fields: ['big'], bytes: (row) => row };
  const page = (nodes: readonly number[]): Page<number> => ({
    nodes,
    cursors: { at: (index) => `c${index}`, end: () => 'end' },
    hasNextPage: false,
    completeness: { complete: true, sources: [] },
  });

  it('allows one row of any size while anything is left, and none after that', () => {
    const budget = new AnswerBudget(new Set(['big']));
    const one = budget.page(page([ANSWER_BYTES, 1]), size);
    expect([one.nodes, one.hasNextPage, one.cursors.end()]).toEqual([[ANSWER_BYTES], true, 'c0']);
    const none = budget.page(page([1]), size);
    expect([none.nodes, none.hasNextPage, none.cursors.end(), none.completeness.complete]).toEqual([
      [],
      true,
      null,
      false,
    ]);
    expect(() => budget.row(1, size)).toThrow(expect.objectContaining({ code: 'too_complex' }));
    budget.restart();
    expect(budget.page(page([1]), size).nodes).toEqual([1]);
    expect(budget.row(1, size)).toBe(1);
  });

  it('counts a page once, however many fields select it', () => {
    const budget = new AnswerBudget(null);
    const large = page(Array.from({ length: 10 }, () => ANSWER_PAGE_BYTES / 4));
    for (let i = 0; i < 100; i++) expect(budget.page(large, size).nodes).toHaveLength(3);
    expect(budget.page(page([1]), size).nodes).toEqual([1]);
  });

  it('leaves room for lists that follow large ones', () => {
    const budget = new AnswerBudget(null);
    const large = Array.from({ length: 1000 }, () => 16 * 1024);
    for (let i = 0; i < 12; i++) expect(budget.page(page(large), size).hasNextPage).toBe(true);
    expect(budget.page(page(Array.from({ length: 50 }, () => 1)), size).nodes).toHaveLength(50);
  });

  it('counts rows without large members too', () => {
    const budget = new AnswerBudget(new Set());
    const rows = Array.from({ length: 1000 }, () => ANSWER_BYTES);
    let given = 0;
    for (let i = 0; i < 500; i++) given += budget.page(page(rows), size).nodes.length;
    expect(given).toBeLessThanOrEqual(ANSWER_BYTES / ANSWER_ROW_BYTES);
    expect(given).toBeGreaterThan(ANSWER_BYTES / ANSWER_ROW_BYTES - 1000);
  });
});

describe('the selection of an operation', () => {
  const asks = (text: string, variables: Variables = {}) => [...planOf(text).bind(variables).asks];

  it('counts payloads only where they are included', () => {
    const text = 'query ($with: Boolean!) { messages(userId: "a") { nodes { id payload(include: $with) } } }';
    expect(asks(text, { with: true })).toContain('payload');
    expect(asks(text, { with: false })).not.toContain('payload');
    expect(asks('{ messages(userId: "a") { nodes { payload(include: true) } } }')).toContain('payload');
    expect(asks('{ messages(userId: "a") { nodes { ...F } } } fragment F on Message { payload }')).toContain('payload');
    const byDefault = 'query ($w: Boolean! = true) { messages(userId: "a") { nodes { payload(include: $w) } } }';
    expect(asks(byDefault)).toContain('payload');
    expect(asks(byDefault, { w: false })).not.toContain('payload');
  });
});
