/**
 * The table of all settings of a relay, with the parser and the default of each. Also the bounds of shares, the ranges
 * of numbers, the files that contain settings, and the format of the policy file.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { targetFault } from './backends/redis/target.ts';
import type { PolicyFile } from './core/auth/policy-file.ts';
import { refuseInputs, type InputError } from './core/errors.ts';
import { ID_FORM, isId } from './core/ids.ts';
import { parsedJson } from './core/json.ts';
import {
  AUDIT_KEEP_MS,
  AUDIT_ROWS,
  INBOUND_BYTES_PER_SECOND,
  KEEP_ALIVE_MS,
  MAX_BODY_BYTES,
  PING_MS,
  RETENTION_MS,
  STREAM_MESSAGES,
  TERMINAL_MS,
  TERMINAL_RANGE_MS,
  UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
} from './core/limits.ts';
import {
  SHARE_BOUNDS,
  SHARE_NAMES,
  SPILL_IN_MEMORY,
  boundFault,
  fillBound,
  type GivenBounds,
  type ShareBound,
  type ShareName,
} from './core/shares/share-bounds.ts';

// The settings that bound how much of each shared resource the users may hold.

const MIB = 1024 * 1024;
/** The smallest bound that may be set for a resource in bytes: a payload of the largest size must fit. */
const MIN_BYTES = MIB;
/** The largest bounds that a share accepts: 1 TiB for bytes, and a hundred million for counts. */
const MAX_BYTES = 1024 * 1024 * MIB;
const MAX_COUNT = 100_000_000;

/** A whole number of at most 15 digits within a range, both ends included. */
const whole = (min: number, max: number): z.ZodType<number, string> =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'expected a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `expected at least ${min}`).max(max, `expected at most ${max}`));

const bytes = whole(MIN_BYTES, MAX_BYTES).optional();
const count = whole(1, MAX_COUNT).optional();

/**
 * For each share, the names of its two settings: the guarantee for one user, and the total for all users. Null: the
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

/** The row of each setting of a share. Unset: the share's default. */
const SHARE_ROWS = Object.fromEntries(
  SHARE_SETTINGS.map((name) => [name, name.endsWith('_BYTES') ? bytes : count]),
) as Readonly<Record<ShareSetting, typeof count>>;

/** Returns the bounds that are set, by share. */
export function boundsGiven(settings: ShareSettings): GivenBounds {
  return Object.fromEntries(SHARE_NAMES.map((share) => [share, boundGiven(settings, share)]));
}

function boundGiven(settings: ShareSettings, share: ShareName): Partial<ShareBound> {
  const [guarantee, total] = SETTINGS_OF_SHARE[share];
  return { ...given('guarantee', settings[guarantee]), ...(total && given('total', settings[total])) };
}

/**
 * Returns the faults of guarantees that exceed their totals, each with the guarantee's setting. Ignores texts that are
 * not numbers, because the schema reports them.
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

/** Returns the default bounds of shares that depend on other settings: a spill store in memory has smaller ones. */
export function shareDefaults(spillInMemory: boolean): { readonly spilled_bytes: ShareBound } {
  return { spilled_bytes: spillInMemory ? SPILL_IN_MEMORY : SHARE_BOUNDS.spilled_bytes };
}

function given(member: keyof ShareBound, value: number | undefined): Partial<ShareBound> {
  return value === undefined ? {} : { [member]: value };
}

// The range of each numeric setting. Those of an embedded relay are checked too.

type Range = { readonly min: number; readonly max: number };

/**
 * The range of each numeric setting, by its path in the settings of an embedded relay. Both ends are included. The
 * numbers are milliseconds, days, bytes or counts.
 */
export const RANGES = {
  retentionMs: { min: 1000, max: 365 * 24 * 3600_000 },
  idempotencyWindowMs: TERMINAL_RANGE_MS,
  streamMaxMessages: { min: 1, max: 10_000_000 },
  inboundBytesPerSecond: { min: 1024, max: 1024 * 1024 * MIB },
  unauthenticatedSockets: { min: 1, max: 10_000_000 },
  'audit.days': { min: 1, max: 3650 },
  'audit.maxRows': { min: 100, max: 1_000_000 },
  maxBodyBytes: { min: 1024, max: 64 * MIB },
  keepAliveMs: { min: 1000, max: 3600_000 },
  pingMs: { min: 1000, max: PING_MS },
} as const satisfies Readonly<Record<string, Range>>;

