/** Tests a spill directory on a disk that is full or fails. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createDirectorySpill } from '../../src/backends/spill/directory.ts';
import { createSpillFiles } from '../../src/backends/spill/files.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { spillShares, textOf } from '../contract/spill.ts';
import { FakeClock } from '../kit/clock.ts';

/** The step of writing a file at which the disk fails, and the error code of that failure; '' for no failure. */
const fault = vi.hoisted(() => ({ step: '', code: '' }));

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const failing = (step: string): void => {
    if (fault.step === step)
      throw Object.assign(new Error(`${fault.code}: no, '/a/secret/path'`), { code: fault.code });
  };
  return {
    ...real,
    async open(...args: Parameters<typeof real.open>) {
      failing('open');
      const file = await real.open(...args);
      const { writeFile, sync } = file;
      if (String(args[0]).includes('/.')) {
        file.writeFile = async (...given) => {
          // A full disk still accepts the first bytes.
          if (fault.step === 'write') await file.write('beginning');
          failing('write');
          return writeFile.apply(file, given);
        };
        file.sync = async () => {
          failing('sync');
          return sync.apply(file);
        };
      }
      return file;
    },
    async rename(...args: Parameters<typeof real.rename>) {
      failing('rename');
      return real.rename(...args);
    },
    async unlink(...args: Parameters<typeof real.unlink>) {
      failing('unlink');
      return real.unlink(...args);
    },
    async mkdir(...args: Parameters<typeof real.mkdir>) {
      failing('mkdir');
      return real.mkdir(...args);
    },
  };
});

describe('a disk that fails', () => {
  let root = '';
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'callboard-full-'));
  });
  afterEach(async () => {
    fault.step = '';
    await rm(root, { recursive: true, force: true });
  });

  it.each([
    ['mkdir', 'ENOSPC'],
    ['open', 'EMFILE'],
    ['write', 'ENOSPC'],
    ['write', 'EDQUOT'],
    ['sync', 'EIO'],
    ['rename', 'EROFS'],
  ])('at %s with %s loses one payload, leaves nothing behind, and takes no room from the next', async (step, code) => {
    const clock = new FakeClock();
    const store = createDirectorySpill({
      random: createCrypto('test'),
      files: createSpillFiles(root),
      clock,
      log: silentLog,
      shares: spillShares(25_000),
    });
    for (let i = 0; i < 3; i++) {
      fault.step = step;
      fault.code = code;
      const error = await store.put(textOf(20_000), clock.now() + 3600_000, 'alice').catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'store_full' });
      expect(String(error)).not.toContain('secret');
    }
    fault.step = '';
    const left = await readdir(root, { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual([]);
    const ref = await store.put(textOf(20_000), clock.now() + 3600_000, 'alice');
    expect(await store.read(ref)).toMatchObject({ state: 'present' });
  });

  it('during cleaning does not fail the write that triggered it, and is logged', async () => {
    const clock = new FakeClock();
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (_fields: object, message: string) => void warnings.push(message) };
    const store = createDirectorySpill({ random: createCrypto('test'), files: createSpillFiles(root), clock, log });
    const past = await store.put(textOf(20_000), clock.now() + 1, 'alice');
    await clock.advance(3 * 3600_000);
    fault.step = 'unlink';
    fault.code = 'EBUSY';
    const ref = await store.put(textOf(20_000), clock.now() + 3600_000, 'alice');
    await expect.poll(() => warnings).toEqual(['could not clean the spill directory']);
    expect(await store.read(ref)).toMatchObject({ state: 'present' });
    expect(await store.read(past)).toEqual({ state: 'expired' });
    fault.step = '';
    expect(await store.clean()).toBe(1);
  });
});
