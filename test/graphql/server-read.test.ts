import { buildSchema, type DocumentNode } from 'graphql';
import { expect, test, vi } from 'vitest';
import type { Executor } from '../../src/graphql/execution/executor.ts';
import { createGraphqlServer } from '../../src/graphql/http/yoga.ts';

const mask: Executor['mask'] = vi.fn((error) => error as never);
const executor = { mask, kindOf: () => null } as Partial<Executor> as Executor;

function server() {
  const schema = buildSchema('type Query { a: Int b: Int }');
  return createGraphqlServer({ schema, executor, mask, onWritten: () => {} });
}

test('a valid document is read once, and shared by all requests, whatever their other parameters', async () => {
  const { read, close } = server();
  const first = read({ query: '{ a }' });
  expect((first as DocumentNode).kind).toBe('Document');
  expect(read({ query: '{ a }', variables: { x: 1 }, operationName: 'other' })).toBe(first);
  expect(read({ query: '{ b }' })).not.toBe(first);
  await close();
});

test('the faults of a document are found each time that it is sent', async () => {
  const { read, close } = server();
  for (const query of ['{ c }', '{ a', '{ a ...F }'])
    for (let time = 0; time < 3; time++) expect(read({ query })).toEqual([expect.any(Error)]);
  await close();
});
