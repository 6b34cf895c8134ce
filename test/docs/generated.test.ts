/** Tests that the generated tables of the documentation are up to date, and describe every setting. */
import { expect, test } from 'vitest';
import { describedSettings } from '../../scripts/docs/settings-part.ts';
import { generatedPages } from '../../scripts/docs/pages.ts';
import { SETTING_NAMES } from '../../src/settings.ts';

test.each(generatedPages().map(({ page, now, text }) => [page, now, text]))(
  '%s has the tables that `npm run docs` writes',
  (_page, now, text) => {
    expect(now).toBe(text);
  },
);

test('every setting is described, each once', () => {
  expect([...describedSettings()].sort()).toEqual([...SETTING_NAMES].sort());
});