type RangedSettings = {
  readonly [Name in keyof typeof RANGES as Name extends `audit.${string}` ? never : Name]?: number | undefined;
} & { readonly audit?: { readonly days?: number; readonly maxRows?: number } | undefined };

/** Checks numeric settings. Throws `invalid_argument`, naming every number that is not a whole number in its range. */
export function checkRanges({ audit, ...settings }: RangedSettings): void {
  const given: Readonly<Record<string, unknown>> = {
    ...settings,
    'audit.days': audit?.days,
    'audit.maxRows': audit?.maxRows,
  };
  const errors = Object.entries(RANGES).flatMap(([parameter, range]): readonly InputError[] =>
    given[parameter] === undefined || isWithin(given[parameter], range)
      ? []
      : [{ parameter, detail: `expected a whole number from ${range.min} to ${range.max}` }],
  );
  refuseInputs(errors, '\n');
}

function isWithin(value: unknown, { min, max }: Range): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
}

const DAY_MS = 24 * 3600_000;
/** The range of DATA_SYNC, in milliseconds. */
const DATA_SYNC_RANGE: Range = { min: 1, max: 60_000 };

/** The prefix of all environment variables. The flag of the setting `MAX_BODY_BYTES` is `--max-body-bytes`. */
export const PREFIX = 'CALLBOARD_';

const ranged = ({ min, max }: Range) => whole(min, max);
const flag = z.enum(['true', 'false', '1', '0', 'on', 'off'], 'expected true or false').transform(isOn);
/** The most proxies in front that TRUST_PROXY counts. */
const PROXIES_MAX = 10;
const TRUST_FORM = `expected true, false or a number of proxies up to ${PROXIES_MAX}`;
const trustProxy = z
  .string()
  .regex(/^(true|on|false|off|\d{1,2})$/, TRUST_FORM)
  .transform((text): boolean | number => (/^\d/.test(text) ? Number(text) : isOn(text)))
  .refine((trust) => Number(trust) <= PROXIES_MAX, TRUST_FORM);
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const names = list.pipe(z.array(z.string()).min(1, 'expected at least one name'));
/** Keys, one a line, of at least 32 bytes each: the present one, then those before it. */
const keys = (tooShort: string, most: number, tooMany: string) =>
  z
    .string()
    .transform((text) => text.split(/\r?\n/))
    .pipe(z.array(z.string().refine((key) => Buffer.byteLength(key) >= 32, tooShort)).max(most, tooMany));
const visible = z.string().regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters without spaces');
const id = z.string().refine(isId, `expected ${ID_FORM}`);
const url = z.string().refine(isHttpUrl, 'expected an http or https address');
const redisUrl = z.string().superRefine((text, context) => {
  const message = targetFault(text);
  if (message !== null) context.addIssue({ code: 'custom', message });
});

/** What an address is at which clients reach a relay. */
const LINK_URL_FORM =
  'expected a ws or wss address with its path, such as wss://relay-1.example/connect, without user, query and fragment';
/** The most characters of such an address: it is a field of a frame. */
const LINK_URL_CHARS = 1024;

/** How long records may be written and not synced by default, in milliseconds. */
export const DATA_SYNC_MS = 100;
const DATA_SYNC_FORM = 'expected always, off, or a number of milliseconds from 1 to 60000';
const dataSync = z
  .string()
  .regex(/^(always|off|\d{1,5})$/, DATA_SYNC_FORM)
  .transform((text): number | 'always' | 'off' => (text === 'always' || text === 'off' ? text : Number(text)))
  .refine((sync) => typeof sync !== 'number' || isWithin(sync, DATA_SYNC_RANGE), DATA_SYNC_FORM);

/** The most lines of AUDIT_KEY: enough for a key that is replaced each month while rows are kept for a year. */
const AUDIT_KEYS = 12;

