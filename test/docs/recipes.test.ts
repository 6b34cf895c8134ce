/**
 * Checks the examples for other libraries as far as possible without installing these libraries, and runs the one that
 * needs only graphql-sse. `npm run interop` installs them and runs all examples; `npm test` does not, because that takes
 * 200 MB and minutes.
 */
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getNamedType, isUnionType, parse, validate } from 'graphql';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { schema } from '../../src/graphql/schema/schema.ts';
import { signToken } from '../../src/http/tokens.ts';
import { isCode } from '../../src/protocol/codes.ts';
import { SECRET } from '../http/kit/http-relay.ts';
import { readRecipes } from '../interop/kit/recipes.ts';
import * as documents from '../interop/libraries/documents.ts';
import { startTestRelay, until } from '../relay/kit/test-relay.ts';
import { ROOT } from './kit/examples.ts';
import { eventually } from '../kit/patience.ts';

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

describe('the client of fetch and graphql-sse', () => {
  const root = join(import.meta.dirname, '../../.cache');
  afterEach(() => void vi.restoreAllMocks());

  /** Writes the modules of the example, and imports the client. */
  async function importClient() {
    mkdirSync(root, { recursive: true });
    const folder = mkdtempSync(join(root, 'recipes-'));
    try {
      for (const { file, text } of recipes)
        if (['connection.mjs', 'plain.mjs'].includes(file)) writeFileSync(join(folder, file), text);
      return await import(join(folder, 'plain.mjs'));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test('ends at once with the code of a refusal', async () => {
    await using relay = await startTestRelay();
    const { createRelayClient } = await importClient();
    const { query, subscribe } = createRelayClient({ relay: relay.url, token: () => 'a-wrong-token' });
    await expect(query('{ viewer { kind } }')).rejects.toMatchObject({ code: 'unauthenticated' });
    const requests = vi.spyOn(globalThis, 'fetch');
    const refusal = await new Promise((error) => subscribe('subscription { connectionEvents { at } }', {}, { error }));
    expect(refusal).toMatchObject({ code: 'unauthenticated', message: 'The token is not valid.' });
    expect(requests.mock.calls.length).toBe(2);
    const wrong = createRelayClient({ relay: relay.url, token: () => relay.token('admin') });
    const invalid = await new Promise((error) => wrong.subscribe('subscription { nonsense }', {}, { error }));
    expect(invalid).toMatchObject({ code: 'graphql_validation_failed' });
  });

  test('follows a subscription beyond the end of its token', async () => {
    await using relay = await startTestRelay();
    const { createRelayClient } = await importClient();
    const token = (): Promise<string> =>
      signToken({ secret: SECRET, user: 'alice', scopes: ['invoke'], ttlSeconds: 60, now: relay.clock.now() });
    const requests = vi.spyOn(globalThis, 'fetch');
    const opened = (): number => requests.mock.settledResults.filter(({ value }) => value?.status === 200).length;
    const events: unknown[] = [];
    const error = vi.fn();
    const next = (data: unknown): void => void events.push(data);
    const { subscribe } = createRelayClient({ relay: relay.url, token });
    const stop = subscribe('subscription { connectionEvents { change } }', {}, { next, error });
    await until(() => opened() === 1);
    await relay.clock.advance(100_000);
    await eventually(() => expect(opened()).toBe(2));
    await relay.client();
    await until(() => events.length > 0);
    expect([events, error.mock.calls]).toEqual([[{ connectionEvents: { change: 'CONNECTED' } }], []]);
    stop();
  });
});
