import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CallboardError } from '../../../core/errors.ts';
import { rootOf } from '../keys.ts';
import type { Store } from '../store/store.ts';

const MARKER = '.callboard-directory';
/** Of a UUID. */
const ID_CHARS = 36;

/**
 * Proves that the directory is the one that all nodes of the deployment mount: it holds a marker whose id the store knows. The first node
 * lays it. Throws `invalid_argument` where it is another directory, or cannot be written.
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

/** The id in it; null where it has none and none is to be laid. */
async function markerOf(root: string, lay: boolean): Promise<string | null> {
  const path = join(root, MARKER);
  try {
    if (lay) {
      await mkdir(root, { recursive: true, mode: 0o700 });
      await layMarker(path);
    }
    const id = await readFile(path, 'utf8');
    return id.length === ID_CHARS ? id : null;
  } catch (error) {
    unlessCode('ENOENT')(error);
    return null;
  }
}

/** Written aside and linked into place, so that another node that starts now reads a whole id or none. */
async function layMarker(path: string): Promise<void> {
  const id = randomUUID();
  const aside = `${path}.${id}`;
  await writeFile(aside, id, { flag: 'wx', mode: 0o600 });
  try {
    await link(aside, path).catch(unlessCode('EEXIST'));
  } finally {
    await rm(aside, { force: true });
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
