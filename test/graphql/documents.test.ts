/** Tests that documents are parsed and validated once. */
import { buildSchema, GraphQLError, type DocumentNode } from 'graphql';
import { expect, test } from 'vitest';
import { createDocuments } from '../../src/graphql/execute/documents.ts';

const documents = () => createDocuments(buildSchema('type Query { a: Int b: Int }'));

test('a valid document is read once, and all requests get the same object', () => {
  const { read, parse, faults } = documents();
  const first = read('{ a }');
  expect((first as DocumentNode).kind).toBe('Document');
  expect(read('{ a }')).toBe(first);
  expect(parse('{ a }')).toBe(first);
  expect(faults(first as DocumentNode)).toEqual([]);
  expect(read('{ b }')).not.toBe(first);
});

test('the faults of a document are reported each time that it is sent', () => {
  const { read, parse } = documents();
  for (const query of ['{ c }', '{ a', '{ a ...F }'])
    for (let time = 0; time < 3; time++) expect(read(query)).toEqual([expect.any(GraphQLError)]);
  expect(() => parse('{ a')).toThrow(GraphQLError);
  expect(() => parse('{'.repeat(200_000))).toThrow('at most');
});
