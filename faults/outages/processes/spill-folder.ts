/** Creates the folder of large payloads of a run: a small file system that can be filled and made read-only. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;
/** The minimum size of the folder's file system, in MiB. */
const LEAST_MIB = 256;
/** The number of attempts to mount the folder again, because it may still be in use. */
const REMOUNTS = 50;

/**
 * The directory in which the relays of a run keep large payloads. If the machine permits it, the directory is a small
 * file system of its own.
 */
export type SpillFolder = Disposable & {
  readonly path: string;
  /** Whether the folder is a separate file system, which has its own size and can be made read-only even for root. */
  readonly mounted: boolean;
  /** Returns the paths of all stored payloads. */
  files(): readonly string[];
  /** Makes the directory writable or read-only. Returns false if that is not possible on this machine. */
  setWritable(writable: boolean): boolean;
};

/** Creates the folder. `bytes`: the size of the payloads that it must have room for. */
export function makeSpillFolder(bytes: number): SpillFolder {
  const size = Math.max(LEAST_MIB, Math.ceil((1.5 * bytes) / MIB));
  const path = mkdtempSync(join(tmpdir(), 'callboard-faults-spill-'));
  const mounted = run('mount', '-t', 'tmpfs', '-o', `size=${size}m`, 'tmpfs', path);
  return {
    path,
    mounted,
    files: () =>
      readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /^[0-9a-f]{32}$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name)),
    setWritable(writable) {
      if (mounted) return remount(path, writable);
      if (process.getuid?.() === 0) return false;
      for (const folder of foldersIn(path)) chmodSync(folder, writable ? 0o700 : 0o500);
      return true;
    },
    [Symbol.dispose]() {
      if (mounted) run('umount', '-l', path);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Tries repeatedly to mount the folder again, because mounting is refused while a file is being written. */
function remount(path: string, writable: boolean): boolean {
  for (let turn = 0; turn < REMOUNTS; turn++) {
    if (run('mount', '-o', `remount,${writable ? 'rw' : 'ro'}`, path)) return true;
  }
  return false;
}

function foldersIn(path: string): readonly string[] {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return [path, ...entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))];
}

function run(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}
