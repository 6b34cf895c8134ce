/**
 * Tests large payloads as files in a directory: file permissions, symbolic links, users' limits, disk errors and the
 * removal of expired files.
 */
import { execFileSync } from 'node:child_process';
import {
  appendFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createDirectorySpill } from '../../src/backends/spill/directory.ts';
import { createSpillFiles } from '../../src/backends/spill/files.ts';
import type { SpillRef, SpillStore } from '../../src/core/history/message.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { spillShares, textOf } from '../contract/spill.ts';
import { FakeClock } from '../kit/clock.ts';

const HOUR = 3600_000;

type Opened = AsyncDisposable & {
  readonly clock: FakeClock;
  readonly store: SpillStore;
  readonly parent: string;
  readonly root: string;
  put(expiresIn?: number): Promise<SpillRef>;
  pathOf(ref: SpillRef): string;
};

async function opened(): Promise<Opened> {
  const clock = new FakeClock();
  const parent = await mkdtemp(join(tmpdir(), 'callboard-spill-'));
  const root = join(parent, 'spill');
  const store = createDirectorySpill({
    random: createCrypto('test'),
    files: createSpillFiles(root),
    clock,
    log: silentLog,
  });
  return {
    clock,
    store,
    parent,
    root,
    put: (expiresIn = 5 * HOUR) => store.put(textOf(20_000), clock.now() + expiresIn, 'alice'),
    pathOf: ({ name, expiresAt }) => join(root, String(Math.ceil(expiresAt / HOUR)), name.slice(0, 2), name),
    [Symbol.asyncDispose]: () => rm(parent, { recursive: true, force: true }),
  };
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name);
}

describe('an object in a spill directory', () => {
  it('is one file in the folder of its expiry hour, readable by its owner only, with nothing else beside it', async () => {
    await using at = await opened();
    const ref = await at.put();
    expect(await readFile(at.pathOf(ref), 'utf8')).toBe(textOf(20_000));
    expect((await stat(at.pathOf(ref))).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(at.pathOf(ref)))).mode & 0o777).toBe(0o700);
    expect(await filesIn(at.root)).toEqual([ref.name]);
  });

  it('remains for another process that opens the directory later', async () => {
    await using at = await opened();
    const ref = await at.put();
    const later = createDirectorySpill({
      random: createCrypto('test'),
      files: createSpillFiles(at.root),
      clock: at.clock,
      log: silentLog,
    });
    expect(await later.read(ref)).toEqual({ state: 'present', text: textOf(20_000) });
  });

  it.each<[string, (path: string, at: Opened) => Promise<unknown>]>([
    ['was removed', (path) => unlink(path)],
    ['lost its end', (path) => writeFile(path, textOf(19_999))],
    ['grew', (path) => appendFile(path, ' ')],
    ['has one bit flipped', (path) => flipBit(path)],
    ['became a directory', async (path) => (await unlink(path), mkdir(path))],
    ['became a pipe that nobody writes to', async (path) => (await unlink(path), execFileSync('mkfifo', [path]))],
    ['became a link to its own content', (path, at) => linkTo(path, join(at.parent, 'elsewhere'))],
    ['lies in a shelf that became a link', (path, at) => linkTo(dirname(path), join(at.parent, 'elsewhere'))],
    ['lies in an hour that became a link', (path, at) => linkTo(dirname(dirname(path)), join(at.parent, 'elsewhere'))],
  ])('is unavailable when it %s', async (_what, damage) => {
    await using at = await opened();
    const ref = await at.put();
    await damage(at.pathOf(ref), at);
    expect(await at.store.read(ref)).toEqual({ state: 'unavailable' });
  });

  it('is read if the root itself is a link, as operators create them', async () => {
    await using at = await opened();
    const ref = await at.put();
    const link = join(at.parent, 'link');
    await symlink(at.root, link);
    const store = createDirectorySpill({
      random: createCrypto('test'),
      files: createSpillFiles(link),
      clock: at.clock,
      log: silentLog,
    });
    expect(await store.read(ref)).toMatchObject({ state: 'present' });
    expect(await store.read(await store.put(textOf(20_000), at.clock.now() + HOUR, 'alice'))).toMatchObject({
      state: 'present',
    });
  });

  it('is not written through a link in place of its hour folder', async () => {
    await using at = await opened();
    const outside = join(at.parent, 'outside');
    await mkdir(outside);
    await mkdir(at.root);
    await symlink(outside, join(at.root, String(Math.ceil((at.clock.now() + 5 * HOUR) / HOUR))));
    await expect(at.put()).rejects.toMatchObject({ code: 'store_full' });
    expect(await filesIn(outside)).toEqual([]);
  });
});

