import { parse } from 'graphql';
import { expect, it } from 'vitest';
import { silentLog } from '../../src/core/log.ts';
import { createContext } from '../../src/graphql/schema/context.ts';
import { createPlans } from '../../src/graphql/execution/plan.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { admin, advertisement, connect, testCore, user } from '../kit/core.ts';

it('writes strings with any character as JSON.stringify does', async () => {
  await using test = await testCore();
  const units = [0x2028, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff];
  for (let unit = 0; unit < 0x100; unit++) units.push(unit);
  const texts = [
    '',
    '\u{1f600}',
    ...units.flatMap((unit) => [String.fromCharCode(unit), `a${String.fromCharCode(unit)}b`]),
  ];
  const actions = texts.map((summary) => ({ ...advertisement('open'), summary }));
  await connect(test.core, user('alice'), { actions });
  const plan = createPlans(schema, { eager: true }).of(
    parse('{ user(userId: "alice") { connections { nodes { actions { items { summary } } } } } }'),
  );
  const items = texts.map((summary) => ({ summary }));
  const expected = JSON.stringify({ user: { connections: { nodes: [{ actions: { items } }] } } });
  // The second time from the cache, which must remember it.
  for (let time = 0; time < 2; time++) {
    const note = { nonAscii: false };
    const context = createContext({ core: test.core, requester: admin, log: silentLog });
    expect(await plan?.write(context, {}, note)).toBe(expected);
    expect(note.nonAscii).toBe(true);
  }
});

it.each([
  ['only ASCII', 'tab', false],
  ['a text beyond it', 'tüb', true],
])(
  'reports whether an answer contains more than ASCII, newly written and from the cache: %s',
  async (_, summary, nonAscii) => {
    await using test = await testCore();
    for (const clientId of ['a', 'b'])
      await connect(test.core, user('alice'), { clientId, actions: [{ ...advertisement('open'), summary }] });
    for (const keep of [true, false]) {
      const plan = createPlans(schema, { eager: true, keep }).of(
        parse(
          '{ user(userId: "alice") { id connections { nodes { clientId status actions { items { summary } } } } } }',
        ),
      );
      for (let time = 0; time < 3; time++) {
        const note = { nonAscii: false };
        await plan?.write(createContext({ core: test.core, requester: admin, log: silentLog }), {}, note);
        expect(note.nonAscii).toBe(nonAscii);
      }
    }
  },
);
