/** Tests who may read and change what over GraphQL, for every field. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FieldAccess, FIELDS, type Verdict } from './kit/access-fields.ts';
import type { GraphqlAnswer } from './kit/test-relay.ts';
import {
  ABSENT,
  MARK,
  ofOther,
  OTHER,
  OWNER,
  PLANTED,
  VIEWER,
  withoutGiven,
  world,
  type Ids,
  type World,
} from './kit/planted.ts';
import { documentOf, rootFields } from './kit/selection.ts';

const fields = rootFields().filter(({ operation }) => operation !== 'subscription');
const rows = fields.flatMap((field) => (FIELDS[field.name] ?? []).map((row) => ({ field, row, call: row.call })));
const harmless = rows.filter(({ row }) => !row.harmful);
type Given = (typeof rows)[number];

let at: World;
beforeAll(async () => {
  at = await world();
});
afterAll(() => at[Symbol.asyncDispose]());

function ask(requester: string, { field, call }: Given, ids: Ids): Promise<GraphqlAnswer> {
  const named = Object.entries(at.named(ids)).filter(([name]) => call.includes(`$${name}`));
  return at.graphql(documentOf(field, call), { requester, variables: Object.fromEntries(named) });
}

/** Returns an answer as text, except for the requester's own input. The order of its members does not matter. */
function shown({ data, errors }: GraphqlAnswer, ids: Ids): string {
  return withoutGiven(JSON.stringify({ data, errors }), at.named(ids));
}

function verdict(answer: GraphqlAnswer, { field: { name, operation } }: Given): Verdict {
  if (answer.code !== undefined)
    return operation === 'mutation' && answer.status !== 401 ? `error: ${answer.code}` : String(answer.code);
  const value = answer.data?.[name.split('.')[1] ?? ''];
  if (value === null) return 'null';
  if (value.__typename === 'Refusal') return String(value.code);
  if (value.__typename === 'CountResult') return `count ${value.count}`;
  if (value.__typename === 'NodeCounts')
    return `count ${value.items.reduce((sum: number, { count }: { count: number }) => sum + count, 0)}`;
  return answer.text.includes(MARK) ? 'shows' : 'empty';
}

/**
 * Checks that this requester gets this answer, that it is the same for present and absent rows, and that it contains
 * nothing of the owner's.
 */
async function expectAlike(requester: string, given: Given, expected: Verdict): Promise<void> {
  const [found, absent] = [await ask(requester, given, PLANTED), await ask(requester, given, ABSENT)];
  expect([requester, verdict(found, given)]).toEqual([requester, expected]);
  expect([found.status, shown(found, PLANTED)]).toEqual([absent.status, shown(absent, ABSENT)]);
  expect(shown(found, PLANTED)).not.toContain(MARK);
}

/** Returns the scope that a user's token needs. The scope that creates a row does not permit reading the row. */
const right = ({ scope }: FieldAccess): string => (scope === 'host' ? 'host:invoke' : 'invoke');
const forOther = ({ rule, other = '' }: FieldAccess): Verdict => (rule === 'admin' ? 'forbidden' : other);

describe('the access of GraphQL', () => {
  it('has a row for each query and mutation', () => {
    expect(fields.map(({ name }) => name).filter((name) => !FIELDS[name])).toEqual([]);
    expect(Object.keys(FIELDS).filter((name) => !fields.some((field) => field.name === name))).toEqual([]);
  });

  it.each(harmless)('$call answers an administrator, or that it is absent', async (given) => {
    const { rule, found, admin = found, other, absent = other ?? found } = given.row;
    expect(verdict(await ask('admin', given, PLANTED), given)).toBe(admin);
    const names = rule === 'owned' || rule === 'session';
    const missing = admin === 'forbidden' ? admin : absent;
    if (names) expect(verdict(await ask('admin', given, ABSENT), given)).toBe(missing);
  });

  it.each(harmless)('$call answers its owner', async (given) => {
    const expected = given.row.rule === 'admin' ? 'forbidden' : given.row.found;
    expect(verdict(await ask(`${OWNER}:${right(given.row)}`, given, PLANTED), given)).toBe(expected);
  });

  it.each(rows)('$call gives another user the same answer for foreign and for absent rows', async (given) => {
    const { row } = given;
    const other = `${OTHER}:${right(row)}`;
    // The answer of a call that creates something contains a new time or token each time.
    if (row.other === 'empty' && given.field.operation === 'mutation') {
      const answer = await ask(other, given, PLANTED);
      expect([verdict(answer, given), answer.text.includes(MARK)]).toEqual(['empty', false]);
      return;
    }
    await expectAlike(other, given, forOther(row));
    if (!row.alikeAtHome) return;
    const atHome = { ...ABSENT, user: OTHER, stream: `${OTHER}/clients/absent-tab` };
    const [foreign, own] = [await ask(other, given, PLANTED), await ask(other, given, atHome)];
    expect(shown(foreign, PLANTED)).toBe(shown(own, atHome));
  });

  it.each(rows)('$call is forbidden for each other scope, whatever is selected', async (given) => {
    for (const scope of ['connect', given.row.scope === 'host' ? 'invoke' : 'host'])
      await expectAlike(`${OWNER}:${scope}`, given, 'forbidden');
  });

  it.each(rows)('$call opens for a grant of its session, and for no other', async (given) => {
    const { rule, found, viewer = found, other = '', harmful } = given.row;
    if (rule !== 'session' || viewer === 'forbidden') return expectAlike(VIEWER, given, 'forbidden');
    if (!harmful) expect(verdict(await ask(VIEWER, given, PLANTED), given)).toBe(viewer);
    expect(verdict(await ask(VIEWER, given, ofOther), given)).toBe(other);
    const [foreign, absent] = [await ask(VIEWER, given, ofOther), await ask(VIEWER, given, ABSENT)];
    expect(shown(foreign, ofOther)).toBe(shown(absent, ABSENT));
  });

  it.each(rows)('$call does nothing without a token', async (given) => {
    await expectAlike('nobody', given, 'unauthenticated');
    expect((await ask('nobody', given, PLANTED)).status).toBe(401);
  });

  it('shows another user its own rows through the same fields', async () => {
    for (const given of harmless.filter(({ row }) => row.rule !== 'admin')) {
      const answer = await ask(`${OTHER}:${right(given.row)}`, given, ofOther);
      // Nothing is planted for a call that finds nothing for the owner either.
      const own = given.row.found === 'not_found' ? /^not_found$/ : /^(shows|empty|count|null|site_action_denied)/;
      expect([given.call, verdict(answer, given)]).toEqual([given.call, expect.stringMatching(own)]);
      expect(answer.text).not.toContain(MARK);
      const makes = given.row.other === 'empty' && given.field.operation === 'mutation';
      if (given.row.found === 'shows' && !makes && given.field.name !== 'Query.viewer')
        expect(answer.text).toContain('plain');
    }
  });

  it('ran no command in all of these tests', () => {
    expect(at.tab.seen('command').map(({ command_id }) => command_id)).toEqual([
      `${MARK}-done`,
      `${MARK}-failed`,
      `${MARK}-live`,
    ]);
    expect(at.tab.seen('cancel')).toEqual([]);
    expect(at.tab.seen('bye')).toEqual([]);
  });
});