/** One row per setting: its name, the parser of its text, and its default. */
export const SETTINGS = z.object({
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: whole(0, 65_535).default(4400),
  BASE_PATH: z
    .string()
    .regex(/^(\/(?!\.\.?(?:\/|$))[A-Za-z0-9._~-]+)*\/?$/, 'expected a path such as /callboard, without . and ..')
    .transform((path) => path.replace(/\/$/, ''))
    .default(''),
  ADMIN_TOKEN: list.pipe(z.array(visible)).default([]),
  SECRET: keys(
    'expected at least 32 bytes',
    2,
    'expected at most two lines: the secret, and the one before it',
  ).optional(),
  METRICS_TOKEN: visible.refine((text) => text.length >= 32, 'expected at least 32 characters').optional(),
  TLS_CERT: z.string().optional(),
  TLS_KEY: z.string().optional(),
  JWKS_URL: url.optional(),
  ISSUER: names.optional(),
  AUDIENCE: names.optional(),
  AUDIENCE_FROM_CLIENT_ID: flag.default(false),
  USER_CLAIM: names.optional(),
  FOLD_USERS: flag.default(false),
  SCOPE_CLAIM: names.optional(),
  SCOPE_PREFIX: z.string().default(''),
  REDIS_URL: redisUrl.optional(),
  REDIS_TLS_CA: z.string().min(1).optional(),
  REDIS_TLS_CERT: z.string().min(1).optional(),
  REDIS_TLS_KEY: z.string().min(1).optional(),
  STORE: z.enum(['redis', 'owned']).default('redis'),
  PARTITIONS: whole(1, 1024).default(1),
  DURABILITY: z.enum(['memory', 'aof_everysec', 'aof_always']).optional(),
  NAMESPACE: id.default('callboard'),
  NODE_ID: id.optional(),
  LABEL: z
    .string()
    .regex(/^[^\u0000-\u001f\u007f]{1,40}$/, 'expected 1 to 40 characters without control characters')
    .optional(),
  TRACE_URL: z
    .string()
    .max(500, 'expected at most 500 characters')
    .refine(isTraceUrl, 'expected an http or https address with {traceId} in its path, query or fragment')
    .optional(),
  CONSOLE: flag.default(true),
  MCP: flag.optional(),
  RAW_MESSAGES: flag.default(false),
  AUDIT_FILE: z.string().min(1).optional(),
  AUDIT_KEY: keys(
    'expected at least 32 bytes in each line',
    AUDIT_KEYS,
    `expected at most ${AUDIT_KEYS} lines: the key, and the ones before it`,
  ).optional(),
  AUDIT_DAYS: ranged(RANGES['audit.days']).default(AUDIT_KEEP_MS / DAY_MS),
  AUDIT_MAX_ROWS: ranged(RANGES['audit.maxRows']).default(AUDIT_ROWS),
  REVEAL: z.enum(['argument', 'mutation', 'off'], 'expected argument, mutation or off').default('argument'),
  POLICY_FILE: z.string().optional(),
  DATA_DIR: z.string().min(1).optional(),
  DATA_SYNC: dataSync.default(DATA_SYNC_MS),
  SPILL_DIR: z.string().optional(),
  RETENTION_MS: ranged(RANGES.retentionMs).default(RETENTION_MS),
  IDEMPOTENCY_WINDOW_MS: ranged(RANGES.idempotencyWindowMs).default(TERMINAL_MS),
  STREAM_MAX_MESSAGES: ranged(RANGES.streamMaxMessages).default(STREAM_MESSAGES),
  ...SHARE_ROWS,
  INBOUND_BYTES_PER_SECOND: ranged(RANGES.inboundBytesPerSecond).default(INBOUND_BYTES_PER_SECOND),
  UNAUTHENTICATED_SOCKETS_PER_ADDRESS: ranged(RANGES.unauthenticatedSockets).default(
    UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
  ),
  MAX_BODY_BYTES: ranged(RANGES.maxBodyBytes).default(MAX_BODY_BYTES),
  ALLOWED_ORIGINS: list
    .pipe(
      z.array(
        z
          .string()
          .refine(
            isOrigin,
            'expected exact origins such as https://app.example or chrome-extension://id, or null; without a path and without *',
          ),
      ),
    )
    .default([]),
  TRUST_PROXY: trustProxy.default(false),
  KEEP_ALIVE_MS: ranged(RANGES.keepAliveMs).default(KEEP_ALIVE_MS),
  PING_MS: ranged(RANGES.pingMs).default(PING_MS),
  INTROSPECTION: z.enum(['admin', 'all', 'off'], 'expected admin, all or off').default('admin'),
  STRICT_MIGRATION: flag.default(false),
  ADVERTISE_URL: z.string().refine(isLinkUrl, LINK_URL_FORM).optional(),
  LEGACY_COMMAND_STREAM: z.string().optional(),
  LEGACY_PENDING: z.string().optional(),
  FAST_PATH: flag.default(true),
  TRACE_IDS: flag.default(false),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'], 'expected debug, info, warn, error or silent')
    .default('info'),
});

