/** Tests the inputs that the fuzzer makes, and how it judges answers. */
import { describe, expect, test } from 'vitest';
import { isFault, parseUp } from '../../src/protocol/frame-codec.ts';
import { bodyOf, documentInput } from '../../faults/fuzz/documents.ts';
import { frameSession, SESSION_FRAMES } from '../../faults/fuzz/frames.ts';
import { problemOf } from '../../faults/fuzz/judge.ts';
import { requestInput } from '../../faults/fuzz/requests.ts';

const token = (who: string): string => `token-of-${who}`;
const some = Array.from({ length: 300 }, (_, index) => index);

describe('inputs', () => {
  test('are the same for the same seed and index, and differ for others', () => {
    const texts = (seed: number): readonly string[] =>
      [0, 1, 2].map((index) =>
        JSON.stringify([
          frameSession(seed, index, token),
          requestInput(seed, index, token),
          documentInput(seed, index),
        ]),
      );
    expect(texts(1)).toEqual(texts(1));
    expect(new Set([...texts(1), ...texts(2)]).size).toBe(6);
  });

  test('contain valid and invalid frames, and few enough invalid ones to keep the link open', () => {
    const sessions = some.map((index) => frameSession(1, index, token));
    expect(new Set(sessions.map(({ frames }) => frames.length))).toEqual(new Set([SESSION_FRAMES - 1]));
    const read = sessions.map(({ frames }) =>
      frames.map((frame) => typeof frame === 'string' && !isFault(parseUp(frame))),
    );
    const good = read.map((session) => session.filter(Boolean).length);
    expect(Math.min(...good)).toBeGreaterThan(3);
    expect(read.flat().filter((isGood) => !isGood).length).toBeGreaterThan(300);
    const types = new Set(
      sessions.flatMap(({ frames }) => frames.map((frame) => /"type":"(\w+)"/.exec(String(frame))?.[1])),
    );
    for (const type of ['invoke', 'result', 'report', 'actions', 'site', 'auth', 'await'])
      expect(types).toContain(type);
  });

  test('contain requests of every kind, well-formed and malformed, and large ones', () => {
    const requests = some.map((index) => requestInput(1, index, token));
    expect(requests.filter(({ whole }) => whole).length).toBeGreaterThan(50);
    expect(requests.filter(({ whole }) => !whole).length).toBeGreaterThan(50);
    expect(new Set(requests.map(({ method }) => method)).size).toBeGreaterThan(6);
    const sizes = Array.from({ length: 2_000 }, (_, index) => requestInput(1, index, token).bytes.length);
    expect(sizes.filter((bytes) => bytes > 100_000).length).toBeGreaterThan(3);
  });

  test('contain queries and mutations, with and without permission', () => {
    const documents = some.map((index) => documentInput(1, index));
    expect(new Set(documents.map(({ who }) => who))).toEqual(
      expect.objectContaining(new Set(['admin', 'nobody', 'wrong', 'user-0'])),
    );
    expect(documents.filter(({ mutates }) => mutates).length).toBeGreaterThan(10);
    expect(documents.filter((input) => bodyOf(input).length > 16_000).length).toBeGreaterThan(3);
  });
});

describe('the judgement of an answer', () => {
  test.each([
    [200, '{"data":{}}'],
    [200, '{"errors":[{"message":"","extensions":{"code":"not_found"}}]}'],
    [400, '{"errors":[{"message":"","extensions":{"code":"graphql_parse_failed"}}]}'],
    [404, '{"code":"not_found"}'],
    [503, '{"code":"draining"}'],
    [504, '{"command_id":"c","error":{"code":"response_timeout"}}'],
  ])('accepts: %i %s', (status, text) => expect(problemOf({ status, text })).toBeNull());

  test.each([
    [400, '', '400 without a code'],
    [417, '', '417 without a code'],
    [500, '{"code":"internal"}', 'code internal'],
    [500, '', '500 without a code'],
    [502, '{"code":"draining"}', '502 with the code draining'],
    [404, '{"code":"strange"}', 'not in the table'],
    [200, '{"errors":[{"message":"","extensions":{"code":"internal"}}]}', 'code internal'],
    [200, '{"errors":[{"message":""}]}', 'without a code'],
    [400, '{"code":"not_found","detail":"at Object.run (file:///x/y.ts:1:2)"}', 'stack trace'],
  ])('reports: %i %s', (status, text, problem) => expect(problemOf({ status, text })).toContain(problem));
});
