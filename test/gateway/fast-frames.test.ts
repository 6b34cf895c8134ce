/** Tests that the parser for frequent frames and the general parser read a frame alike. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseInvoke } from '../../src/protocol/read-frequent.ts';
import { parseUp } from '../../src/protocol/frame-codec.ts';

/** Returns the same header with a space, so that the parser for frequent frames leaves it to the general one. */
function spaced(text: string): string {
  return text.replace('{', '{ ');
}

test('frames that are sent for each command are read alike with a space and without', () => {
  const id = fc.oneof(
    fc.stringMatching(/^[A-Za-z0-9_.:@~-]{1,128}$/),
    fc.string({ maxLength: 4 }),
    fc.stringMatching(/^[a-z]{127,130}$/),
  );
  const type = fc.constantFrom('ack', 'result', 'error', 'cancelled', 'progress');
  const number = fc.constantFrom('1', '0', '007', '-1', '1.5', '1e3', '"1"', 'null', '1234567890123456');
  const numbered = number.map((text) => `,"number":${text}`);
  const fixed = fc.constantFrom('', ' ', ',"code":"x"', ',"command_id":"other"', ',"command_id":null', '"', '}', ',');
  const more = fc.oneof(fixed, numbered);
  const rest = fc.constantFrom('', '\n', '\n{}', '\n"a\nb"', ' ', '}', '{', '\r\n1', '\u0000');
  fc.assert(
    fc.property(type, id, fc.boolean(), more, rest, (word, text, written, extra, tail) => {
      const value = written ? JSON.stringify(text) : `"${text}"`;
      const frame = `{"type":"${word}","command_id":${value}${extra}}${tail}`;
      expect(parseUp(frame)).toEqual(parseUp(spaced(frame)));
    }),
    { numRuns: 3_000 },
  );
});

test('an invoke has the same meaning with a space and without, whatever its members contain and in any order', () => {
  const odd = fc.constantFrom('', 'é', 'a"b', 'a\\b', 'a\u0001', 'a b', 'x'.repeat(129), '\ud800', '__proto__');
  const id = fc.oneof({ weight: 12, arbitrary: fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.:-]{0,20}$/) }, odd);
  const absent = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 1 });
  const members = fc.record({
    ref: id,
    user_id: absent(id),
    client_id: id,
    command_id: absent(id),
    action: id,
    wait_for: absent(fc.constantFrom<unknown>('admitted', 'completed', 'never', 1, null)),
    stages: absent(fc.constantFrom('first', 'all', 'none')),
    respond_within_ms: absent(fc.constantFrom<unknown>(5, 'soon')),
  });
  const order = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 7 }));
  const tail = fc.constantFrom('', '\n', '\n{"a":1}', ' ', '}', '\r\n{}', ',"ref":"other"}', '\n"a\nb"');
  const taken = { fast: 0 };
  fc.assert(
    fc.property(members, order, tail, (values, turn, rest) => {
      const entries = Object.entries(values);
      const turned = Object.fromEntries([...entries.slice(turn), ...entries.slice(0, turn)]);
      const text = JSON.stringify({ type: 'invoke', ...turned });
      const frame = rest.startsWith(',') ? `${text.slice(0, -1)}${rest}` : `${text}${rest}`;
      if (parseInvoke(frame)) taken.fast++;
      expect(parseUp(frame)).toEqual(parseUp(spaced(frame)));
    }),
    { numRuns: 5_000 },
  );
  expect(taken.fast).toBeGreaterThan(50);
});

test('the fast parser reads the invokes of the caller library and of a caller without options', () => {
  const ids = { user_id: 'alice@example.com', client_id: 'c1', command_id: '0199a0c0-0000-7000-8000-000000000001' };
  const library = { type: 'invoke', ref: '1', ...ids, action: 'lamp.set', stages: 'first' };
  expect(parseInvoke(`${JSON.stringify(library)}\n{"on":true}`)).toMatchObject({ ...library, payload: '{"on":true}' });
  const plain = { type: 'invoke', ref: '1', client_id: 'c1', action: 'lamp.set' };
  expect(parseInvoke(JSON.stringify(plain))).toMatchObject({ ...plain, payload: null });
});
