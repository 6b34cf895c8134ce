/** Runs the command `callboard token`, which prints a signed token. */
import { readConfig } from '../config.ts';
import { canonicalUser } from '../core/ids.ts';
import { signToken } from '../http/token.ts';
import { splitFlags } from './flags.ts';
import { UsageError, type Io } from './io.ts';

const SCOPES: readonly string[] = ['connect', 'invoke', 'host', 'admin'];
/** The default of `--ttl`, in seconds: an hour. */
const TTL_DEFAULT = 3600;
/** The largest `--ttl`, in seconds: ten years. */
const TTL_MAX = 10 * 365 * 24 * 3600;

/** Prints one token, signed with HS256 and the configured secret, issuer and audience. */
export async function token(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--user', '--scope', '--ttl'] });
  const faults: string[] = [];
  const user = readUser(own.get('--user'), faults);
  const scopes = readScopes(own.get('--scope') ?? 'connect,invoke', faults);
  const ttlSeconds = readTtl(own.get('--ttl'), faults);
  const config = readConfig(io.env, rest);
  const { secret, issuer, audience } = config.auth;
  if (config.generated || secret === null) {
    faults.push('CALLBOARD_SECRET: is required to sign a token, and must be the secret that the relay uses');
  }
  if (faults.length > 0 || secret === null) throw new UsageError(faults.join('\n'));
  io.print(`${await signToken({ secret, user, scopes, ttlSeconds, now: Date.now(), issuer, audience })}\n`);
}

function readUser(text: string | undefined, faults: string[]): string {
  if (text === undefined) faults.push('--user: is required');
  try {
    return text === undefined ? '' : canonicalUser(text);
  } catch {
    faults.push('--user: expected 1 to 128 characters without control characters and without "/"');
    return '';
  }
}

function readScopes(text: string, faults: string[]): readonly string[] {
  const scopes = text.split(/[\s,]+/).filter((scope) => scope !== '');
  const unknown = scopes.filter((scope) => !SCOPES.includes(scope));
  if (unknown.length > 0) faults.push(`--scope: "${unknown.join(', ')}" is none of ${SCOPES.join(', ')}`);
  return scopes;
}

function readTtl(text: string | undefined, faults: string[]): number {
  if (text === undefined) return TTL_DEFAULT;
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (seconds < 1 || seconds > TTL_MAX) faults.push(`--ttl: expected 1 to ${TTL_MAX} seconds`);
  return seconds;
}
