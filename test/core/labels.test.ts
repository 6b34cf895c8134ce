/** Tests labels of clients: what counts as one, and how filters name them. */
import { describe, expect, it } from 'vitest';
import { checkLabels, hasLabels, labelsOf } from '../../src/core/connections/labels.ts';
import { toJson } from '../../src/core/json.ts';
import { LABEL_MAX_CHARS, LABELS_PER_CLIENT, LABELS_PER_FILTER } from '../../src/core/limits.ts';

const labels = (metadata: unknown) => Object.fromEntries(labelsOf({ metadata: toJson(metadata) }));

describe('labels of a client', () => {
  it('are the texts, numbers and booleans of its metadata, and those of its member `labels` before them', () => {
    const metadata = { a: 'x', b: 2, c: true, d: null, e: ['x'], labels: { a: 'own', f: 0.5, g: {} } };
    expect(labels(metadata)).toEqual({ a: 'own', b: '2', c: 'true', f: '0.5' });
    expect(labels({ labels: 'text' })).toEqual({});
    for (const other of [[1, 2], 'text', 7, null, undefined]) expect(labels(other)).toEqual({});
  });

  it('are bounded in number and length', () => {
    const many = Object.fromEntries(Array.from({ length: LABELS_PER_CLIENT + 5 }, (_, i) => [`k${i}`, i]));
    expect(Object.keys(labels(many))).toHaveLength(LABELS_PER_CLIENT);
    const long = 'x'.repeat(LABEL_MAX_CHARS);
    expect(labels({ a: long, b: 'x' })).toEqual({ b: 'x' });
  });

  it('are found however the metadata are escaped', () => {
    const metadata = '{"na\\u006de":"caf\\u00e9"}' as ReturnType<typeof toJson>;
    expect(hasLabels({ metadata }, [{ key: 'name', value: 'café' }])).toBe(true);
    expect(hasLabels({ metadata }, [{ key: 'name', value: 'cafe' }])).toBe(false);
    expect(hasLabels(null, [{ key: 'name', value: 'café' }])).toBe(false);
  });

  it.each([
    ['1e3', '1000'],
    ['1E-1', '0.1'],
    ['1.2e1', '12'],
    ['12345678901234567890', '12345678901234567000'],
  ])('are found however a number is written: %s', (written, value) => {
    const metadata = `{"size":${written}}` as ReturnType<typeof toJson>;
    expect(hasLabels({ metadata }, [{ key: 'size', value }])).toBe(true);
    expect(hasLabels({ metadata }, [{ key: 'size', value: `${value}1` }])).toBe(false);
  });
});

describe('labels of a filter', () => {
  it('are read once each and in one order, and the key ends at the first =', () => {
    expect(checkLabels('labels', ['b=2', 'a=1=2', 'b=2', 'c='])).toEqual([
      { key: 'a', value: '1=2' },
      { key: 'b', value: '2' },
      { key: 'c', value: '' },
    ]);
    expect(checkLabels('labels', null)).toBe(null);
  });

  it.each([
    ['none', []],
    ['one without a value', ['room']],
    ['one without a key', ['=12']],
    ['too many', Array.from({ length: LABELS_PER_FILTER + 1 }, (_, i) => `k=${i}`)],
    ['one that is too long', [`k=${'x'.repeat(LABEL_MAX_CHARS)}`]],
  ])('are refused: %s', (_, given) => {
    expect(() => checkLabels('labels', given)).toThrow(/^labels: expected at most/);
  });
});
