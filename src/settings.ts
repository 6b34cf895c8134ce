/** The table of all settings of a relay, with the parser and the default of each. */
import { z } from 'zod';
import { targetFault } from './backends/redis/target.ts';
import { refuseInputs } from './core/errors.ts';
import { ID_FORM, isId } from './core/ids.ts';
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
  UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
} from './core/limits.ts';
import { type NumberRange, PROXIES_MAX, isWithin, DATA_SYNC_RANGE, RANGES, DAY_MS } from './settings/ranges.ts';
import { whole, SHARE_ROWS } from './settings/share-settings.ts';

/** The prefix of all environment variables. The flag of the setting `MAX_BODY_BYTES` is `--max-body-bytes`. */
export const PREFIX = 'CALLBOARD_';

const ranged = ({ min, max }: NumberRange) => whole(min, max);
const flag = z.enum(['true', 'false', '1', '0', 'on', 'off'], 'expected true or false').transform(isOn);

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
/** Parses a list of keys, one per line: the present key, then the earlier ones. Each has at least 32 bytes. */
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

/** The description of a valid address at which clients reach a relay. */
const LINK_URL_FORM =
  'expected a ws or wss address with its path, such as wss://relay-1.example/connect, without user, query and fragment';
/** The most characters of such an address. The address is sent in a frame. */
const LINK_URL_CHARS = 1024;

/** The longest time for which records may be unsynced by default, in milliseconds. */
export const DATA_SYNC_MS = 100;
const DATA_SYNC_FORM = 'expected always, off, or a number of milliseconds from 1 to 60000';
const dataSync = z
  .string()
  .regex(/^(always|off|\d{1,5})$/, DATA_SYNC_FORM)
  .transform((text): number | 'always' | 'off' => (text === 'always' || text === 'off' ? text : Number(text)))
  .refine((sync) => typeof sync !== 'number' || isWithin(sync, DATA_SYNC_RANGE), DATA_SYNC_FORM);

/** The most lines of AUDIT_KEY: enough if the key is replaced each month and rows are kept for a year. */
const AUDIT_KEYS = 12;

/** One entry per setting: its name, the parser of its text, and its default. */
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
  STORE: z.enum(['owned', 'redis']).default('owned'),
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

/**
 * The settings that need no value on the command line: `--trust-proxy` turns one on, and `--no-trust-proxy` turns it
 * off.
 */
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

/**
 * Whether a text is an address at which clients can reach a relay. Clients see it, so it must not contain a password.
 */
function isLinkUrl(text: string): boolean {
  const path = /^wss?:\/\/[^\s@?#]+$/i.test(text) ? URL.parse(text)?.pathname : undefined;
  return path !== undefined && path !== '/' && text.length <= LINK_URL_CHARS;
}

/** Checks `advertiseUrl` of an embedded relay. Throws `invalid_argument` if clients could not use it. */
export function checkAdvertiseUrl({ advertiseUrl: url = null }: { readonly advertiseUrl?: string | null }): void {
  if (url !== null && !isLinkUrl(url)) refuseInputs([{ parameter: 'advertiseUrl', detail: LINK_URL_FORM }], '\n');
}

function isTraceUrl(text: string): boolean {
  return isHttpUrl(text) && /^https?:\/\/[^/?#{}@]+[/?#].*\{traceId\}/.test(text);
}

/**
 * Whether a browser may send this text as an origin: the origin of a page, of an extension, or of an app's shell with a
 * scheme of its own; or `null`, which sandboxed pages and local files send.
 */
function isOrigin(text: string): boolean {
  if (/^(?:https?|wss?):/i.test(text)) return isHttpUrl(text) && URL.parse(text)?.origin === text;
  return text === 'null' || /^[a-z][a-z0-9+.-]*:\/\/[A-Za-z0-9._~:[\]-]*$/.test(text);
}
