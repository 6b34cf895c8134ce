/** Checks that all nodes of a deployment use the same directory for large payloads. */
import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CallboardError } from '../../core/errors.ts';
import { rootOf } from './keys.ts';
import type { Store } from './store.ts';

const MARKER = '.callboard-directory';
/** The length of a UUID as text, in characters. */
const ID_CHARS = 36;

/**
 * Proves that all nodes of the deployment mount the same directory: it contains a marker file with an id that the store
 * knows. The first node creates the marker. Throws `invalid_argument` if the directory is another one or cannot be
 * written.
 */
export async function proveDirectory(store: Store, root: string): Promise<void> {
  const key = rootOf(store.namespace);
  const known = await store.read([['HGET', key, 'spill']]);
  const found = await markerOf(root, known[0] === null);
  if (found !== null) await store.read([['HSETNX', key, 'spill', found]]);
  const [expected] = await store.read([['HGET', key, 'spill']]);
  if (found === null || found !== expected)
    throw new CallboardError(
      'invalid_argument',
      'SPILL_DIR: this is not the directory that the other nodes of the deployment use: mount one on all of them',
    );
}

/**
 * Returns the id in the directory's marker; null if there is no marker. `create`: whether a missing marker is created.
 */
async function markerOf(root: string, create: boolean): Promise<string | null> {
  const path = join(root, MARKER);
  try {
    if (create) {
      await mkdir(root, { recursive: true, mode: 0o700 });
      await createMarker(path);
    }
    const id = await readFile(path, 'utf8');
    return id.length === ID_CHARS ? id : null;
  } catch (error) {
    unlessCode('ENOENT')(error);
    return null;
  }
}

/**
 * Writes the marker under a temporary name and then links it to its real name, so that another node that starts at the
 * same time reads either the whole id or no marker.
 */
async function createMarker(path: string): Promise<void> {
  const id = randomUUID();
  const draft = `${path}.${id}`;
  await writeFile(draft, id, { flag: 'wx', mode: 0o600 });
  try {
    await link(draft, path).catch(unlessCode('EEXIST'));
  } finally {
    await rm(draft, { force: true });
  }
}

function unlessCode(expected: string): (error: unknown) => void {
  return (error) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (code !== expected)
      throw new CallboardError('invalid_argument', `SPILL_DIR: the directory cannot be used (${code})`, {
        cause: error,
      });
  };
}