export type SettingValues = z.infer<typeof SETTINGS>;
export type SettingName = keyof SettingValues;

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS.shape, name);
}

export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS.shape).filter(isSettingName);

/** The settings that take no value on the command line: `--trust-proxy`, and `--no-trust-proxy` for off. */
export const SWITCHES: ReadonlySet<SettingName> = new Set([
  'CONSOLE',
  'MCP',
  'RAW_MESSAGES',
  'TRUST_PROXY',
  'STRICT_MIGRATION',
  'FAST_PATH',
  'TRACE_IDS',
  'AUDIENCE_FROM_CLIENT_ID',
  'FOLD_USERS',
]);

/** The settings that have an effect only with JWKS_URL. */
export const JWKS_ONLY: readonly SettingName[] = [
  ...(['USER_CLAIM', 'FOLD_USERS', 'SCOPE_CLAIM', 'SCOPE_PREFIX', 'AUDIENCE_FROM_CLIENT_ID'] as const),
];

/** The settings that have an effect only with REDIS_URL. */
export const SHARED_ONLY: readonly SettingName[] = [
  ...(['PARTITIONS', 'DURABILITY', 'NAMESPACE', 'STRICT_MIGRATION', 'ADVERTISE_URL'] as const),
  ...(['LEGACY_COMMAND_STREAM', 'LEGACY_PENDING'] as const),
  ...(['REDIS_TLS_CA', 'REDIS_TLS_CERT', 'REDIS_TLS_KEY'] as const),
];
/** The settings that have an effect only without REDIS_URL. */
export const DIRECT_ONLY: readonly SettingName[] = ['AUDIT_FILE', 'DATA_DIR', 'DATA_SYNC'];

function isOn(text: string): boolean {
  return text === 'true' || text === '1' || text === 'on';
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol;
  return protocol === 'http:' || protocol === 'https:';
}

