/** Tests how the JSON writer writes strings and large cached lists. */
import { parse } from 'graphql';
import { expect, it } from 'vitest';
import { wholeText } from '../../src/web/reply.ts';
import { createContext } from '../../src/graphql/schema/context.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
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
  const plan = createPlans(schema).of(
    parse('{ user(userId: "alice") { connections { nodes { actions { items { summary } } } } } }'),
  );
  const items = texts.map((summary) => ({ summary }));
  const expected = JSON.stringify({ user: { connections: { nodes: [{ actions: { items } }] } } });
  // The second answer comes from the cache, which must know whether the text is ASCII.
  for (let time = 0; time < 2; time++) {
    const note = { nonAscii: false };
    const context = createContext({ core: test.core, requester: admin });
    expect(await plan?.bind({}).write(context, note)).toBe(expected);
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
      const plan = createPlans(schema, { keep }).of(
        parse(
          '{ user(userId: "alice") { id connections { nodes { clientId status actions { items { summary } } } } } }',
        ),
      );
      for (let time = 0; time < 3; time++) {
        const note = { nonAscii: false };
        await plan?.bind({}).write(createContext({ core: test.core, requester: admin }), note);
        expect(note.nonAscii).toBe(nonAscii);
      }
    }
  },
);

it('hands a large cached list over as bytes where the text may refer to them, and only there', async () => {
  await using test = await testCore();
  const actions = Array.from({ length: 8 }, (_, i) => ({ ...advertisement(`open.${i}`), summary: 'x'.repeat(300) }));
  for (let i = 0; i < 12; i++) await connect(test.core, user('alice'), { clientId: `c${i}`, actions });
  const plan = createPlans(schema).of(
    parse(`{ a: user(userId: "alice") { id connections { nodes { clientId actions { items { name summary } } } } }
      b: user(userId: "alice") { connections(first: 5) { nodes { clientId actions { items { summary } } } } } }`),
  );
  const write = async (inserts?: Buffer[]) => {
    const context = createContext({ core: test.core, requester: admin });
    return (await plan?.bind({}).write(context, { nonAscii: false, ...(inserts && { inserts }) })) ?? '';
  };
  const expected = await write();
  const counts: number[] = [];
  for (let time = 0; time < 3; time++) {
    const inserts: Buffer[] = [];
    const text = await write(inserts);
    expect(wholeText(text, inserts)).toBe(expected);
    expect(await write()).toBe(expected);
    counts.push(inserts.length);
    if (inserts.length > 0) expect(text.length).toBeLessThan(expected.length / 2);
  }
  expect(expected).not.toContain('\0');
  // Over Redis each read creates new entities, so nothing is cached.
  expect(counts).toEqual(test.core.mode === 'direct' ? [1, 1, 1] : [0, 0, 0]);
});
