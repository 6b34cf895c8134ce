/** Tests that schemas give handlers and callers their types, and that each kind of schema is truly checked. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  createHttpCaller,
  createLinkCaller,
  type Caller,
  type Evidence,
  type Failure,
  type Receipt,
} from '../../src/clients/caller/index.ts';
import { defineActions, rawJson, type Runtime, type StandardSchema } from '../../src/clients/runtime/index.ts';
import { examplesOf, ROOT } from '../docs/kit/examples.ts';
import { run } from '../packages/kit/packed.ts';
import { startRuntimeBench } from './kit/runtime-bench.ts';

const schema = {
  type: 'object',
  required: ['text', 'tags'],
  properties: {
    text: { type: 'string' },
    tags: { type: 'array', items: { enum: ['a', 'b'] } },
    size: { type: ['integer', 'null'] },
    at: { anyOf: [{ type: 'boolean' }, { const: 'now' }] },
    place: { $ref: '#/$defs/place' },
  },
  $defs: { place: {} },
} as const;

/** Like a schema of valibot: the library cannot write it as JSON Schema. */
const trimmed: StandardSchema<{ text: string }, { text: string; length: number }> = {
  '~standard': {
    version: 1,
    vendor: 'mine',
    validate: async (value) => {
      const text = typeof value === 'object' && value !== null && 'text' in value ? value.text : null;
      if (typeof text !== 'string') return { issues: [{ message: 'a string', path: ['text'] }] };
      return { value: { text: text.trim(), length: text.trim().length } };
    },
  },
};
const jsonSchema = { type: 'object', properties: { text: { type: 'string' } } };

/** Like a schema of arktype: a function. */
const callable = Object.assign(() => {}, { '~standard': z.object({ n: z.number() })['~standard'] });

const actions = defineActions({
  'notes.add': {
    summary: 'Adds a note',
    schema,
    result: { type: 'object', properties: { count: { type: 'integer' } } },
  },
  'notes.find': { schema: z.object({ n: z.coerce.number().default(1) }), result: z.array(z.string()) },
  'notes.clear': { effects: { destructive: true } },
});

/** The types of handlers. Compiled, never run. */
export function handlers(runtime: Runtime): void {
  runtime.handle(
    'inline',
    { schema: { type: 'object', required: ['a'], properties: { a: { type: 'string' } } } },
    (p) => {
      expectTypeOf(p).toEqualTypeOf<{ readonly a: string }>();
    },
  );
  runtime.handle('const', { schema }, ({ text, tags, size, at, place }) => {
    expectTypeOf(text).toEqualTypeOf<string>();
    expectTypeOf(tags).toEqualTypeOf<readonly ('a' | 'b')[]>();
    expectTypeOf(size).toEqualTypeOf<number | null | undefined>();
    expectTypeOf(at).toEqualTypeOf<boolean | 'now' | undefined>();
    expectTypeOf(place).toBeUnknown();
  });
  runtime.handle('zod', { schema: z.object({ n: z.coerce.number().default(1) }) }, ({ n }) => {
    expectTypeOf(n).toEqualTypeOf<number>();
  });
  runtime.handle('own', { schema: trimmed, jsonSchema }, ({ length }) => expectTypeOf(length).toEqualTypeOf<number>());
  runtime.handle('wide', { schema: jsonSchema }, (p) => expectTypeOf(p['text']).toBeUnknown());
  runtime.handle('none', {}, (p) => expectTypeOf(p['text']).toBeUnknown());
  runtime.handle<{ text: string }, number>('by hand', {}, ({ text }) => text.length);
  runtime.handle<{ text: string }>('by hand', { schema: jsonSchema }, ({ text }) => text.trim());
  runtime.handle('later', {}, () => new Promise((done) => setTimeout(() => done('x'), 1)));
  runtime.handle('notes.add', actions['notes.add'], async ({ tags }) => ({ count: tags.length }));
  runtime.handle('notes.find', actions['notes.find'], ({ n }) => [n.toFixed()]);

  // @ts-expect-error: the schema has no such member
  runtime.handle('x', { schema }, ({ txt }) => txt);
  // @ts-expect-error: the text is no number
  runtime.handle('x', { schema }, ({ text }: { text: number }) => text);
  // @ts-expect-error: nothing is known about the params
  runtime.handle('x', {}, ({ text }) => text.trim());
  // @ts-expect-error: the result is no number
  runtime.handle<{ text: string }, number>('x', {}, ({ text }) => text);
  // @ts-expect-error: the count is a number
  runtime.handle('notes.add', actions['notes.add'], () => ({ count: 'one' }));
  // @ts-expect-error: a spec has no such member
  runtime.handle('x', { sumary: 'x' }, () => 1);
  // @ts-expect-error: the spec is missing
  runtime.handle('x', () => 1);
  // @ts-expect-error: a schema is no text
  runtime.handle('x', { schema: 'object' }, () => 1);
}

