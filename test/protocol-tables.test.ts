/** Tests that the tables of PROTOCOL.md equal the sources. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CODE_MEANINGS } from '../src/graphql/schema/refusal.ts';
import { CLOSE, CLIENT_REFUSALS, CODES, closeReasonOf, reconnectAfter } from '../src/protocol/codes.ts';
import { DOWN, UP } from '../src/protocol/frames.ts';

const text = readFileSync(join(import.meta.dirname, '..', 'PROTOCOL.md'), 'utf8');

/** Returns the rows of the table that has these columns. A row is the text of its cells, without code marks. */
function tableOf(...columns: readonly string[]): readonly (readonly string[])[] {
  const cellsOf = (line: string): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replace(/^`([^`]*)`$/, '$1'));
  const lines = text.split('\n');
  const head = lines.findIndex((line) => columns.every((column, i) => cellsOf(line)[i] === column));
  if (head < 0) throw new Error(`PROTOCOL.md has no table of ${columns.join(', ')}`);
  const rest = lines.slice(head + 2);
  return rest
    .slice(
      0,
      rest.findIndex((line) => !line.startsWith('|')),
    )
    .map(cellsOf);
}

describe('the table of error codes', () => {
  const rows = tableOf('code', 'status', 'from', 'again', 'meaning');

  test('equals that of the sources: each code with its status, in order', () => {
    const inText = rows.map(([code, status]) => [code, Number(status)]);
    expect(inText).toEqual(Object.entries(CODES));
  });

  test('has the same meanings as the schema', () => {
    const inText = rows.map(([code, , , , meaning]) => [code, meaning]);
    expect(inText).toEqual(Object.entries(CODE_MEANINGS).map(([code, text]) => [code, text.replaceAll('’', "'")]));
  });

  test('states for each code who sends it, whether a retry helps, and what it means', () => {
    for (const [code, status, senders = '', again, meaning] of rows) {
      const from = senders.split(', ');
      expect([code, ['request', 'end', 'client', 'host']]).toEqual([code, expect.arrayContaining(from)]);
      expect([code, ['no', 'later', 'new id', 'unsure']]).toEqual([code, expect.arrayContaining([again])]);
      expect([code, meaning]).toEqual([code, expect.stringMatching(/^.{10,}\.$/)]);
      // A code that a client uses to refuse a command proves that nothing ran, so its row never says `unsure`. A code
      // that only a client reports occurs inside of a successful answer.
      if (CLIENT_REFUSALS.some((refusal) => refusal === code)) expect([code, from, again]).not.toContain('unsure');
      if (senders === 'client') expect([code, status]).toEqual([code, '200']);
    }
    for (const refusal of CLIENT_REFUSALS) expect(rows.find(([code]) => code === refusal)?.[2]).toMatch(/client$/);
  });
});

test('the table of close codes equals that of the sources', () => {
  const words = { yes: 'yes', renew: 'new token', no: 'no' } as const;
  const inText = tableOf('code', 'reason', 'reconnect?', 'meaning').map(([code, reason, back]) => [
    reason,
    Number(code),
    back,
  ]);
  const inSources = Object.entries(CLOSE).map(([reason, code]) => [
    ...[reason, code, words[reconnectAfter(closeReasonOf(code) ?? 'internal')]],
  ]);
  expect(inText).toEqual(inSources);
});

test('every frame is documented', () => {
  const described = new Set([...text.matchAll(/^ {2}type: '(\w+)';$/gm)].map(([, type]) => type));
  const frames = new Set([...Object.keys(UP), ...Object.keys(DOWN)]);
  expect(described).toEqual(frames);
});
