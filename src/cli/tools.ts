/** Runs the small commands that start no relay: token, console, healthcheck, schema and spill-clean. */
import { once } from 'node:events';
import http from 'node:http';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { userInfo } from 'node:os';
import { text } from 'node:stream/consumers';
import { readConfig, type Config } from '../config.ts';
import { readToolChoice } from '../core/auth/principal.ts';
import { canonicalUser } from '../core/ids.ts';
import { SIGN_IN_TICKET_SECONDS } from '../core/limits.ts';
import { signTicket } from '../http/sign-in-tickets.ts';
import { signToken } from '../http/tokens.ts';
import { createLog } from '../platform/log.ts';
import { CommandError, UsageError } from './exit-codes.ts';
import { splitFlags } from './flags.ts';
import { pasteable } from './installation.ts';
import { isHttpUrl, messageOf, type Io } from './io.ts';
import { keptSecret } from './trial-credentials.ts';

const SCOPES: readonly string[] = ['connect', 'invoke', 'host', 'mcp', 'admin'];
/** The default of `--ttl`, in seconds: an hour. */
const TTL_DEFAULT = 3600;
/** The default of `--ttl` with `--mcp`, in seconds: 30 days, because hosts store the token in their configuration. */
const TTL_MCP = 30 * 24 * 3600;
/** The largest `--ttl`, in seconds: ten years. */
const TTL_MAX = 10 * 365 * 24 * 3600;

/** Prints one token, signed with HS256 and the configured secret, issuer and audience. */
export async function token(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, {
    values: ['--user', '--scope', '--ttl', '--actions', '--tools', '--prefix'],
    switches: ['--mcp'],
  });
  const forAgents = own.has('--mcp');
  const faults: string[] = [];
  const user = readUser('--user', own.get('--user'), faults);
  if (forAgents && own.has('--scope')) faults.push('--scope: is not allowed together with --mcp');
  const scopes = readScopes(forAgents ? 'mcp' : (own.get('--scope') ?? 'connect,invoke'), faults);
  const ttlSeconds = readTtl(own.get('--ttl'), forAgents ? TTL_MCP : TTL_DEFAULT, faults);
  const actions = own
    .get('--actions')
    ?.split(/[\s,]+/)
    .filter((pattern) => pattern !== '');
  if (actions?.length === 0) faults.push('--actions: expected patterns of actions, such as tab.*');
  const [tools, prefix] = [own.get('--tools'), own.get('--prefix')];
  const choice = readToolChoice(tools, prefix);
  if (typeof choice === 'string') faults.push(`--${choice}`);
  const config = readConfig(io.env, rest);
  const { issuer, audience } = config.auth;
  const secret = secretFor('a token', config, faults, io);
  const claims = { issuer, audience, actions, tools, prefix };
  const signed = signToken({ secret, user, scopes, ttlSeconds, now: Date.now(), ...claims });
  io.print(`${await signed}\n`);
}

/** Returns the canonical user id. If it is missing or invalid, adds a fault and returns an empty text. */
function readUser(flag: string, text: string | undefined, faults: string[]): string {
  if (text === undefined) faults.push(`${flag}: is required`);
  try {
    return text === undefined ? '' : canonicalUser(text);
  } catch {
    faults.push(`${flag}: expected 1 to 128 characters without control characters and without "/"`);
    return '';
  }
}

/**
 * Returns the secret that signs `what`: the configured one, or the one that a trial has stored. Throws UsageError with
 * all `faults`, or if there is no secret.
 */
function secretFor(what: string, { generated, auth }: Config, faults: readonly string[], { env }: Io): string {
  if (generated && faults.length === 0) return keptSecret(env);
  const missing = `CALLBOARD_SECRET: is required to sign ${what}, and must be the secret that the relay uses`;
  const all = auth.secret === null && !generated ? [...faults, missing] : faults;
  if (all.length > 0 || auth.secret === null) throw new UsageError(all.join('\n'));
  return auth.secret;
}

function readScopes(text: string, faults: string[]): readonly string[] {
  const scopes = text.split(/[\s,]+/).filter((scope) => scope !== '');
  const unknown = scopes.filter((scope) => !SCOPES.includes(scope));
  if (unknown.length > 0) faults.push(`--scope: "${unknown.join(', ')}" is none of ${SCOPES.join(', ')}`);
  return scopes;
}

function readTtl(text: string | undefined, otherwise: number, faults: string[]): number {
  if (text === undefined) return otherwise;
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (seconds < 1 || seconds > TTL_MAX) faults.push(`--ttl: expected 1 to ${TTL_MAX} seconds`);
  return seconds;
}

