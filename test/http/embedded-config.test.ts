/** Tests that the settings of an embedded relay are checked like those of the command line. */
import { describe, expect, it } from 'vitest';
import { createCallboard, openCallboard, type Settings } from '../../src/callboard.ts';
import { RANGES } from '../../src/settings/ranges.ts';

const auth = { adminTokens: ['a-token-of-the-administrator'] };
/** Returns the settings in which one number, which is given by its path, has this value. */
const withNumber = (path: string, value: number): object => {
  const [name = '', member] = path.split('.');
  return { [name]: member === undefined ? value : { [member]: value } };
};
const NUMBERS = Object.entries(RANGES).flatMap(([name, { min, max }]) =>
  [min - 1, max + 1, min + 0.5, NaN, Infinity, -1].map((value) => [name, value] as const),
);

describe('the configuration of an embedding program', () => {
  it.each(NUMBERS)('is refused with %s of %d, as the setting would be', async (name, value) => {
    const config = { auth, ...withNumber(name, value) };
    const refusal = { code: 'invalid_argument', details: { errors: [{ parameter: name }] } };
    expect(() => createCallboard({ config })).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
    await expect(openCallboard({ config })).rejects.toMatchObject(refusal);
  });

  it('is refused with all faults at once', async () => {
    const config: Settings = { auth, idempotencyWindowMs: 1, maxBodyBytes: 0, retentionMs: 60_000 };
    await expect(openCallboard({ config })).rejects.toMatchObject({
      message:
        'idempotencyWindowMs: expected a whole number from 60000 to 86400000\nmaxBodyBytes: expected a whole number from 1024 to 67108864',
    });
  });

  it('accepts both ends of each range', async () => {
    for (const end of ['min', 'max'] as const) {
      for (const [name, range] of Object.entries(RANGES)) {
        await using callboard = createCallboard({ config: { auth, ...withNumber(name, range[end]) } });
        expect(callboard.url).toBeNull();
      }
    }
  });
});
