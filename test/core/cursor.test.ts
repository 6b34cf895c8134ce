/** Tests cursors and page sizes: what they are bound to, and which are refused. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { Cursors, type Listing } from '../../src/core/cursors.ts';
import { createCrypto } from '../../src/platform/system.ts';

const cursors = new Cursors(createCrypto('one key'));
const listing: Listing = { name: 'connections', filter: { userId: null, status: 'stale' }, requester: 'admin:ops' };
const position = ['alice', 'tab/\u{1f600}\n.'];

function codeOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return error instanceof CallboardError ? error.code : String(error);
  }
}

describe('a cursor', () => {
  const cursor = cursors.encode(listing, position);

  it('opens for the listing, filter and requester for which it was made', () => {
    expect(cursors.decode(listing, cursor)).toEqual(position);
    expect(cursors.request(listing, { first: 7, after: cursor })).toEqual({ first: 7, after: position });
  });

  it('does not depend on how the filter is written', () => {
    const same = { ...listing, filter: { status: 'stale', userId: null, nodeId: undefined } };
    expect(cursors.decode(same, cursor)).toEqual(position);
  });

  it('restores any position', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 4 }), (texts) => {
        expect(cursors.decode(listing, cursors.encode(listing, texts))).toEqual(texts);
      }),
    );
  });

  const foreign: [string, Listing][] = [
    ['another asker', { ...listing, requester: 'admin:other' }],
    ['a user of the same name', { ...listing, requester: 'user:ops' }],
    ['another filter', { ...listing, filter: { userId: null, status: 'connected' } }],
    ['a narrower filter', { ...listing, filter: { userId: 'alice', status: 'stale' } }],
    ['no filter', { ...listing, filter: null }],
    ['another listing', { ...listing, name: 'streams' }],
  ];
  it.each(foreign)('is invalid_cursor for %s', (_, other) => {
    expect(codeOf(() => cursors.decode(other, cursor))).toBe('invalid_cursor');
  });

  it('is invalid_cursor for a deployment with another key', () => {
    const other = new Cursors(createCrypto('another key'));
    expect(codeOf(() => other.decode(listing, cursor))).toBe('invalid_cursor');
  });

  it('is invalid_cursor when any one character is changed, removed or added', () => {
    for (let i = 0; i < cursor.length; i++) {
      const changed = cursor[i] === 'A' ? 'B' : 'A';
      const damaged = [
        cursor.slice(0, i) + changed + cursor.slice(i + 1),
        cursor.slice(0, i) + cursor.slice(i + 1),
        cursor.slice(0, i) + 'A' + cursor.slice(i),
      ];
      for (const text of damaged)
        expect(
          codeOf(() => cursors.decode(listing, text)),
          text,
        ).toBe('invalid_cursor');
    }
  });

  it('is invalid_cursor when it is truncated anywhere', () => {
    for (let i = 0; i < cursor.length; i++) {
      expect(codeOf(() => cursors.decode(listing, cursor.slice(0, i)))).toBe('invalid_cursor');
    }
  });

  it('is invalid_cursor when its parts come from two valid cursors', () => {
    const [version, body] = cursor.split('.');
    const mac = cursors.encode(listing, ['bob', 'tab']).split('.')[2];
    expect(codeOf(() => cursors.decode(listing, `${version}.${body}.${mac}`))).toBe('invalid_cursor');
  });

  it('is invalid_cursor for any invented text, and never another error', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `c1.${text}`),
        ),
        (text) => {
          expect(codeOf(() => cursors.decode(listing, text))).toBe('invalid_cursor');
        },
      ),
    );
    expect(codeOf(() => cursors.decode(listing, 'x'.repeat(100_000)))).toBe('invalid_cursor');
  });
});

describe('a page size', () => {
  it('is 1 to 1000, and 100 by default', () => {
    expect(cursors.request(listing, {}).first).toBe(100);
    expect(cursors.request(listing, { first: null }).first).toBe(100);
    expect(cursors.request(listing, { first: 1 }).first).toBe(1);
    expect(cursors.request(listing, { first: 1000 }).first).toBe(1000);
    for (const first of [0, -1, 1001, 1.5, NaN, Infinity]) {
      expect(codeOf(() => cursors.request(listing, { first }))).toBe('invalid_argument');
    }
  });
});
