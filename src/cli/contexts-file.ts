/** Reads and writes the file of an operator's contexts. A context is a named relay with the source of its token. */
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRecord } from '../protocol/json.ts';
import { OperatorFailure, usageFailure, EXIT } from './exit-codes.ts';
import { homeOf } from './io.ts';

/** A context: a relay, and at most one source of its token. */
export type RelayContext = {
  readonly url: string;
  readonly token_command?: string;
  readonly token_file?: string;
  /** The token itself. Present only if the operator asked to store it in this file. */
  readonly token?: string;
};

export type ContextsFile = {
  readonly current: string | null;
  /** The context that was current before the present one; null if there was none. */
  readonly previous: string | null;
  readonly contexts: Readonly<Record<string, RelayContext>>;
};

const OWNER_ONLY = 0o600;
const FOLDER_OF_OWNER = 0o700;
const OTHERS = 0o077;
const NONE: ContextsFile = { current: null, previous: null, contexts: {} };

/**
 * Returns the path of the contexts file: `$XDG_CONFIG_HOME/callboard/contexts.json`, or below `~/.config` by default.
 * Null if the user has no home directory.
 */
export function contextsPath(env: Env): string | null {
  const home = homeOf(env);
  const folder = env['XDG_CONFIG_HOME'] || (home === null ? null : join(home, '.config'));
  return folder === null ? null : join(folder, 'callboard', 'contexts.json');
}

/**
 * Reads the contexts. If the file does not exist, there are none. Throws OperatorFailure if the file cannot be read or
 * has another format, and if it contains a token and other users may read it.
 */
export async function readContexts(env: Env): Promise<ContextsFile> {
  const path = contextsPath(env);
  if (path === null) return NONE;
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

/**
 * Writes the contexts to a file that only its owner may read. A concurrent reader sees either the old file or the new
 * one.
 */
export async function writeContexts(env: Env, file: ContextsFile): Promise<void> {
  const path = contextsPath(env);
  if (path === null)
    throw usageFailure('Contexts need a folder: this user has no home directory; set HOME or XDG_CONFIG_HOME.');
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_OF_OWNER });
  const fresh = `${path}.${randomUUID()}`;
  await writeFile(fresh, `${JSON.stringify(file, null, 2)}\n`, { mode: OWNER_ONLY, flag: 'wx' });
  // The umask may have changed the mode of the new file, so the mode is set explicitly.
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

export type Env = Readonly<Record<string, string | undefined>>;
