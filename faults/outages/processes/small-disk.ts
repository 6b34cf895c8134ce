/** Creates a folder with a small file system of its own, which can be filled and made read-only. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;
/** The maximum number of attempts to remount the file system, because it may still be in use. */
const REMOUNTS = 50;

/** The reason why a directory cannot be filled on this machine. */
export const NOT_MOUNTED = 'a small file system cannot be mounted';

/** A directory of a run. If the machine permits it, the directory is a separate small file system. */
export type SmallDisk = Disposable & {
  readonly path: string;
  /**
   * Whether the directory is a separate file system, which has its own size and can be made read-only even for root.
   */
  readonly mounted: boolean;
  /** Returns the paths of all stored payloads. */
  files(): readonly string[];
  /** Makes the directory writable or read-only. Returns false if this machine cannot do that. */
  setWritable(writable: boolean): boolean;
  /**
   * Removes all free room from the file system, or gives it its size back. Returns false if the directory is not a
   * separate file system.
   */
  setFull(full: boolean): boolean;
};

/** Creates the folder. `bytes`: the size of its file system. */
export function makeSmallDisk(bytes: number): SmallDisk {
  const size = Math.ceil(bytes / MIB);
  const path = mkdtempSync(join(tmpdir(), 'callboard-faults-disk-'));
  const mounted = run('mount', '-t', 'tmpfs', '-o', `size=${size}m`, 'tmpfs', path);
  const remove = (): void => {
    if (mounted) run('umount', '-l', path);
    rmSync(path, { recursive: true, force: true });
  };
  // Needed because this program may be interrupted.
  process.once('exit', remove);
  return {
    path,
    mounted,
    files: () =>
      readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /^[0-9a-f]{32}$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name)),
    setWritable(writable) {
      if (mounted) return remount(path, () => (writable ? 'rw' : 'ro'));
      if (process.getuid?.() === 0) return false;
      for (const folder of foldersIn(path)) chmodSync(folder, writable ? 0o700 : 0o500);
      return true;
    },
    // Changes the size instead of writing a file, so that a large file system is full at once and without using as much
    // memory.
    setFull: (full) => mounted && remount(path, () => `size=${full ? usedBytes(path) : size * MIB}`),
    [Symbol.dispose]() {
      process.off('exit', remove);
      remove();
    },
  };
}

/**
 * Tries repeatedly to remount the file system. Remounting is refused while a file is being written, and with a size
 * below the used bytes, which may grow meanwhile.
 */
function remount(path: string, option: () => string): boolean {
  for (let turn = 0; turn < REMOUNTS; turn++) {
    if (run('mount', '-o', `remount,${option()}`, path)) return true;
  }
  return false;
}

/** Returns the bytes of the blocks in use, but at least one block, because a size of 0 means no limit. */
function usedBytes(path: string): number {
  const { blocks, bfree, bsize } = statfsSync(path);
  return Math.max(1, blocks - bfree) * bsize;
}

function foldersIn(path: string): readonly string[] {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return [path, ...entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))];
}

function run(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}