/** Whether a text is such an address. Clients are told it, so it must hold no password. */
function isLinkUrl(text: string): boolean {
  const path = /^wss?:\/\/[^\s@?#]+$/i.test(text) ? URL.parse(text)?.pathname : undefined;
  return path !== undefined && path !== '/' && text.length <= LINK_URL_CHARS;
}

/** Checks the address of an embedded relay. Throws `invalid_argument` if clients could not use it. */
export function checkAdvertiseUrl({ advertiseUrl: url = null }: { readonly advertiseUrl?: string | null }): void {
  if (url !== null && !isLinkUrl(url)) refuseInputs([{ parameter: 'advertiseUrl', detail: LINK_URL_FORM }], '\n');
}

function isTraceUrl(text: string): boolean {
  return isHttpUrl(text) && /^https?:\/\/[^/?#{}@]+[/?#].*\{traceId\}/.test(text);
}

/**
 * Whether a browser may send this text as an origin: that of a page, of an extension or of an app's shell, whose scheme
 * is the browser's own, or `null`, which sandboxed pages and local files share.
 */
function isOrigin(text: string): boolean {
  if (/^(?:https?|wss?):/i.test(text)) return isHttpUrl(text) && URL.parse(text)?.origin === text;
  return text === 'null' || /^[a-z][a-z0-9+.-]*:\/\/[A-Za-z0-9._~:[\]-]*$/.test(text);
}

// Lists the settings whose text may be in a file, and reads such files.

/**
 * The settings that a file may contain: `SECRET_FILE` names the file that contains the text of `SECRET`. They are the
 * settings with credentials, which thereby stay out of the environment and of process lists.
 */
export const FILE_SETTINGS: readonly SettingName[] = [
  'ADMIN_TOKEN',
  'SECRET',
  'METRICS_TOKEN',
  'REDIS_URL',
  'AUDIT_KEY',
];

/** The end of the name of a variable that names a file; the flag ends with `-file`. */
export const FILE_SUFFIX = '_FILE';

/**
 * Returns the setting whose text is read from a file by the variable `name`, such as SECRET for `SECRET_FILE`; null if
 * there is none.
 */
export function settingOfFile(name: string): SettingName | null {
  return FILE_SETTINGS.find((setting) => setting + FILE_SUFFIX === name) ?? null;
}

/**
 * Reads the text of a file without white space at its end. Returns the reason if it cannot be used; the reason never
 * quotes the file.
 */
export function readSettingFile(path: string, shownAs: string): { readonly text: string } | InputError {
  try {
    const text = readFileSync(path, 'utf8').trimEnd();
    return text === '' ? { parameter: shownAs, detail: 'the file is empty' } : { text };
  } catch (error) {
    return { parameter: shownAs, detail: `the file cannot be read (${codeOf(error)})` };
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
}

// Parses and checks the text of a policy file.

const globs = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).transform((one) => [one].flat());
const capacity = z.number().int().min(1).max(1_000_000);

const RULE = z.strictObject({
  name: z.string().min(1).max(64).optional(),
  effect: z.enum(['allow', 'deny']),
  user: globs.optional(),
  caller: globs.optional(),
  client_type: globs.optional(),
  action: globs.optional(),
});
const SCOPE = z.strictObject({
  id: z.string().refine(isId, `expected ${ID_FORM}`),
  members: globs,
  capacity,
  member_capacity: capacity.optional(),
});
const RATE = z.strictObject({
  name: z.string().min(1).max(64).optional(),
  user: globs.optional(),
  caller: globs.optional(),
  client_type: globs.optional(),
  action: globs.optional(),
  burst: z.number().int().min(1).max(1_000_000),
  per_second: z.number().min(0.001).max(1_000_000),
});
const FILE = z.strictObject({
  rules: z.array(RULE).max(1000).default([]),
  scopes: z.array(SCOPE).max(1000).default([]),
  rates: z.array(RATE).max(100).default([]),
  user_capacity: capacity.optional(),
});

/** The policy, or null with all faults. A fault's `parameter` is the path in the file, such as `rules[0].effect`. */
type PolicyRead = { readonly policy: PolicyFile | null; readonly faults: readonly InputError[] };

/**
 * Parses the text of a policy file: `rules` in order, each `allow` or `deny` with globs on `user`, `caller` (a scope of
 * the caller's token), `client_type` and `action`; `scopes` with `members`, `capacity` and `member_capacity`;
 * `user_capacity` for users who are in no scope; `rates` with the globs of a rule, `burst` and `per_second`.
 */
export function parsePolicyFile(text: string): PolicyRead {
  const value = parsedJson(text);
  if (value === undefined) return { policy: null, faults: [{ parameter: '', detail: 'the file is not JSON' }] };
  const parsed = FILE.safeParse(value);
  if (!parsed.success) return { policy: null, faults: parsed.error.issues.map(toFault) };
  const policy = toPolicy(parsed.data);
  const named = { scopes: policy.scopes.map(({ id }) => id), rates: policy.rates?.map(({ name }) => name) ?? [] };
  const faults = Object.entries(named).flatMap(([parameter, names]): InputError[] => {
    const twice = repeated(names);
    return twice === undefined ? [] : [{ parameter, detail: `"${twice}" appears twice` }];
  });
  return faults.length > 0 ? { policy: null, faults } : { policy, faults };
}

type Globs = Pick<z.infer<typeof RULE>, 'user' | 'caller' | 'client_type' | 'action'>;

function globsOf({ user, caller, client_type: clientType, action }: Globs) {
  return { users: user, callers: caller, clientTypes: clientType, actions: action };
}

function toPolicy(file: z.infer<typeof FILE>): PolicyFile {
  return {
    rules: file.rules.map((rule, index) => ({
      name: rule.name ?? `rules[${index}]`,
      effect: rule.effect,
      ...globsOf(rule),
    })),
    scopes: file.scopes.map(({ member_capacity: memberCapacity, ...scope }) => ({
      ...scope,
      ...(memberCapacity !== undefined && { memberCapacity }),
    })),
    rates: file.rates.map((rate, index) => ({
      name: rate.name ?? `rates[${index}]`,
      burst: rate.burst,
      perSecond: rate.per_second,
      ...globsOf(rate),
    })),
    userCapacity: file.user_capacity ?? null,
  };
}

function toFault(issue: z.core.$ZodIssue): InputError {
  const path = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  return { parameter: path.replace(/^\./, ''), detail: issue.message };
}

function repeated(ids: readonly string[]): string | undefined {
  return ids.find((id, index) => ids.indexOf(id) !== index);
}
