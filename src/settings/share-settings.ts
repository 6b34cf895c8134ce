/** The settings for the bounds of the shares: how much of each shared resource one user and all users may hold. */
import { z } from 'zod';
import {
  SHARE_BOUNDS,
  SHARE_NAMES,
  SPILL_IN_MEMORY,
  boundFault,
  fillBound,
  type GivenBounds,
  type ShareBound,
  type ShareName,
} from '../core/shares/share-bounds.ts';

export const MIB = 1024 * 1024;
/** The smallest bound of a share in bytes. A payload of the largest size must fit in. */
const MIN_BYTES = MIB;
/** The largest bounds of a share: 1 TiB for bytes, and a hundred million for counts. */
const MAX_BYTES = 1024 * 1024 * MIB;
const MAX_COUNT = 100_000_000;

/** Parses a whole number of at most 15 digits in a range, both ends included. */
export const whole = (min: number, max: number): z.ZodType<number, string> =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'expected a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `expected at least ${min}`).max(max, `expected at most ${max}`));

const bytes = whole(MIN_BYTES, MAX_BYTES).optional();
const count = whole(1, MAX_COUNT).optional();

/**
 * The names of the two settings of each share: the guarantee for one user, and the total for all users; null if the
 * share has no total.
 */
export const SETTINGS_OF_SHARE = {
  links: ['LINKS_SHARE', 'LINKS_MAX'],
  advertised_bytes: ['ADVERTISED_SHARE_BYTES', 'ADVERTISED_MAX_BYTES'],
  queued_bytes: ['QUEUED_SHARE_BYTES', 'QUEUED_MAX_BYTES'],
  result_bytes: ['RESULT_SHARE_BYTES', 'RESULT_MAX_BYTES'],
  ended_records: ['RECORDS_SHARE', 'RECORDS_MAX'],
  history_bytes: ['HISTORY_SHARE_BYTES', 'HISTORY_MAX_BYTES'],
  spilled_bytes: ['SPILL_SHARE_BYTES', 'SPILL_MAX_BYTES'],
  waits: ['WAITS_SHARE', null],
  unread_bytes: ['UNREAD_SHARE_BYTES', 'UNREAD_MAX_BYTES'],
  marks: ['MARKS_SHARE', 'MARKS_MAX'],
  dedup_marks: ['DEDUP_SHARE', 'DEDUP_MAX'],
  sockets: ['SOCKETS_SHARE', 'SOCKETS_MAX'],
  requests: ['REQUESTS_SHARE', 'REQUESTS_MAX'],
  feeds: ['FEEDS_SHARE', 'FEEDS_MAX'],
  documents: ['DOCUMENTS_SHARE', null],
} as const satisfies Readonly<Record<ShareName, readonly [string, string | null]>>;

type ShareSetting = NonNullable<(typeof SETTINGS_OF_SHARE)[ShareName][number]>;
type ShareSettings = { readonly [Name in ShareSetting]?: number | undefined };

const SHARE_SETTINGS: readonly ShareSetting[] = Object.values(SETTINGS_OF_SHARE)
  .flat()
  .filter((name) => name !== null);

/** The parser of each setting of a share. If the setting is absent, the share's default applies. */
export const SHARE_ROWS = Object.fromEntries(
  SHARE_SETTINGS.map((name) => [name, name.endsWith('_BYTES') ? bytes : count]),
) as Readonly<Record<ShareSetting, typeof count>>;

/** Returns the configured bounds, by share. */
export function boundsGiven(settings: ShareSettings): GivenBounds {
  return Object.fromEntries(SHARE_NAMES.map((share) => [share, boundGiven(settings, share)]));
}

function boundGiven(settings: ShareSettings, share: ShareName): Partial<ShareBound> {
  const [guarantee, total] = SETTINGS_OF_SHARE[share];
  return { ...given('guarantee', settings[guarantee]), ...(total && given('total', settings[total])) };
}

/**
 * Returns the faults of guarantees that exceed their totals, each with the name of the guarantee's setting. Ignores
 * texts that are not numbers, because the schema reports them.
 */
export function shareFaults(
  textOf: (name: ShareSetting) => string | undefined,
  spillInMemory: boolean,
): readonly (readonly [ShareSetting, string])[] {
  const defaults = { ...SHARE_BOUNDS, ...shareDefaults(spillInMemory) };
  const settings: ShareSettings = Object.fromEntries(
    SHARE_SETTINGS.map((name) => [name, SHARE_ROWS[name].safeParse(textOf(name)).data]),
  );
  return SHARE_NAMES.flatMap((share) => {
    const detail = boundFault(fillBound(boundGiven(settings, share), defaults[share]));
    return detail === null ? [] : [[SETTINGS_OF_SHARE[share][0], detail] as const];
  });
}

/**
 * Returns the default bounds of those shares that depend on other settings. A spill store in memory has smaller bounds.
 */
export function shareDefaults(spillInMemory: boolean): { readonly spilled_bytes: ShareBound } {
  return { spilled_bytes: spillInMemory ? SPILL_IN_MEMORY : SHARE_BOUNDS.spilled_bytes };
}

function given(member: keyof ShareBound, value: number | undefined): Partial<ShareBound> {
  return value === undefined ? {} : { [member]: value };
}
