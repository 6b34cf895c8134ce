/**
 * Checks the examples for other libraries as far as possible without installing these libraries. `npm run interop`
 * installs them and runs the examples; `npm test` does not, because that takes 200 MB and minutes.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { getNamedType, isUnionType, parse, validate } from 'graphql';
import { describe, expect, test } from 'vitest';
import { schema } from '../../src/graphql/schema/schema.ts';
import { isCode } from '../../src/protocol/codes.ts';
import { readRecipes } from '../interop/kit/recipes.ts';
import * as documents from '../interop/libraries/documents.ts';
import { ROOT } from './kit/examples.ts';

const INTEROP = join(import.meta.dirname, '../interop');
const LIBRARIES = join(INTEROP, 'libraries');
const recipes = readRecipes();

test('docs/graphql.md lists each mutation with the types of its result, and only codes that exist', () => {
  const page = readFileSync(join(ROOT, 'docs/graphql.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` +\| ([^|]+)\|([^|]*)\|$/gm)].map(([, ...cells]) => cells);
  const listed = rows.map(([name = '', result = '']) => {
    const types = [...result.matchAll(/`([A-Z]\w+)`/g)].map(([, type = '']) => type);
    return [name, types.length > 0 ? types.sort() : ['InvokeActionOutcome', 'InvokeActionPending']];
  });
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {}).map(({ name, type }) => {
    const answer = getNamedType(type);
    const members = isUnionType(answer) ? answer.getTypes().map((member) => member.name) : [];
    return [name, members.filter((member) => member !== 'Refusal').sort()];
  });
  expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(mutations));
  const codes = rows.flatMap(([, , further = '']) => [...further.matchAll(/`(\w+)`/g)].map(([, code]) => code));
  expect(codes.length).toBeGreaterThan(20);
  expect(codes.filter((code) => !isCode(code))).toEqual([]);
});

describe('the examples for other libraries', () => {
  test('are each used by a test, or by an example that is', () => {
    const tests = readdirSync(LIBRARIES).map((name) => readFileSync(join(LIBRARIES, name), 'utf8'));
    const users = [...tests, ...recipes.map(({ text }) => text), readFileSync(join(INTEROP, 'run.ts'), 'utf8')];
    expect(recipes.length).toBeGreaterThan(5);
    const unused = recipes.filter(({ file }) => !users.some((text) => text.includes(file)));
    expect(unused.map(({ file }) => file)).toEqual([]);
  });

  test('hold operations that parse, and their tests run operations that the schema allows', () => {
    const tagged = recipes.flatMap(({ text }) => [...text.matchAll(/graphql`\n([^`]+)`/g)].map(([, tag = '']) => tag));
    expect(tagged.length).toBe(5);
    for (const operation of Object.values(documents)) expect(validate(schema, parse(operation))).toEqual([]);
    for (const tag of tagged) expect(() => parse(tag)).not.toThrow();
  });

  test('need exact versions of the libraries', () => {
    const manifest = JSON.parse(readFileSync(join(INTEROP, 'package.json'), 'utf8'));
    const versions: string[] = Object.values(manifest.dependencies);
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});
