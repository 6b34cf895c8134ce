/**
 * Determines which relay a command uses and where its token comes from: flags, environment variables, or the contexts
 * file.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type RelayContext, readContexts, type ContextsFile, type Env } from './contexts-file.ts';
import { OperatorFailure, usageFailure, EXIT } from './exit-codes.ts';
import { isHttpUrl } from './io.ts';

export type RelayFlags = Readonly<Record<string, string | undefined>>;

export type RelaySettings = {
  /** The base address of the relay. */
  readonly url: string;
  /** Where the address comes from, as a text for people: a flag, a variable, a context or the default. */
  readonly urlFrom: string;
  /** Reads the token from its source. Rejects with OperatorFailure if there is none. */
  readonly token: () => Promise<string>;
  /** Where the token comes from, as a text for people; null if no source is configured. */
  readonly tokenFrom: string | null;
  /** Whether reading the token runs a command, which may ask a person for a passphrase. */
  readonly runsCommand: boolean;
};

const DEFAULT_URL = 'http://127.0.0.1:4400';

/**
 * Reads the flags `context`, `url`, `tokenFile` and `tokenCommand`, the variables CALLBOARD_CONTEXT, CALLBOARD_URL and
 * CALLBOARD_TOKEN, and the contexts file. The token of a context is sent only to the relay of this context. No flag
 * contains a token, because other users of the machine can read the arguments of a process. Throws OperatorFailure if
 * the settings contradict each other.
 */
export async function readSettings(flags: RelayFlags, env: Env): Promise<RelaySettings> {
  if (flags['context'] !== undefined && flags['url'] !== undefined)
    throw usageFailure('--context and --url: only one can name the relay');
  const named = flags['context'] === undefined ? namedUrl(flags, env) : null;
  const context = named ? null : await contextOf(flags, env);
  const { url, from: urlFrom } = named ?? context ?? { url: DEFAULT_URL, from: 'default' };
  if (!isHttpUrl(url)) throw usageFailure('--url: expected an http or https address');
  const source = tokenSource(flags, env, context);
  return {
    url,
    urlFrom,
    token: source?.give ?? noToken,
    tokenFrom: source?.from ?? null,
    runsCommand: source?.runsCommand ?? false,
  };
}

type Named = { readonly url: string; readonly from: string };
type NamedContext = Named & { readonly context: RelayContext; readonly byFlag: boolean };
type Source = { readonly give: () => Promise<string>; readonly from: string; readonly runsCommand?: true };

function namedUrl(flags: RelayFlags, env: Env): Named | null {
  if (flags['url'] !== undefined) return { url: flags['url'], from: '--url' };
  const url = env['CALLBOARD_URL'] ?? '';
  return url === '' ? null : { url, from: 'CALLBOARD_URL' };
}

async function contextOf(flags: RelayFlags, env: Env): Promise<NamedContext | null> {
  const wanted = flags['context'] ?? (env['CALLBOARD_CONTEXT'] || undefined);
  const file = await readContexts(env);
  const name = wanted ?? file.current;
  if (name === null) return null;
  const context = contextNamed(file, name);
  return { url: context.url, from: `context ${name}`, context, byFlag: flags['context'] !== undefined };
}

/** Returns the context with this name. Throws OperatorFailure if there is none. */
export function contextNamed({ contexts }: ContextsFile, name: string): RelayContext {
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (!context) throw usageFailure(`there is no context "${name}"; callboard context ls lists them`);
  return context;
}

/**
 * Returns the source of the token. The order is: a flag for the token, CALLBOARD_TOKEN, the context. But a context that
 * a flag selects comes before CALLBOARD_TOKEN, which may belong to another relay.
 */
function tokenSource(flags: RelayFlags, env: Env, context: NamedContext | null): Source | null {
  const { tokenCommand, tokenFile } = flags;
  if (tokenCommand !== undefined)
    return { give: () => printedBy(tokenCommand), from: '--token-command', runsCommand: true };
  if (tokenFile !== undefined) return { give: () => contentOf(tokenFile), from: '--token-file' };
  const ofContext = context && sourceOfContext(context);
  const token = env['CALLBOARD_TOKEN'] ?? '';
  const ofEnv = token === '' ? null : { give: async () => token, from: 'CALLBOARD_TOKEN' };
  return context?.byFlag ? (ofContext ?? ofEnv) : (ofEnv ?? ofContext);
}

function sourceOfContext({ from, context }: NamedContext): Source | null {
  const { token_command, token_file, token } = context;
  if (token_command !== undefined)
    return { give: () => printedBy(token_command), from: `the command of ${from}`, runsCommand: true };
  if (token_file !== undefined) return { give: () => contentOf(token_file), from: `the file of ${from}` };
  return token === undefined ? null : { give: async () => token, from };
}

async function noToken(): Promise<string> {
  throw new OperatorFailure(
    EXIT.notAllowed,
    'unauthenticated',
    'There is no token: set CALLBOARD_TOKEN, give --token-file or --token-command, or use a context that has one.',
  );
}

/** Returns what the token command printed. Errors do not contain this output, because it may be secret. */
async function printedBy(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command]).catch((error: { code?: unknown }) => {
    throw noTokenFrom(`The token command ended with ${String(error.code)}.`);
  });
  return present(stdout, 'The token command printed nothing.');
}

async function contentOf(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => {
    throw noTokenFrom(`The token file ${file} cannot be read.`);
  });
  return present(text, `The token file ${file} is empty.`);
}

function present(text: string, otherwise: string): string {
  if (text.trim() === '') throw noTokenFrom(otherwise);
  return text.trim();
}

function noTokenFrom(message: string): OperatorFailure {
  return new OperatorFailure(EXIT.notAllowed, 'unauthenticated', message);
}
