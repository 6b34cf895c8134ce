/** Tests that linters find no fault in the OpenAPI document. */
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { startRestRelay } from './kit/rest-server.ts';
import { resolverOf } from './kit/schema-values.ts';

type Parameter = { readonly name: string; readonly schema: Readonly<Record<string, number>> };
type Operation = {
  readonly summary?: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
};
type Description = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>; license?: unknown };

async function description(): Promise<Description & { info: Record<string, unknown> }> {
  await using relay = await startRestRelay();
  return JSON.parse(JSON.stringify(await relay.handler.openapi()));
}

/** Returns the document with every reference to a parameter replaced by the parameter. */
async function wholeDescription(): Promise<Description> {
  const document = await description();
  const resolve = resolverOf(document);
  for (const methods of Object.values(document.paths)) {
    for (const operation of Object.values(methods))
      Object.assign(operation, { parameters: (operation.parameters ?? []).map(resolve) });
  }
  return document;
}

async function faults(document: object): Promise<readonly string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const found = await lintFromString({ source: JSON.stringify(document), absoluteRef: '/openapi.json', config });
  return found.map(({ ruleId, message }) => `${ruleId}: ${message}`);
}

/** The rules of this project that no linter has. Each function returns whether an operation follows its rule. */
const RULES: Readonly<Record<string, (operation: Operation) => boolean>> = {
  'an operation has a summary and a description, which are sentences': ({ summary = '', description: text = '' }) =>
    /\w.*\.$/s.test(summary) && /\w.*\.$/s.test(text),
  'a list is bounded by a limit that says its range': ({ parameters }) => {
    const limit = parameters.find(({ name }) => name === 'limit')?.schema;
    return !limit || (limit['minimum'] === 1 && Number(limit['maximum']) <= 1000);
  },
  'a cursor and a limit come together': ({ parameters }) => {
    const has = (requested: string): boolean => parameters.some(({ name }) => name === requested);
    return !has('cursor') || has('limit');
  },
};

function broken({ paths }: Description, holds: (operation: Operation) => boolean): readonly string[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => (holds(operation) ? [] : [`${method} ${path}`])),
  );
}

test('a linter finds nothing in the description, with its strictest rules', async () => {
  expect(await faults(await description())).toEqual([]);
});

test('the linter finds deliberate faults', async () => {
  const document = await description();
  delete document.info['license'];
  const twice = document.paths['/connections']?.['get'];
  Object.assign(document.paths['/users']?.['get'] ?? {}, { operationId: 'ListConnections' });
  expect(twice).toBeDefined();
  const found = (await faults(document)).join('\n');
  expect(found).toContain('info-license');
  expect(found).toContain('operation-operationId-unique');
});

test.each(Object.entries(RULES))('%s', async (_, holds) => {
  const document = await wholeDescription();
  expect(Object.keys(document.paths).length).toBeGreaterThan(30);
  expect(broken(document, holds)).toEqual([]);
});

test('each of these rules finds its violation', async () => {
  const document = await wholeDescription();
  const get = document.paths['/connections']?.['get'];
  if (!get) throw new Error('there is no /connections');
  const nonAscii = { name: 'limit', schema: { minimum: 1, maximum: 10_000 } };
  const odd: readonly Operation[] = [
    { ...get, summary: 'mute' },
    { ...get, parameters: [nonAscii] },
    { ...get, parameters: get.parameters.filter(({ name }) => name !== 'limit') },
  ];
  expect(Object.values(RULES).map((holds, i) => holds(odd[i] ?? get))).toEqual([false, false, false]);
});
