/** Stores the credentials of a trial: a relay that generates its credentials because none are configured. */
import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import type { Config } from '../config.ts';
import { isRecord } from '../protocol/json.ts';
import { VERSION } from '../version.ts';
import { IN_CHECKOUT } from './installation.ts';
import { UsageError } from './exit-codes.ts';
import { homeOf, messageOf, type Io } from './io.ts';

type Env = Io['env'];
/** The administrator's token of a trial, and the secret that signs the trial's tokens. */
type TrialCredentials = { readonly adminToken: string; readonly secret: string };

type KeptTrial = {
  /** The relay's configuration, with the credentials of the trial. */
  readonly config: Config;
  /** The file that stores the credentials. Null if the credentials are configured, or valid for this run only. */
  readonly keptIn: string | null;
  /**
   * What to do if the data directory cannot be used. Absent if the configuration names a data directory: the relay must
   * then fail.
   */
  readonly onDataUnusable?: (reason: string) => void;
};

/**
 * Replaces generated credentials by those that an earlier trial stored, or stores the generated ones. `fresh`: replaces
 * the stored ones. If the file cannot be used, prints a warning and keeps the generated credentials for this run only.
 * A trial stores its data next to its credentials, unless the configuration names a data directory. Throws UsageError
 * if `fresh` is set and credentials are configured.
 */
export function keepTrial(config: Config, fresh: boolean, { env, complain }: Pick<Io, 'env' | 'complain'>): KeptTrial {
  const { generated, auth } = config;
  if (!generated && fresh) throw new UsageError('--fresh: makes new credentials of a trial, and yours are configured');
  const [adminToken] = auth.adminTokens;
  if (!generated || adminToken === undefined || auth.secret === null) return { config, keptIn: null };
  const path = credentialsPath(env);
  if (path === null) {
    complain(`The credentials of this trial last for this run only: ${NO_HOME}\n`);
    return { config, keptIn: null };
  }
  const made = { adminToken, secret: auth.secret };
  try {
    const kept = (fresh ? null : readKept(path)) ?? keep(path, made, fresh);
    const withKept = { ...config, auth: { ...auth, adminTokens: [kept.adminToken], secret: kept.secret } };
    if (config.dataDir !== null) return { config: withKept, keptIn: path };
    return {
      config: { ...withKept, dataDir: join(dirname(path), 'data') },
      keptIn: path,
      onDataUnusable: (reason) => complain(`This trial keeps nothing but its credentials: ${reason}\n`),
    };
  } catch (error) {
    complain(`The credentials of this trial last for this run only: ${faultOf(path, error)}\n`);
    return { config, keptIn: null };
  }
}

/** Returns the secret that a trial has stored. Throws UsageError if none is stored, or if the file cannot be used. */
export function keptSecret(env: Env): string {
  const path = credentialsPath(env);
  if (path === null) throw new UsageError(`CALLBOARD_SECRET: is required. ${NO_HOME}`);
  try {
    const kept = readKept(path);
    if (kept) return kept.secret;
  } catch (error) {
    throw new UsageError(faultOf(path, error));
  }
  throw new UsageError('CALLBOARD_SECRET: is required, unless a relay that makes its own credentials has run here');
}

const NO_HOME = 'This user has no home directory, and neither HOME nor XDG_STATE_HOME names one.';

function faultOf(path: string, error: unknown): string {
  return `${path} cannot be used: ${messageOf(error)}.`;
}

// Finds, reads and writes the file. Its directory belongs to one trial, and may contain the trial's data too.

const OWNER_ONLY = 0o600;
const FOLDER_OF_OWNER = 0o700;
const OTHERS = 0o077;

/**
 * Returns the path of the credentials file in the user's state directory. Each checkout, and each version of the
 * package, has its own. Null if the user has no state directory.
 */
function credentialsPath(env: Env): string | null {
  const root = join(import.meta.dirname, '..', '..');
  const checkout = createHash('sha256').update(root).digest('hex').slice(0, 12);
  const trial = IN_CHECKOUT ? `checkout-${checkout}` : `package-${VERSION}`;
  const home = stateHome(env);
  return home === null ? null : join(home, 'callboard', trial, 'credentials.json');
}

/**
 * Returns `XDG_STATE_HOME` if it is an absolute path, and otherwise the platform's directory for the state of programs.
 * Null if the user has no home directory.
 */
function stateHome(env: Env): string | null {
  const given = env['XDG_STATE_HOME'] ?? '';
  if (isAbsolute(given)) return given;
  const home = homeOf(env);
  if (process.platform === 'win32' && env['LOCALAPPDATA']) return env['LOCALAPPDATA'];
  if (home === null) return null;
  if (process.platform === 'win32') return join(home, 'AppData', 'Local');
  return process.platform === 'darwin' ? join(home, 'Library', 'Application Support') : join(home, '.local', 'state');
}

/** Reads the credentials; null if there is no file. Throws if others have access to the file, or if it is damaged. */
function readKept(path: string): TrialCredentials | null {
  let file: number;
  try {
    // Symbolic links are not followed, and opening a pipe does not block.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  try {
    const fault = faultOfOwner(file);
    if (fault !== null) throw new Error(fault);
    const credentials = parsed(readFileSync(file, 'utf8'));
    if (!credentials) throw new Error('it does not hold the credentials of a trial; --fresh writes it again');
    return credentials;
  } finally {
    closeSync(file);
  }
}

function faultOfOwner(file: number): string | null {
  const stats = fstatSync(file);
  if (!stats.isFile()) return 'it is not a file';
  const user = process.getuid?.();
  // Windows has no owners and modes of this kind.
  if (user === undefined) return null;
  if (stats.uid !== user) return 'it belongs to another user';
  return (stats.mode & OTHERS) === 0 ? null : 'others may read it; --fresh writes it again';
}

function parsed(text: string): TrialCredentials | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value)) return null;
    const { admin_token: adminToken, secret } = value;
    return isKey(adminToken) && isKey(secret) ? { adminToken, secret } : null;
  } catch {
    return null;
  }
}

/** Whether the value may be a key that a trial has made: 24 or 32 random bytes in base64url. */
function isKey(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{32,43}$/.test(value);
}

/**
 * Writes the file atomically, and returns its content. If another trial has written the file first, these are the
 * credentials of that trial.
 */
function keep(path: string, { adminToken, secret }: TrialCredentials, replace: boolean): TrialCredentials {
  mkdirSync(dirname(path), { recursive: true, mode: FOLDER_OF_OWNER });
  const written = `${path}.${randomUUID()}`;
  const text = `${JSON.stringify({ admin_token: adminToken, secret }, null, 2)}\n`;
  writeFileSync(written, text, { mode: OWNER_ONLY, flag: 'wx' });
  try {
    if (replace) renameSync(written, path);
    else linkSync(written, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    rmSync(written, { force: true });
  }
  return readKept(path) ?? { adminToken, secret };
}