/** The types of callers. Compiled, never run. */
export async function callers(untyped: Caller): Promise<void> {
  const options = { url: 'http://relay.test', token: process.env['TOKEN'] };
  const caller = createHttpCaller<typeof actions>(options);
  expectTypeOf(createLinkCaller<typeof actions>(options)).toEqualTypeOf(caller);
  expectTypeOf(createHttpCaller(options)).toEqualTypeOf<Caller>();
  const to = { userId: 'demo', clientId: 'kiosk-1' };
  const added = await caller.invoke({ ...to, action: 'notes.add' }, { text: 'milk', tags: ['a'] });
  if (added.outcome === 'completed') expectTypeOf(added.result).toEqualTypeOf<{ readonly count?: number }>();
  const found = await caller.invoke({ ...to, action: 'notes.find' });
  if (found.outcome === 'completed') expectTypeOf(found.result).toEqualTypeOf<string[]>();
  await caller.invoke({ ...to, action: 'notes.add' }, rawJson('{}'));
  await caller.invoke({ ...to, action: 'notes.clear' });

  // @ts-expect-error: there is no such action
  await caller.invoke({ ...to, action: 'notes.ad' }, {});
  // @ts-expect-error: the params are required
  await caller.invoke({ ...to, action: 'notes.add' });
  // @ts-expect-error: the text is no number
  await caller.invoke({ ...to, action: 'notes.add' }, { text: 1, tags: [] });
  // @ts-expect-error: `c` is no tag
  await caller.invoke({ ...to, action: 'notes.add' }, { text: 'milk', tags: ['c'] });
  // @ts-expect-error: there is no such parameter
  await caller.invoke({ ...to, action: 'notes.add' }, { text: 'milk', tags: [], colour: 1 });

  const answer = await untyped.invoke({ ...to, action: 'any' }, { any: 1 }, { onStage: (stage) => stage === 'queued' });
  expectTypeOf(answer.stage).toEqualTypeOf<'admitted' | 'queued' | 'dispatched' | 'acknowledged' | 'terminal'>();
  expectTypeOf<Receipt['state']>().toEqualTypeOf<'cancelled' | 'requested' | 'too_late'>();
  expectTypeOf<Evidence['execution']>().toEqualTypeOf<
    'not_written' | 'refused_by_client' | 'may_have_run' | 'reported_by_client'
  >();
  expectTypeOf<'lease_busy'>().toExtend<Failure['code']>();
  expectTypeOf<string>().not.toExtend<Failure['code']>();
  // @ts-expect-error: there is no such outcome
  if (answer.outcome === 'done') return;
  // @ts-expect-error: there is no such code
  if ('error' in answer && answer.error.code === 'handler_faild') return;
}

