import { expect, test } from 'vitest';
import { createBodyReader } from '../../src/graphql/http/request-bodies.ts';
import { parseBody } from '../../src/http/body.ts';

function reader() {
  const parsed: string[] = [];
  const read = createBodyReader((bytes) => (parsed.push(bytes.toString()), parseBody(bytes)));
  return { parsed, read: (text: string) => read(Buffer.from(text)) };
}

test('a short body that comes again is read once, and nobody can change it', () => {
  const { parsed, read } = reader();
  const text = '{"query":"{ viewer { kind } }","variables":{"a":1}}';
  const first = read(text);
  expect(first).toMatchObject({ query: '{ viewer { kind } }', variables: { text: '{"a":1}' } });
  expect(read(text)).toBe(first);
  expect(Object.isFrozen(first)).toBe(true);
  expect(read(`${text} `)).toEqual(first);
  expect(parsed).toHaveLength(2);
});

test('bytes that read alike as characters of one byte are told apart', () => {
  const read = createBodyReader(parseBody);
  expect(read(Buffer.from('{"query":"é"}'))).toMatchObject({ query: 'é' });
  expect(() => read(Buffer.from('{"query":"é"}', 'latin1'))).toThrow('UTF-8');
});

test('a long body, and what is no object, is read each time', () => {
  const { parsed, read } = reader();
  const long = `{"query":"${' '.repeat(5_000)}{ a }"}`;
  for (const text of [long, long, '1', '1']) read(text);
  expect(parsed).toHaveLength(4);
});
