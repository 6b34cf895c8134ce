import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FIELDS, type Row, type Verdict } from './access-rows.ts';
import type { GraphqlAnswer } from './kit.ts';
import { ABSENT, MARK, ofOther, OTHER, OWNER, PLANTED, withoutGiven, world, type Ids, type World } from './planted.ts';
import { documentOf, rootFields, type RootField } from './selection.ts';

const fields = rootFields().filter(({ operation }) => operation !== 'subscription');
const rows = fields.flatMap((field) => (FIELDS[field.name] ?? []).map((row) => ({ field, row, call: row.call })));
/** Tokens that are good, of the owner even, but not for reading. */
const WRONG_SCOPE = [`${OWNER}:connect`, `${OWNER}:host`];

let at: World;
beforeAll(async () => {
  at = await world();
});
afterAll(() => at[Symbol.asyncDispose]());

function ask(who: string, { field, call }: { field: RootField; call: string }, ids: Ids): Promise<GraphqlAnswer> {
  const named = Object.entries(ids).filter(([name]) => call.includes(`$${name}`));
  return at.graphql(documentOf(field, call), { who, variables: Object.fromEntries(named) });
}

function verdict(answer: GraphqlAnswer, { name }: RootField): Verdict {
  if (answer.code !== undefined) return String(answer.code);
  const value = answer.data?.[name.split('.')[1] ?? ''];
  if (value === null) return 'null';
  if (value.__typename === 'Refusal') return `refused: ${String(value.code).toLowerCase()}`;
  if (value.__typename === 'CountResult') return `count ${value.count}`;
  if (value.__typename === 'NodeCounts')
    return `count ${value.items.reduce((sum: number, { count }: { count: number }) => sum + count, 0)}`;
  return answer.text.includes(MARK) ? 'shows' : 'empty';
}

const forAdmin = (row: Row): Verdict => (row.rule === 'mine' ? (row.admin ?? row.found) : row.found);
const forOther = (row: Row): Verdict =>
  row.rule === 'mine' ? row.other : row.rule === 'admin' ? 'forbidden' : row.missing;
const absentForAdmin = (row: Row): Verdict =>
  row.rule === 'mine' ? forAdmin(row) : (row.absent ?? (row.rule === 'owned' ? row.missing : row.found));

describe('the access of GraphQL', () => {
  it('has a row for each query and mutation', () => {
    expect(fields.map(({ name }) => name).filter((name) => !FIELDS[name])).toEqual([]);
    expect(Object.keys(FIELDS).filter((name) => !fields.some((field) => field.name === name))).toEqual([]);
  });

  it.each(rows)('$call shows an administrator what is asked for', async ({ field, row, call }) => {
    expect(verdict(await ask('admin', { field, call }, PLANTED), field)).toBe(forAdmin(row));
    const absent = await ask('admin', { field, call }, ABSENT);
    if (row.rule === 'owned') expect(verdict(absent, field)).toBe(absentForAdmin(row));
  });

  it.each(rows)('$call shows its owner what is asked for', async ({ field, row, call }) => {
    const expected = row.rule === 'admin' ? 'forbidden' : row.found;
    expect(verdict(await ask(`${OWNER}:invoke`, { field, call }, PLANTED), field)).toBe(expected);
  });

  it.each(rows)(
    '$call shows another user nothing of it, and no other answer than for what is absent',
    async (given) => {
      const { field, row } = given;
      const foreign = await ask(`${OTHER}:invoke`, given, PLANTED);
      expect(verdict(foreign, field)).toBe(forOther(row));
      expect(withoutGiven(foreign.text, PLANTED)).not.toContain(MARK);
      const absent = await ask(`${OTHER}:invoke`, given, ABSENT);
      expect(withoutGiven(foreign.text, PLANTED)).toBe(withoutGiven(absent.text, ABSENT));
      expect(foreign.status).toBe(absent.status);
      if (row.rule !== 'owned' || !row.alikeAtHome) return;
      const atHome = { ...ABSENT, user: OTHER, stream: `${OTHER}/clients/absent-tab` };
      expect(withoutGiven(foreign.text, PLANTED)).toBe(
        withoutGiven((await ask(`${OTHER}:invoke`, given, atHome)).text, atHome),
      );
    },
  );

  it.each(rows)('$call is forbidden to each other scope, whatever is asked for', async (given) => {
    for (const who of WRONG_SCOPE) {
      const [found, absent] = [await ask(who, given, PLANTED), await ask(who, given, ABSENT)];
      expect([who, verdict(found, given.field)]).toEqual([who, 'forbidden']);
      expect(withoutGiven(found.text, PLANTED)).toBe(withoutGiven(absent.text, ABSENT));
      expect(withoutGiven(found.text, PLANTED)).not.toContain(MARK);
    }
  });

  it.each(rows)('$call asks nobody without a token for anything', async (given) => {
    const [found, absent] = [await ask('nobody', given, PLANTED), await ask('nobody', given, ABSENT)];
    expect([found.status, verdict(found, given.field)]).toEqual([401, 'unauthenticated']);
    expect(found.text).toBe(absent.text);
    expect(found.text).not.toContain(MARK);
  });

  it('shows another user its own things through the same fields', async () => {
    for (const given of rows.filter(({ row }) => row.rule !== 'admin')) {
      const answer = await ask(`${OTHER}:invoke`, given, ofOther);
      expect([given.call, answer.code]).toEqual([given.call, undefined]);
      expect(answer.text).not.toContain(MARK);
      if (given.row.found === 'shows' && given.field.name !== 'Query.viewer') expect(answer.text).toContain('plain-');
    }
  });

  it('ran nothing for all of this', () => {
    expect(at.tab.seen('command').map(({ command_id }) => command_id)).toEqual([
      `${MARK}-done`,
      `${MARK}-failed`,
      `${MARK}-live`,
    ]);
    expect(at.tab.seen('cancel')).toEqual([]);
  });
});
