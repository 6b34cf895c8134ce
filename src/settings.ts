/** The table of all settings of a relay, with the parser and the default of each. */
import { z } from 'zod';
import { targetFault } from './backends/redis/target.ts';
import {
  AUDIT_KEEP_MS,
  AUDIT_ROWS,
  MAX_BODY_BYTES,
  RETENTION_MS,
  STREAM_MESSAGES,
  UNAUTHENTICATED_SOCKETS_PER_ADDRESS,
  INBOUND_BYTES_PER_SECOND,
  TERMINAL_MS,
} from './core/limits.ts';
import { RANGES, type Range } from './settings-ranges.ts';
import { SHARE_ROWS, whole } from './settings-shares.ts';

const DAY_MS = 24 * 3600_000;

/** The prefix of all environment variables. The flag of the setting `MAX_BODY_BYTES` is `--max-body-bytes`. */
export const PREFIX = 'CALLBOARD_';

const ranged = ({ min, max }: Range) => whole(min, max);
const flag = z.enum(['true', 'false', '1', '0', 'on', 'off'], 'expected true or false').transform(isOn);
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const id = z.string().regex(/^[A-Za-z0-9_.:@~-]{1,128}$/, 'expected 1 to 128 of A-Z a-z 0-9 . _ : @ ~ -');
const url = z.string().refine(isHttpUrl, 'expected an http or https address');
const redisUrl = z.string().superRefine((text, context) => {
  const message = targetFault(text);
  if (message !== null) context.addIssue({ code: 'custom', message });
});

/** The most lines of AUDIT_KEY: enough for a key that is replaced each month while rows are kept for a year. */
const AUDIT_KEYS = 12;

/** One row per setting: its name, the parser of its text, and its default. */
export const SETTINGS = z.object({
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: whole(0, 65_535).default(4400),
  BASE_PATH: z
    .string()
    .regex(/^(\/[A-Za-z0-9._~-]+)*\/?$/, 'expected a path such as /callboard')
    .transform((path) => path.replace(/\/$/, ''))
    .default(''),
  ADMIN_TOKEN: list
    .pipe(z.array(z.string().regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters without spaces')))
    .default([]),
  SECRET: z
    .string()
    .transform((text) => text.split(/\r?\n/))
    .pipe(
      z
        .array(z.string().refine((secret) => Buffer.byteLength(secret) >= 32, 'expected at least 32 bytes'))
        .max(2, 'expected at most two lines: the secret, and the one before it'),
    )
    .optional(),
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'expected visible ASCII characters without spaces')
    .refine((text) => text.length >= 32, 'expected at least 32 characters')
    .optional(),
  TLS_CERT: z.string().optional(),
  TLS_KEY: z.string().optional(),
  JWKS_URL: url.optional(),
  ISSUER: z.string().optional(),
  AUDIENCE: z.string().optional(),
  USER_CLAIM: z.string().min(1).optional(),
  SCOPE_CLAIM: z.string().min(1).optional(),
  SCOPE_PREFIX: z.string().default(''),
  REDIS_URL: redisUrl.optional(),
  PARTITIONS: whole(1, 1024).default(1),
  DURABILITY: z.enum(['memory', 'aof_everysec', 'aof_always']).optional(),
  NAMESPACE: id.default('callboard'),
  NODE_ID: id.optional(),
  LABEL: z
    .string()
    .regex(/^[^\u0000-\u001f\u007f]{1,40}$/, 'expected 1 to 40 characters without control characters')
    .optional(),
  CONSOLE: flag.default(true),
  RAW_MESSAGES: flag.default(false),
  AUDIT_FILE: z.string().min(1).optional(),
  AUDIT_KEY: z
    .string()
    .transform((text) => text.split(/\r?\n/))
    .pipe(
      z
        .array(z.string().refine((key) => Buffer.byteLength(key) >= 32, 'expected at least 32 bytes in each line'))
        .max(AUDIT_KEYS, `expected at most ${AUDIT_KEYS} lines: the key, and the ones before it`),
    )
    .optional(),
  AUDIT_DAYS: ranged(RANGES.auditDays).default(AUDIT_KEEP_MS / DAY_MS),
  AUDIT_MAX_ROWS: ranged(RANGES.auditMaxRows).default(AUDIT_ROWS),
  REVEAL: z.enum(['argument', 'mutation', 'off'], 'expected argument, mutation or off').default('argument'),
  POLICY_FILE: z.string().optional(),
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
        z.string().refine(isOrigin, 'expected exact origins such as https://app.example, without a path and without *'),
      ),
    )
    .default([]),
  TRUST_PROXY: flag.default(false),
  INTROSPECTION: z.enum(['admin', 'all', 'off'], 'expected admin, all or off').default('admin'),
  STRICT_MIGRATION: flag.default(false),
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
  'RAW_MESSAGES',
  'TRUST_PROXY',
  'STRICT_MIGRATION',
  'FAST_PATH',
  'TRACE_IDS',
]);

/** The settings that have an effect only with JWKS_URL. */
export const JWKS_ONLY: readonly SettingName[] = ['USER_CLAIM', 'SCOPE_CLAIM', 'SCOPE_PREFIX'];

/** The settings that have an effect only with REDIS_URL. */
export const SHARED_ONLY: readonly SettingName[] = [
  ...(['PARTITIONS', 'DURABILITY', 'NAMESPACE', 'STRICT_MIGRATION'] as const),
  ...(['LEGACY_COMMAND_STREAM', 'LEGACY_PENDING'] as const),
];
/** The settings that have an effect only without REDIS_URL. */
export const DIRECT_ONLY: readonly SettingName[] = [
  'AUDIT_FILE',
  ...(['RECORDS_SHARE', 'RECORDS_MAX', 'DEDUP_SHARE', 'DEDUP_MAX'] as const),
];

function isOn(text: string): boolean {
  return text === 'true' || text === '1' || text === 'on';
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol;
  return protocol === 'http:' || protocol === 'https:';
}

function isOrigin(text: string): boolean {
  return isHttpUrl(text) && URL.parse(text)?.origin === text;
}
