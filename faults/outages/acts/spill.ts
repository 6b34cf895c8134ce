/**
 * Carries out the faults of the folder of large payloads: files that are removed, damaged or replaced by symbolic links,
 * and a folder that cannot be written.
 */
import {
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Act } from './act.ts';
import { given, sleep } from './waiting.ts';
import { fillerOf } from '../log/events.ts';
import { between, pick, seeded } from '../random.ts';
import type { World } from '../world.ts';

/** The number of files that a fault of single files affects. */
const FILES = 20;
/** The bytes that are written repeatedly to fill the disk. */
const CHUNK = Buffer.alloc(64 * 1024);

export const ACTS_OF_SPILL = {
  async 'spill-remove'(world, { id }) {
    for (const path of someOf(world, id)) unlinkSync(path);
  },
  async 'spill-flip'(world, { id }) {
    const random = seeded(id);
    for (const path of someOf(world, id)) {
      const bytes = readFileSync(path);
      const at = between(random, 0, bytes.length - 1);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << between(random, 0, 7));
      writeAside(path, bytes);
    }
  },
  /**
   * Replaces payload files by links. A relay that follows such a link reads a file outside the folder. The file has the
   * expected size and the data of another user.
   */
  async 'spill-link'(world, { id }) {
    for (const path of someOf(world, id)) {
      const target = join(world.folder, `planted-${id}-${path.slice(-32)}`);
      writeFileSync(target, fillerOf({ user: 'nobody', command: 'planted' }, statSync(path).size));
      unlinkSync(path);
      symlinkSync(target, path);
    }
  },
  async 'spill-shut'(world, { holdMs }) {
    const spill = given(world.spill);
    if (!spill.setWritable(false)) return `${tmpdir()} can be made read-only neither by mounting nor by rights`;
    await sleep(holdMs);
    if (!spill.setWritable(true)) throw new Error('the directory stays read-only');
    return undefined;
  },
  async 'spill-full'(world, { holdMs }) {
    const spill = given(world.spill);
    if (!spill.mounted) return 'a small file system cannot be mounted';
    const ballast = join(spill.path, 'ballast');
    fill(ballast);
    await sleep(holdMs);
    rmSync(ballast);
    return undefined;
  },
} as const satisfies Record<string, Act>;

function someOf({ spill }: World, seed: number): readonly string[] {
  const random = seeded(seed);
  const files = given(spill).files();
  return files.length === 0 ? [] : [...new Set(Array.from({ length: FILES }, () => pick(random, files)))];
}

function writeAside(path: string, bytes: Buffer): void {
  writeFileSync(`${path}.aside`, bytes);
  renameSync(`${path}.aside`, path);
}

function fill(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (;;) writeSync(file, CHUNK);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    closeSync(file);
  }
}
