/**
 * Decides which relay a command talks to, and where its token comes from: flags, environment or a context. Also reads
 * and writes the file of contexts.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isRecord } from '../protocol/json.ts';
import { OperatorFailure, usageFailure, EXIT, isHttpUrl } from './io.ts';

export type RelayFlags = Readonly<Record<string, string | undefined>>;
type Env = Readonly<Record<string, string | undefined>>;

export type RelaySettings = {
  /** The base address of the relay. */
  readonly url: string;
  /** What named the address, as a text for people: a flag, a variable, a context or the default. */
  readonly urlFrom: string;
  /** Reads the token from its source. Rejects with OperatorFailure if there is none. */
  readonly token: () => Promise<string>;
  /** A description of where the token comes from, for people. Null: nothing names a source. */
  readonly tokenFrom: string | null;
  /** Whether reading the token runs a command, which may ask a person for a passphrase. */
  readonly runsCommand: boolean;
};

const DEFAULT_URL = 'http://127.0.0.1:4400';

/**
 * Reads the flags `context`, `url`, `tokenFile` and `tokenCommand`, the variables CALLBOARD_CONTEXT, CALLBOARD_URL and
 * CALLBOARD_TOKEN, and the file of contexts. The token of a context is sent to the relay of that context only. No flag
 * holds a token, since other users of the machine can read arguments. Throws OperatorFailure for settings that do not
 * fit together.
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
    ...{ url, urlFrom, token: source?.give ?? noToken },
    ...{ tokenFrom: source?.from ?? null, runsCommand: source?.runsCommand ?? false },
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
 * Returns the source of the token: a flag for the token, then CALLBOARD_TOKEN, then the context. A context that a flag
 * names goes before CALLBOARD_TOKEN, which may belong to another relay.
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

/** Returns what the token command printed. Errors do not repeat its output, since it may hold a secret. */
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

// Reads and writes the file of an operator's contexts. A context names a relay and the source of the token for it.

/** One context: a relay, and at most one source of its token. */
export type RelayContext = {
  readonly url: string;
  readonly token_command?: string;
  readonly token_file?: string;
  /** The token itself. Present only if the operator asked to store it. */
  readonly token?: string;
};

export type ContextsFile = {
  readonly current: string | null;
  /** The context that was current before; null if there was none. */
  readonly previous: string | null;
  readonly contexts: Readonly<Record<string, RelayContext>>;
};

const OWNER_ONLY = 0o600;
const FOLDER_OF_OWNER = 0o700;
const OTHERS = 0o077;
const NONE: ContextsFile = { current: null, previous: null, contexts: {} };

/** Returns the path of the contexts file: `$XDG_CONFIG_HOME/callboard/contexts.json`, by default below `~/.config`. */
export function contextsPath(env: Env): string {
  const home = env['HOME'] ?? homedir();
  return join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'callboard', 'contexts.json');
}

/**
 * Reads the contexts; there are none if the file does not exist. Throws OperatorFailure for a file that cannot be read
 * or holds something else, and for a file that holds a token and that other users may read.
 */
export async function readContexts(env: Env): Promise<ContextsFile> {
  const path = contextsPath(env);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw faulty(path, `cannot be read (${error.code ?? error.message})`);
  });
  if (text === null) return NONE;
  const file = parsed(text);
  if (file === null) throw faulty(path, 'does not hold contexts');
  const holdsToken = Object.values(file.contexts).some(({ token }) => token !== undefined);
  if (holdsToken && ((await stat(path)).mode & OTHERS) !== 0)
    throw faulty(path, `holds a token and others may read it; run: chmod 600 ${path}`);
  return file;
}

/** Writes the contexts to a file that only its owner may read. A concurrent reader sees the old file or the new one. */
export async function writeContexts(env: Env, file: ContextsFile): Promise<void> {
  const path = contextsPath(env);
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_OF_OWNER });
  const fresh = `${path}.${randomUUID()}`;
  await writeFile(fresh, `${JSON.stringify(file, null, 2)}\n`, { mode: OWNER_ONLY, flag: 'wx' });
  // The umask may have reduced the mode of the new file, so the mode is set exactly.
  await chmod(fresh, OWNER_ONLY);
  await rename(fresh, path);
}

function faulty(path: string, what: string): OperatorFailure {
  return new OperatorFailure(EXIT.usage, 'invalid_contexts', `${path} ${what}`);
}

function parsed(text: string): ContextsFile | null {
  try {
    const value: unknown = JSON.parse(text);
    return isContextsFile(value) ? value : null;
  } catch {
    return null;
  }
}

function isContextsFile(value: unknown): value is ContextsFile {
  if (!isRecord(value) || !isRecord(value['contexts'])) return false;
  const named = [value['current'], value['previous']].every((name) => name === null || typeof name === 'string');
  return named && Object.values(value['contexts']).every(isRelayContext);
}

function isRelayContext(value: unknown): value is RelayContext {
  if (!isRecord(value) || typeof value['url'] !== 'string') return false;
  return ['token_command', 'token_file', 'token'].every((name) => ['string', 'undefined'].includes(typeof value[name]));
}
