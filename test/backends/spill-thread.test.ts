/** Tests the thread that has the files of large payloads: its end, its errors, and the end of its process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { SpillRef } from '../../src/core/history/message.ts';
import { createSpillThread } from '../../src/backends/spill/thread.ts';
import { textOf } from '../contract/spill.ts';

const PLACE = { name: 'a'.repeat(32), expiresAt: Date.now() + 3600_000 };
const content = (): Uint8Array => new TextEncoder().encode(textOf(20_000));

describe('the thread of large payloads', () => {
  let parent = '';
  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), 'callboard-spill-'));
    onTestFinished(() => rm(parent, { recursive: true, force: true }));
  });

  it('answers calls that run side by side, each with its own result', async () => {
    const files = createSpillThread(join(parent, 'spill'));
    const places = Array.from({ length: 20 }, (_, i) => ({ ...PLACE, name: i.toString(16).padStart(32, '0') }));
    const written = await Promise.all(places.map((place, i) => files.write(place, new Uint8Array(i + 1).fill(i))));
    const refs: SpillRef[] = places.map((place, i) => ({ ...place, bytes: i + 1, sha256: written[i] ?? '' }));
    const read = await Promise.all(refs.map((ref) => files.read(ref)));
    expect(read.map((bytes) => [...bytes])).toEqual(places.map((_, i) => Array.from({ length: i + 1 }, () => i)));
    const sizes = [...(await files.measure()).values()];
    expect(sizes.sort((a, b) => a - b)).toEqual(places.map((_, i) => i + 1));
  });

  it('rejects with the code of the system, and answers the next call', async () => {
    const root = join(parent, 'spill');
    await writeFile(root, '');
    const files = createSpillThread(root);
    await expect(files.write(PLACE, content())).rejects.toMatchObject({ code: 'ENOTDIR' });
    await rm(root);
    expect(await files.write(PLACE, content())).toMatch(/^[\w-]{43}$/);
  });

  it('rejects the calls in progress when it ends, and the next call starts another', async () => {
    const text = `
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ id, method }) => {
        if (method === 'measure') process.exit(1);
        if (method === 'removePast') throw new Error('broken');
        if (method === 'remove') parentPort.postMessage({ id, value: 7 });
      });`;
    const files = createSpillThread(parent, new URL(`data:text/javascript,${encodeURIComponent(text)}`));
    const waiting = files.write(PLACE, content());
    await Promise.all([expect(files.measure()).rejects.toThrow('ended'), expect(waiting).rejects.toThrow('ended')]);
    expect(await files.remove(PLACE)).toBe(7);
    await expect(files.removePast(0)).rejects.toThrow('broken');
    expect(await files.remove(PLACE)).toBe(7);
  });

  it('ends when it is closed, once the calls in progress have ended', async () => {
    const { promise: started, resolve } = Promise.withResolvers<Worker>();
    process.once('worker', resolve);
    const files = createSpillThread(join(parent, 'spill'));
    const written = files.write(PLACE, content());
    const exited = once(await started, 'exit');
    files.close();
    expect(await written).toMatch(/^[\w-]{43}$/);
    await exited;
  });

  it('keeps the process alive until a write has ended, and no longer', async () => {
    const module = new URL('../../src/backends/spill/thread.ts', import.meta.url).href;
    const text = `
      import { createSpillThread } from ${JSON.stringify(module)};
      void createSpillThread(${JSON.stringify(parent)}).write(${JSON.stringify(PLACE)}, new Uint8Array(1_000_000));`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', text], { stdio: 'inherit' });
    expect(await once(child, 'exit')).toEqual([0, null]);
    const entries = await readdir(parent, { recursive: true });
    expect(entries.filter((path) => path.endsWith(PLACE.name))).toHaveLength(1);
  });
});
