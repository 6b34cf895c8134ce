/** Tests the reader of event streams of the client libraries. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSseParser, type SseFrame } from '../../src/clients/site/sse.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Parses a stream that arrives in pieces. The pieces end at the positions `cuts`. */
function parse(stream: Uint8Array, cuts: readonly number[] = [], maxChars = 1000): readonly SseFrame[] {
  const parser = createSseParser(maxChars);
  const ends = [...new Set([...cuts.filter((cut) => cut <= stream.length), stream.length])].sort((a, b) => a - b);
  let start = 0;
  return ends.flatMap((end) => {
    const piece = stream.subarray(start, end);
    start = end;
    return [...parser.push(piece)];
  });
}

const STREAM = bytes(
  '\uFEFFevent: one\rdata: Grüße 🎈\rdata:\rdata:  two spaces\r\r' +
    ': a comment\r\nevent: two\r\nid: 7\r\ndata: {"a":1}\r\n\r\n' +
    'data\n\nevent: empty\n\n:\n\ndata: plain\n\nevent: cut\ndata: no blank line follows',
);
const FRAMES = [
  { event: 'one', data: 'Grüße 🎈\n\n two spaces' },
  { event: 'two', data: '{"a":1}' },
  { event: 'message', data: '' },
  { event: 'message', data: 'plain' },
];

describe('a reader of event streams', () => {
  test('knows every line ending, multiple data lines, comments, a BOM, and unfinished events', () => {
    expect(parse(STREAM)).toEqual(FRAMES);
  });

  test('reads the same wherever the stream is split in two, and byte by byte', () => {
    for (let cut = 0; cut <= STREAM.length; cut++) expect(parse(STREAM, [cut])).toEqual(FRAMES);
    expect(
      parse(
        STREAM,
        Array.from(STREAM, (_, at) => at),
      ),
    ).toEqual(FRAMES);
  });

  test('reads the same wherever any stream is split', () => {
    const piece = fc.constantFrom('\r', '\n', '\r\n', 'data', 'event', ':', ': ', 'é', '🎈', 'x', '\uFEFF', 'retry: 5');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(120)), (pieces, cuts) => {
        const stream = bytes(pieces.join(''));
        expect(parse(stream, cuts)).toEqual(parse(stream));
      }),
      { numRuns: 500 },
    );
  });

  test('removes one BOM, wherever it is split, and no second one', () => {
    const stream = bytes('\uFEFF\uFEFFdata\n\ndata: x\n\n');
    for (let cut = 0; cut <= 6; cut++) expect(parse(stream, [cut])).toEqual([{ event: 'message', data: 'x' }]);
  });

  test('accepts any bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (stream) => void parse(stream)));
  });

  test('reads the retry delay of the stream, and ignores an invalid one', () => {
    const parser = createSseParser(100);
    parser.push(bytes('retry: 2500\n'));
    expect(parser.retryMs).toBe(2500);
    parser.push(bytes('retry: -1\nretry: 1e3\nretry: 99999999999\nretry:\n'));
    expect(parser.retryMs).toBe(2500);
  });

  test.each([
    ['one line without an end', 'data: ' + 'x'.repeat(200)],
    ['many data lines', 'data: x\n'.repeat(100)],
    ['a comment without an end', ':' + 'x'.repeat(200)],
    ['many event lines', 'event: x\n'.repeat(100)],
  ])('holds no more than its bound: %s', (_, text) => {
    const parser = createSseParser(100);
    const push = (): void => {
      for (const byte of bytes(text)) parser.push(Uint8Array.of(byte));
    };
    expect(push).toThrow(RangeError);
  });

  test('applies the bound to each event, not to the stream', () => {
    const many = bytes('data: xxxxxxxxxx\n\n'.repeat(100) + ': ping\n'.repeat(100));
    expect(parse(many, [], 30)).toHaveLength(100);
  });
});