describe('the share of a user in a spill directory', () => {
  it('is restored after a restart from a digest in the names', async () => {
    await using at = await opened();
    const shares = () => spillShares(200_000, 50_000);
    const open = () =>
      createDirectorySpill({
        random: createCrypto('test'),
        files: createSpillFiles(at.root),
        clock: at.clock,
        log: silentLog,
        shares: shares(),
      });
    const put = (store: SpillStore, userId: string) => store.put(textOf(20_000), at.clock.now() + HOUR, userId);
    const first = open();
    for (let i = 0; i < 7; i++) await put(first, 'mallory');
    await expect(put(first, 'mallory')).rejects.toMatchObject({ code: 'share_exceeded' });
    const again = open();
    await expect(put(again, 'mallory')).rejects.toMatchObject({ code: 'share_exceeded', status: 429 });
    const [one, two] = [await put(again, 'alice'), await put(again, 'alice')];
    expect(one.name.slice(-12)).toBe(two.name.slice(-12));
    await expect(put(again, 'bob')).resolves.toMatchObject({ bytes: 20_000 });
    await expect(put(again, 'carol')).rejects.toMatchObject({ code: 'store_full', status: 503 });
    await again.discard(two);
    await expect(put(again, 'carol')).resolves.toMatchObject({ bytes: 20_000 });
    await at.clock.advance(2 * HOUR);
    expect(await again.clean()).toBe(10);
    await expect(put(again, 'mallory')).resolves.toMatchObject({ bytes: 20_000 });
  });
});

describe('a spill directory that cannot be written', () => {
  it('refuses with store_full, and does not reveal its path', async () => {
    await using at = await opened();
    await writeFile(at.root, 'a file where the directory should be');
    const error = await at.put().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'store_full', status: 503 });
    expect(String(error)).not.toContain(at.parent);
  });

  it('accepts payloads again as soon as it is writable', async () => {
    await using at = await opened();
    await writeFile(at.root, '');
    await expect(at.put()).rejects.toMatchObject({ code: 'store_full' });
    await unlink(at.root);
    expect(await at.store.read(await at.put())).toMatchObject({ state: 'present' });
  });
});

describe('cleaning a spill directory', () => {
  it('happens on a later write, whatever was requested in between', async () => {
    await using at = await opened();
    const old = await at.put(HOUR);
    await at.clock.advance(3 * HOUR);
    expect(await filesIn(at.root)).toEqual([old.name]);
    const young = await at.put();
    await expect.poll(() => filesIn(at.root)).toEqual([young.name]);
    await expect.poll(() => readdir(at.root)).toHaveLength(1);
  });

  it('removes files that a crash left half written, and counts payloads only', async () => {
    await using at = await opened();
    const ref = await at.put(HOUR);
    await rename(at.pathOf(ref), join(dirname(at.pathOf(ref)), `.${ref.name}`));
    const whole = await at.put(HOUR);
    await at.clock.advance(3 * HOUR);
    expect(await at.store.clean()).toBe(1);
    expect(await filesIn(at.root)).toEqual([]);
    expect(await at.store.read(whole)).toEqual({ state: 'expired' });
  });

  it('does not touch foreign entries: years, notes, links and their targets', async () => {
    await using at = await opened();
    const ref = await at.put(HOUR);
    const hour = dirname(dirname(at.pathOf(ref)));
    const outside = join(at.parent, 'outside', 'ab');
    await mkdir(outside, { recursive: true });
    await writeFile(join(outside, 'a'.repeat(32)), 'precious');
    for (const folder of ['2024', 'notes', '123456/not-ours', '123456/ab']) {
      await mkdir(join(at.root, folder), { recursive: true });
      await writeFile(join(at.root, folder, 'kept.txt'), 'precious');
    }
    await writeFile(join(hour, 'README'), 'precious');
    await writeFile(join(at.root, '234567'), 'precious');
    await symlink(dirname(outside), join(at.root, '345678'));
    const beside = basename(dirname(at.pathOf(ref))) === 'cd' ? 'ce' : 'cd';
    await symlink(outside, join(hour, beside));
    await symlink(join(outside, 'a'.repeat(32)), join(dirname(at.pathOf(ref)), 'b'.repeat(32)));
    const before = (await filesIn(at.parent)).sort();
    await at.clock.advance(3 * HOUR);
    expect(await at.store.clean()).toBe(1);
    expect((await filesIn(at.parent)).sort()).toEqual(before.filter((name) => name !== ref.name));
    expect(await readFile(join(outside, 'a'.repeat(32)), 'utf8')).toBe('precious');
  });

  it('can be requested for a directory that was never created', async () => {
    await using at = await opened();
    expect(await at.store.clean()).toBe(0);
    await expect(readdir(at.root)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

async function flipBit(path: string): Promise<void> {
  const bytes = await readFile(path);
  bytes[10_000] = (bytes[10_000] ?? 0) ^ 1;
  await writeFile(path, bytes);
}

async function linkTo(path: string, elsewhere: string): Promise<void> {
  await rename(path, elsewhere);
  await symlink(elsewhere, path);
}
