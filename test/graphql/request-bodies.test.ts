/** Tests the cache of parsed request bodies. */
import { expect, test } from 'vitest';
import { createBodyReader } from '../../src/graphql/http/request.ts';
import { decodeBody, refuseBody } from '../../src/http/request-body.ts';

function reader() {
  const parsed: string[] = [];
  const read = createBodyReader((bytes) => (parsed.push(bytes.toString()), decodeBody(bytes)), refuseBody);
  return { parsed, read: (text: string) => read(Buffer.from(text)) };
}

test('a short body that is sent again is parsed once, and the result cannot be changed', () => {
  const { parsed, read } = reader();
  const text = '{"query":"{ viewer { kind } }","variables":{"a":1}}';
  const first = read(text);
  expect(first).toMatchObject({ query: '{ viewer { kind } }', variables: { text: '{"a":1}' } });
  expect(read(text)).toBe(first);
  expect(Object.isFrozen(first)).toBe(true);
  expect(read(`${text} `)).toEqual(first);
  expect(parsed).toHaveLength(2);
});

test('different bytes that are equal as Latin-1 are distinguished', () => {
  const read = createBodyReader(decodeBody, refuseBody);
  expect(read(Buffer.from('{"query":"é"}'))).toMatchObject({ query: 'é' });
  expect(() => read(Buffer.from('{"query":"é"}', 'latin1'))).toThrow('UTF-8');
});

test('a long body, and a body that is not an object, is parsed each time', () => {
  const { parsed, read } = reader();
  const long = `{"query":"${' '.repeat(5_000)}{ a }"}`;
  for (const text of [long, long, '1', '1']) read(text);
  expect(parsed).toHaveLength(4);
});
