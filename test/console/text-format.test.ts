/** Tests how the console writes numbers, days and people. */
import fc from 'fast-check';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';

let amounts: typeof import('../../src/console/ui/amounts.ts');
let textFormat: typeof import('../../src/console/ui/text-format.ts');
let zones: typeof import('../../src/console/ui/zones.ts');

const NUMBERS = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const DAYS = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

beforeAll(async () => {
  vi.stubGlobal('addEventListener', () => undefined);
  // The first format of `Intl` takes a browser tens of milliseconds, and each further one some tenths of one.
  vi.stubGlobal('Intl', {});
  amounts = await import('../../src/console/ui/amounts.ts');
  textFormat = await import('../../src/console/ui/text-format.ts');
  zones = await import('../../src/console/ui/zones.ts');
});

afterEach(() => void vi.restoreAllMocks());

it('writes whole numbers with a space between thousands, without a format of the browser', () => {
  expect([0, 12, 999, 1000, 1284.4, 1_234_567].map(amounts.whole)).toEqual(
    ['0', '12', '999', '1 000', '1 284', '1 234 567'].map((text) => text.replaceAll(' ', '\u202f')),
  );
  fc.assert(
    fc.property(fc.nat({ max: Number.MAX_SAFE_INTEGER }), (value) => {
      expect(amounts.whole(value)).toBe(NUMBERS.format(value).replaceAll(',', '\u202f'));
    }),
  );
});

it('writes days with their month, without a format of the browser', () => {
  const format = vi.spyOn(Date.prototype, 'toLocaleDateString');
  expect(zones.day('2026-11-05T14:31:12.204Z')).toBe('5 November 2026');
  expect(zones.shortDay('2026-05-21T14:31:12.204Z')).toBe('21 May');
  expect(zones.shortDay('2026-09-21T14:31:12.204Z')).toBe('21 Sep');
  const dates = fc.date({ min: new Date('1970-01-01'), max: new Date('2999-12-31'), noInvalidDate: true });
  fc.assert(
    fc.property(dates, (at) => {
      expect(zones.day(at.toISOString())).toBe(DAYS.format(at));
      expect(zones.bothTimes(at.toISOString())).toContain(`${DAYS.format(at)}, ${at.toISOString().slice(11, 23)} UTC`);
    }),
  );
  expect(format).not.toHaveBeenCalled();
});

it('writes people by their kind, whatever their names have in them', () => {
  expect(['admin:ada', 'user:alice', 'admin:user:x', 'nobody'].map(textFormat.personText)).toEqual([
    ...['administrator ada', 'user alice', 'administrator user:x', 'nobody'],
  ]);
});
