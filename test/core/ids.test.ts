/** Tests which ids, names and user ids the relay accepts, and their normal form. */
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { canonicalUser, id, isCanonicalUser, isId, isName, name, suffixSegments } from '../../src/core/ids.ts';
import { USER_GIVEN_CHARS } from '../../src/core/limits.ts';

function refusal(read: () => unknown): CallboardError | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof CallboardError) return error;
    throw error;
  }
}

describe('ids', () => {
  it.each(['a', 'A-Z_0.9:@~', 'x'.repeat(128), '...', '.a', '-'])('may be %s', (text) => {
    expect(isId(text)).toBe(true);
    expect(id('client_id', text)).toBe(text);
  });

  it.each(['', '.', '..', 'x'.repeat(129), 'a b', 'a/b', 'é', 'a\n', '\na', 'a\u0000', '%41', 'a\\b', '\u{1f600}'])(
    'may not be %j',
    (text) => {
      expect(isId(text)).toBe(false);
      const error = refusal(() => id('client_id', text));
      expect(error?.code).toBe('invalid_argument');
      expect(error?.details.errors).toMatchObject([{ parameter: 'client_id' }]);
    },
  );
});

describe('names of actions and events', () => {
  it.each(['a', 'tab.open', 'A:b-c_d.9', `x${'y'.repeat(127)}`])('may be %s', (text) => {
    expect(isName(text)).toBe(true);
    expect(name('action', text)).toBe(text);
  });

  it.each(['', '9a', '.a', '_a', 'a b', 'a/b', `x${'y'.repeat(128)}`, 'a\n', 'a@b'])('may not be %j', (text) => {
    expect(isName(text)).toBe(false);
    expect(refusal(() => name('action', text))?.code).toBe('invalid_argument');
  });
});

describe('the canonical user', () => {
  it.each([
    [' alice ', 'alice'],
    ['Alice', 'Alice'],
    ['Alice@Example.ORG', 'alice@example.org'],
    ['\tAlice@Example.org\n', 'alice@example.org'],
    ['e\u0301', '\u00e9'],
    ['\u03aa\u0301@a.b', '\u0390@a.b'],
    ['a b', 'a b'],
    ['@home', '@home'],
    ['A@B', 'A@B'],
    ['\u{1f600}', '\u{1f600}'],
    ['x'.repeat(128), 'x'.repeat(128)],
    [` ${'x'.repeat(128)} `, 'x'.repeat(128)],
  ])('of %j is %j', (text, user) => {
    expect(canonicalUser(text)).toBe(user);
    expect(isCanonicalUser(text)).toBe(text === user);
  });

  it.each([
    '',
    '.',
    '..',
    ' .. ',
    '   ',
    'a/b',
    '/',
    'a\u0000',
    'a\u0085b',
    'a\u2028b',
    'a\nb',
    '\ud800',
    'a\udc00',
    'x'.repeat(129),
  ])('of %j does not exist', (text) => {
    expect(refusal(() => canonicalUser(text))?.code).toBe('invalid_user');
    expect(isCanonicalUser(text)).toBe(false);
  });

  it('of an e-mail address is its own canonical form, however its capitals are composed', () => {
    const marks = fc.constantFrom('\u0301', '\u0307', '\u0323', '\u0345');
    fc.assert(
      fc.property(fc.integer({ min: 0xc0, max: 0x1fff }), marks, (code, mark) => {
        const user = canonicalUser(`${String.fromCharCode(code)}x${String.fromCharCode(code)}${mark}@example.org`);
        expect(canonicalUser(user)).toBe(user);
      }),
      { numRuns: 2000, examples: [[0x3aa, '\u0301']] },
    );
  });

  it('never echoes a refused text', () => {
    expect(refusal(() => canonicalUser('secret/user'))?.message).not.toContain('secret');
  });

  it('is its own canonical form, and one for all spellings', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (text) => {
        let user: string;
        try {
          user = canonicalUser(text);
        } catch {
          return;
        }
        expect(canonicalUser(user)).toBe(user);
        expect(canonicalUser(` ${text.normalize('NFD')} `)).toBe(user);
        expect(user).not.toContain('/');
      }),
      { numRuns: 2000 },
    );
  });
});

describe('texts that are too long', () => {
  it('are not users, whatever their canonical form', () => {
    expect(canonicalUser(`${' '.repeat(USER_GIVEN_CHARS - 1)}x`)).toBe('x');
    expect(refusal(() => canonicalUser(`${' '.repeat(USER_GIVEN_CHARS)}x`))?.code).toBe('invalid_user');
    expect(refusal(() => canonicalUser('e\u0301'.repeat(USER_GIVEN_CHARS / 2)))?.code).toBe('invalid_user');
    expect(canonicalUser('e\u0301'.repeat(128))).toBe('\u00e9'.repeat(128));
  });

  it('are refused before normalization, which takes quadratic time', () => {
    const normalize = vi.spyOn(String.prototype, 'normalize');
    try {
      expect(refusal(() => canonicalUser('\u0301\u0327'.repeat(USER_GIVEN_CHARS)))?.code).toBe('invalid_user');
      expect(normalize).not.toHaveBeenCalled();
      canonicalUser('A');
      expect(normalize).toHaveBeenCalled();
    } finally {
      normalize.mockRestore();
    }
  });

  it('are not split into the segments of a suffix', () => {
    expect(suffixSegments('a/b')).toEqual(['a', 'b']);
    expect(suffixSegments('a'.repeat(8 * 129))).toHaveLength(1);
    expect(suffixSegments('a'.repeat(8 * 129 + 1))).toBeNull();
    expect(suffixSegments('a/b/c/d/e/f/g/h/i')).toBeNull();
    expect(suffixSegments(Array.from({ length: 8 }, () => 'x'.repeat(128)).join('/'))).toHaveLength(8);
  });

  it('e-mail addresses are recognized exactly as by the reference expression', () => {
    const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;
    const texts = fc.array(fc.constantFrom('A', 'b', '@', '.', ' ', '\n', '\u00a0', '-'), { maxLength: 12 });
    fc.assert(
      fc.property(texts, (parts) => {
        const tidy = parts.join('').trim();
        if (['', '.', '..'].includes(tidy) || /[\u0000-\u001f]/.test(tidy)) return;
        expect(canonicalUser(tidy)).toBe(EMAIL.test(tidy) ? tidy.toLowerCase() : tidy);
      }),
      { numRuns: 2_000 },
    );
  });
});
