/**
 * Runs the command `callboard console`, which prints a link with which an operator signs in to the console. A link
 * works once.
 */
import { userInfo } from 'node:os';
import { readConfig, type Config } from '../config.ts';
import { canonicalUser } from '../core/ids.ts';
import { SIGN_IN_TICKET_SECONDS } from '../core/limits.ts';
import { signTicket } from '../http/sign-in.ts';
import { UsageError, splitFlags, type Io } from './io.ts';

/**
 * Prints a sign-in link that any node of the deployment accepts. The operator's name is recorded in the audit and in
 * the token.
 */
export async function consoleLink(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--url', '--name'] });
  const faults: string[] = [];
  const config = readConfig(io.env, rest);
  const name = readName(own.get('--name') ?? loginName(), faults);
  const url = readUrl(own.get('--url') ?? addressOf(config), faults);
  const { secret } = config.auth;
  if (config.generated || secret === null)
    faults.push('CALLBOARD_SECRET: is required to sign the link, and must be the secret that the relay uses');
  if (faults.length > 0 || secret === null) throw new UsageError(faults.join('\n'));
  const ticket = await signTicket({ secret, name, now: Date.now() });
  io.print(`${url}/console/#code=${ticket}\n`);
  io.complain(`It signs ${name} in as an administrator, once, within ${SIGN_IN_TICKET_SECONDS} seconds.\n`);
}

/** Returns the address at which this machine reaches a relay with these settings. */
function addressOf({ host, port, basePath, tls }: Config): string {
  const known = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${tls ? 'https' : 'http'}://${known.includes(':') ? `[${known}]` : known}:${port}${basePath}`;
}

function readUrl(text: string, faults: string[]): string {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') faults.push('--url: expected an http or https address');
  return text.replace(/\/+$/, '');
}

function readName(text: string, faults: string[]): string {
  try {
    return canonicalUser(text);
  } catch {
    faults.push('--name: expected 1 to 128 characters without control characters and without "/"');
    return '';
  }
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'operator';
  }
}