test('compile under strict: these types, and the example of README as TypeScript', async () => {
  await mkdir(join(ROOT, '.cache'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.cache/types-'));
  try {
    const example = examplesOf('README.md').find(({ info }) => info === 'file=client.mjs');
    await writeFile(join(folder, 'client.ts'), example?.text ?? '');
    const paths = { 'callboard/*': ['../../src/clients/*/index.ts'] };
    const include = ['client.ts', '../../test/clients/action-types.test.ts'];
    const config = { extends: '../../tsconfig.json', compilerOptions: { paths }, include, exclude: [] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
    expect(await run(folder, join(ROOT, 'node_modules/.bin/tsc'), '-p', '.')).toBe('');
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.each<readonly [kind: string, add: (runtime: Runtime) => void, params: object, wrong: object, result: unknown]>([
  [
    'a JSON Schema as const',
    (runtime) => runtime.handle('a', { schema }, ({ text }) => text.length),
    { text: 'milk', tags: ['a'] },
    { text: 'milk', tags: ['c'] },
    4,
  ],
  [
    'a schema of zod',
    (runtime) => runtime.handle('a', { schema: z.object({ n: z.coerce.number().default(1) }) }, ({ n }) => n + 1),
    { n: '2' },
    { n: 'two' },
    3,
  ],
  [
    'a schema that is a function',
    (runtime) => runtime.handle('a', { schema: callable }, (p) => p),
    { n: 1 },
    {},
    { n: 1 },
  ],
  [
    'a schema that is checked later, with a JSON Schema beside it',
    (runtime) => runtime.handle('a', { schema: trimmed, jsonSchema }, ({ length }) => length),
    { text: ' milk ' },
    { text: 1 },
    4,
  ],
  [
    'types by hand',
    (runtime) => runtime.handle<{ text: string }, number>('a', { schema: jsonSchema }, ({ text }) => text.length),
    { text: 'milk' },
    { text: 1 },
    4,
  ],
])('%s gives the handler what it checked, and refuses other params', async (_, add, params, wrong, result) => {
  await using bench = await startRuntimeBench();
  add(bench.runtime);
  const link = await bench.up();
  link.command('c1', 'a', params);
  const { payload } = await link.next('result');
  expect(JSON.parse(payload ?? '')).toEqual(result);
  link.command('c2', 'a', wrong);
  expect(await link.next('error')).toMatchObject({ command_id: 'c2', code: 'arguments_invalid' });
  expect(JSON.parse(link.hello.payload ?? '')).toMatchObject({ actions: [{ name: 'a', schema: { type: 'object' } }] });
});

test('the fault of a library names its place', async () => {
  await using bench = await startRuntimeBench();
  bench.runtime.handle('a', { schema: z.object({ to: z.object({ name: z.string() }) }) }, () => 1);
  const link = await bench.up();
  link.command('c1', 'a', { to: { name: 1 } });
  expect(await link.next('error')).toMatchObject({ message: expect.stringMatching(/^\/to\/name: .*expected string/) });
});

test('a library that throws refuses the command, and onError learns why', async () => {
  await using bench = await startRuntimeBench();
  const broken = new Error('broken');
  const validate = (): never => {
    throw broken;
  };
  bench.runtime.handle('a', { schema: { '~standard': { ...trimmed['~standard'], validate } }, jsonSchema }, () => 1);
  const link = await bench.up();
  link.command('c1', 'a', {});
  expect(await link.next('error')).toMatchObject({ code: 'arguments_invalid', message: 'The schema failed.' });
  expect(bench.errors).toEqual([broken]);
});

test('a library without a JSON Schema needs one beside it', async () => {
  await using bench = await startRuntimeBench();
  const help = /^action a: schema: it has no JSON Schema: give one as jsonSchema beside it$/;
  expect(() => bench.runtime.handle('a', { schema: trimmed }, () => 1)).toThrow(help);
  const dated = z.object({ at: z.date() });
  expect(() => bench.runtime.handle('a', { schema: dated }, () => 1)).toThrow(help);
});

test('a result that does not match its schema is not sent', async () => {
  await using bench = await startRuntimeBench();
  bench.runtime.handle<object>('json', { result: { type: 'integer' } }, () => 'one');
  bench.runtime.handle<object>('zod', { result: z.string().transform(Number) }, () => '7');
  bench.runtime.handle<object>('raw', { result: { type: 'integer' } }, () => rawJson('1e2'));
  const link = await bench.up();
  link.command('c1', 'json');
  expect(await link.next('error')).toMatchObject({
    code: 'result_unavailable',
    message: 'The result does not match its schema: params: string given, integer expected',
  });
  for (const [action, payload] of [
    ['zod', '7'],
    ['raw', '1e2'],
  ] as const) {
    link.command(action, action);
    expect(await link.next('result')).toMatchObject({ command_id: action, payload });
  }
});