/**
 * Prints a sign-in link that any node of the deployment accepts. The audit and the token contain the operator's name.
 */
export async function consoleLink(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--url', '--name'] });
  const faults: string[] = [];
  const config = readConfig(io.env, rest);
  const name = readUser('--name', own.get('--name') ?? loginName(), faults);
  const url = own.get('--url') ?? addressOf(config);
  if (!isHttpUrl(url)) faults.push('--url: expected an http or https address');
  const secret = secretFor('the link', config, faults, io);
  const ticket = await signTicket({ secret, name, now: Date.now() });
  io.print(`${url.replace(/\/+$/, '')}/console/#code=${ticket}\n`);
  io.complain(`It signs ${name} in as an administrator, once, within ${SIGN_IN_TICKET_SECONDS} seconds.\n`);
}

/** Returns the command that prints another sign-in link for the trial at this address. */
export function signInLine(url: string): string {
  return pasteable('console', ...(url === DEFAULT_URL ? [] : ['--url', url]));
}

/** The address of a relay with the default host, port and base path. */
const DEFAULT_URL = 'http://127.0.0.1:4400';

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'operator';
  }
}

/** The default of `--within`, in milliseconds: the time limit of the relay's answer. */
const WITHIN_MS = 3_000;

/**
 * Requests `/readyz` of the relay on this machine and prints the answer. Host, port and base path come from the
 * settings. Made for health checks of containers whose images lack curl. Throws if the relay is not ready, or does not
 * answer within 3 s (`--within`).
 */
export async function healthcheck(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--within'] });
  const within = Number(own.get('--within') ?? WITHIN_MS);
  if (!Number.isInteger(within) || within < 1) throw new UsageError('--within: expected milliseconds');
  const url = `${addressOf(readConfig(io.env, rest))}/readyz`;
  const { status, body } = await ask(url, within);
  if (status !== 200) throw new CommandError(`${url} answers ${status}: ${body}`);
  io.print(`${body}\n`);
}

/**
 * Requests a URL of the relay. The certificate is not verified, because it names the relay's public host. The request
 * stays on this machine and contains no secret.
 */
export async function ask(url: string, within: number): Promise<{ readonly status: number; readonly body: string }> {
  const signal = AbortSignal.timeout(within);
  const open = url.startsWith('https:') ? https.get : http.get;
  try {
    const request = open(url, { agent: false, signal, rejectUnauthorized: false });
    const [answer]: IncomingMessage[] = await once(request, 'response', { signal });
    if (!answer) throw new Error('no response');
    return { status: answer.statusCode ?? 0, body: (await text(answer)).trim() };
  } catch (error) {
    throw new CommandError(
      `${url} does not answer (${signal.aborted ? `within ${within} ms` : messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error)})`,
    );
  }
}

/**
 * Returns the address at which this machine reaches a relay. If the relay listens on all addresses, this is loopback.
 */
export function addressOf({ host, port, basePath, tls }: Config): string {
  return `${tls ? 'https' : 'http'}://${reachable(host)}:${port}${basePath}`;
}

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::' || host === '[::]') return '[::1]';
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** Prints the GraphQL schema. Throws UsageError for any argument. */
export async function schema(argv: readonly string[], io: Io): Promise<void> {
  if (argv.length > 0) throw new UsageError(`schema takes no flags: ${argv.join(' ')}`);
  // Loaded only here, because no other command of this file needs the schema.
  const { printedSchema } = await import('../graphql/schema/schema.ts');
  io.print(printedSchema());
}

/** Removes expired payloads from the spill directory and prints their number. Relays may be using the directory. */
export async function spillClean(argv: readonly string[], io: Io): Promise<void> {
  const { spillDir, dataDir, logLevel } = readConfig(io.env, argv);
  const { DataDirectory } = await import('../backends/journal/files.ts');
  const root = spillDir ?? (dataDir === null ? null : new DataDirectory(dataDir).spill);
  if (root === null)
    throw new UsageError('CALLBOARD_SPILL_DIR or CALLBOARD_DATA_DIR: is required: without one, payloads are in memory');
  const { cleanSpillDirectory } = await import('../callboard.ts');
  const removed = await cleanSpillDirectory(root, createLog({ level: logLevel, secrets: [] }));
  io.print(`removed ${removed} expired ${removed === 1 ? 'payload' : 'payloads'}\n`);
}
