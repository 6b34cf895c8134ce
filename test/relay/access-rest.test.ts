import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHouse } from '../../src/http/house.ts';
import type { Answer } from '../http/kit.ts';
import { HOUSE, ROUTES, type Route } from './access-routes.ts';
import { codeOf } from './kit.ts';
import { ABSENT, MARK, OTHER, OWNER, PLANTED, withoutGiven, world, type Ids, type World } from './planted.ts';

let at: World;
beforeAll(async () => {
  at = await world();
});
afterAll(() => at[Symbol.asyncDispose]());

const rows = Object.entries(ROUTES).flatMap(([name, routes]) =>
  routes.map((route) => ({ name, route, example: `${name.split(' ')[0]} ${route.target(PLANTED)}` })),
);
type Given = (typeof rows)[number];

function ask(who: string, { name, route }: Given, ids: Ids): Promise<Answer> {
  const path = route.target(ids);
  return name.startsWith('GET') ? at.rest(path, { who }) : at.post(path, route.body?.(ids) ?? {}, who);
}

/** The whole answer, but for what the asker said itself. */
function shown(answer: Answer, ids: Ids): object {
  const { status, headers, text } = answer;
  return { status, type: headers['content-type'], text: withoutGiven(text, ids) };
}

/** That this asker is answered so, the same for what is there and what is not, with nothing of it. */
async function expectAlike(who: string, given: Given, expected: readonly [number, string]): Promise<void> {
  const [found, absent] = [await ask(who, given, PLANTED), await ask(who, given, ABSENT)];
  expect([who, found.status, codeOf(found)]).toEqual([who, ...expected]);
  expect(shown(found, PLANTED)).toEqual(shown(absent, ABSENT));
  expect(withoutGiven(found.text, PLANTED)).not.toContain(MARK);
}

describe('the access of REST', () => {
  it('has a row for each operation of the description', async () => {
    const { paths } = JSON.parse((await at.rest('/openapi.json', { who: 'nobody' })).text);
    const operations = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(operations.filter((operation) => !ROUTES[operation])).toEqual([]);
    expect(Object.keys(ROUTES).filter((operation) => !operations.includes(operation))).toEqual([]);
  });

  it.each(rows)('$example shows an administrator what is asked for, or that it is absent', async (given) => {
    const found = await ask('admin', given, PLANTED);
    expect(found.status).toBe(given.route.found);
    expect(found.text.includes(MARK)).toBe(given.route.plain !== true);
    expect((await ask('admin', given, ABSENT)).status).toBe(given.route.absent);
  });

  it.each(rows)('$example shows its owner what the rule allows', async (given) => {
    if (given.route.access === 'admin') return expectAlike(`${OWNER}:invoke`, given, [403, 'forbidden']);
    const found = await ask(`${OWNER}:invoke`, given, PLANTED);
    expect(found.status).toBe(given.route.found);
    expect(found.text).toContain(MARK);
  });

  it.each(rows)('$example answers another user the same for what is foreign and what is absent', async (given) => {
    const refused = { admin: [403, 'forbidden'], invoke: [404, 'not_found'] } as const;
    await expectAlike(`${OTHER}:invoke`, given, refused[given.route.access]);
  });

  it.each(rows)('$example is forbidden to each other scope', async (given) => {
    await expectAlike(`${OWNER}:connect`, given, [403, 'forbidden']);
    await expectAlike(`${OWNER}:host`, given, [403, 'forbidden']);
  });

  it.each(rows)('$example asks for a token', async (given) => {
    await expectAlike('nobody', given, [401, 'unauthenticated']);
  });
});

describe('the access of what the server answers by itself', () => {
  const known = [
    ...createHouse({
      core: { ready: () => {} },
      meter: { expose: async () => ({ contentType: '', text: '' }) },
      openapi: {},
      basePath: '',
      clientFiles: new URL('file:///'),
    }).keys(),
  ];

  it('has a row for each path', () => {
    expect(Object.keys(HOUSE).sort()).toEqual(known.sort());
  });

  it.each(Object.entries(HOUSE))('%s is %s, and shows nothing of any user', async (path, rule) => {
    const asked = ['nobody', `${OTHER}:invoke`, `${OWNER}:invoke`, 'admin'];
    const answers = await Promise.all(asked.map((who) => at.rest(path, { who })));
    if (rule === 'file')
      return expect(new Set(answers.map(({ status, text }) => `${status} ${text.length}`)).size).toBe(1);
    const expected = { open: [200, 200, 200, 200], admin: [401, 403, 403, 200], upgrade: [426, 426, 426, 426] };
    expect(answers.map(({ status }) => status)).toEqual(expected[rule]);
    for (const { text } of answers) expect(text).not.toContain(MARK);
  });

  it('shows the page of GraphQL to everybody, and nothing of any user in it', async () => {
    const page = await at.rest('/graphql', { who: 'nobody', headers: { accept: 'text/html' } });
    expect([page.status, page.text.includes(MARK)]).toEqual([200, false]);
  });
});
