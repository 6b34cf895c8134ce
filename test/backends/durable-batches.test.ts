/** Tests that a start notices batches of a data directory that were removed, doubled, swapped, torn or changed. */
import { copyFileSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { OpenData } from '../../src/backends/journal/open.ts';
import { ALICE, BOUND, admission, keyFor } from '../contract/kit/bench.ts';
import { turns } from '../kit/clock.ts';
import { Disk, copyOf, openDurable, removeFolders } from './kit/durable.ts';

afterAll(removeFolders);

/** The bytes before the body of a batch, and where the length of the body is. */
const HEAD = 24;
const LENGTH_AT = 4;
const IDS = ['c1', 'c2', 'c3', 'c4'];

/** Cuts a file into its batches. */
function batchesOf(path: string): Buffer[] {
  const bytes = readFileSync(path);
  const batches: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + HEAD + bytes.readUInt32LE(at + LENGTH_AT);
    batches.push(bytes.subarray(at, end));
    at = end;
  }
  return batches;
}

function flipped(batch: Buffer, bit: number): Buffer {
  const changed = Buffer.from(batch);
  const at = Math.floor(bit / 8);
  changed[at] = (changed[at] ?? 0) ^ (1 << (bit % 8));
  return changed;
}

/** What may become of the batch with this index. */
const FAULTS: Readonly<Record<string, (batches: readonly Buffer[], index: number) => readonly Buffer[]>> = {
  removed: (batches, index) => batches.toSpliced(index, 1),
  doubled: (batches, index) => batches.toSpliced(index, 0, ...batches.slice(index, index + 1)),
  swapped: (batches, index) => batches.toSpliced(index, 2, ...batches.slice(index, index + 2).reverse()),
  torn: (batches, index) => batches.map((batch, at) => (at === index ? batch.subarray(0, batch.length / 2) : batch)),
  'changed in its head': (batches, index) => batches.map((batch, at) => (at === index ? flipped(batch, 100) : batch)),
  'changed in its body': (batches, index) =>
    batches.map((batch, at) => (at === index ? flipped(batch, 8 * HEAD + 77) : batch)),
};

async function admit({ backend }: OpenData, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await backend.commands.admit(admission(id, { connectWithinMs: 60_000 }));
    await turns();
  }
}

/** Starts with a directory. Returns what the start says: that it refuses it, what it has cut, or that all is well. */
async function startOf(root: string): Promise<string> {
  const data = await openDurable({ root }).catch((error: unknown) => String(error));
  if (typeof data === 'string') return /damaged|cannot be used/.test(data) ? 'refused' : data;
  const { away } = data.backend.durability();
  const known = await data.backend.commands.get(IDS.map((id) => keyFor(id)));
  await data.backend.close();
  if (away?.tornBytes) return 'cut and told';
  if (known.includes(null)) return away?.clean ? 'silent' : 'told as an end without a close';
  return 'all';
}

function filesOf(root: string, kind: 'journal' | 'snapshot'): readonly string[] {
  const names = readdirSync(root).filter((name) => name.startsWith(`${kind}-`));
  return names.sort().map((name) => join(root, name));
}

/** A directory with a journal of at least six batches. */
async function oneJournal(): Promise<OpenData> {
  const data = await openDurable();
  await data.backend.commands.rebind(ALICE, BOUND, 'up');
  await turns();
  await admit(data, ...IDS);
  return data;
}

/** A directory with two journals, because the snapshot between them is not complete. */
async function twoJournals(): Promise<OpenData> {
  const disk = new Disk();
  const data = await openDurable({ openFile: disk.open });
  await admit(data, 'c1', 'c2');
  disk.held = true;
  void data.backend.snapshot();
  await admit(data, 'c3', 'c4');
  return data;
}

/** A directory with a snapshot of several batches, and a journal after it. */
async function withSnapshot(): Promise<OpenData> {
  const data = await openDurable();
  await admit(data, 'c1', 'c2');
  await data.backend.snapshot();
  await admit(data, 'c3', 'c4');
  return data;
}

describe.each(Object.entries(FAULTS))('a batch that was %s', (name, fault) => {
  it('is noticed in each place of a journal', async () => {
    const data = await oneJournal();
    const [path = ''] = filesOf(data.directory.root, 'journal');
    const count = batchesOf(path).length;
    expect(count).toBeGreaterThan(5);
    const starts: string[] = [];
    for (let index = 0; index < count; index++) {
      const root = copyOf(data);
      const [copy = ''] = filesOf(root, 'journal');
      const changed = Buffer.concat(fault(batchesOf(copy), index));
      writeFileSync(copy, changed);
      starts.push(await startOf(root));
      // A refused start changes nothing.
      if (starts.at(-1) === 'refused') expect(readFileSync(copy)).toEqual(changed);
    }
    // A kill before the last batch was written, or in the middle of it, leaves the same.
    const ends = { removed: 'told as an end without a close', doubled: 'refused', swapped: 'all' };
    const last = ends[name as keyof typeof ends] ?? 'cut and told';
    expect(starts).toEqual([...Array.from({ length: count - 1 }, () => 'refused'), last]);
  });

  it('is noticed at the end of a journal that another one follows, and at the beginning of that', async () => {
    const data = await twoJournals();
    const starts: string[] = [];
    for (const [which, index] of [
      [0, -1],
      [1, 0],
    ] as const) {
      const root = copyOf(data);
      const path = filesOf(root, 'journal')[which] ?? '';
      const batches = batchesOf(path);
      writeFileSync(path, Buffer.concat(fault(batches, index < 0 ? batches.length - 1 : index)));
      starts.push(await startOf(root));
    }
    // With the last batch of a file nothing is swapped.
    expect(starts).toEqual([name === 'swapped' ? 'all' : 'refused', 'refused']);
  });

  it('is noticed in a snapshot, and at the beginning of the journal after it', async () => {
    const data = await withSnapshot();
    const starts: string[] = [];
    for (const kind of ['snapshot', 'journal'] as const) {
      const root = copyOf(data);
      const [path = ''] = filesOf(root, kind);
      expect(batchesOf(path).length).toBeGreaterThan(1);
      writeFileSync(path, Buffer.concat(fault(batchesOf(path), 0)));
      starts.push(await startOf(root));
    }
    expect(starts).toEqual(['refused', 'refused']);
  });
});

describe('a file', () => {
  it('of another directory, or of another time, is refused', async () => {
    const [data, other] = [await withSnapshot(), await withSnapshot()];
    for (const kind of ['snapshot', 'journal'] as const) {
      const root = copyOf(data);
      const [mine = ''] = filesOf(root, kind);
      const [theirs = ''] = filesOf(other.directory.root, kind);
      await admit(other, `of-${kind}`);
      await other.backend.snapshot();
      copyFileSync(existsSync(theirs) ? theirs : (filesOf(other.directory.root, kind)[0] ?? ''), mine);
      expect([kind, await startOf(root)]).toEqual([kind, 'refused']);
    }
  });

  it('is refused if the snapshot before it is gone', async () => {
    const root = copyOf(await withSnapshot());
    for (const path of filesOf(root, 'snapshot')) rmSync(path);
    expect(await startOf(root)).toBe('refused');
  });

  it('of an earlier form is refused, and not cut', async () => {
    const root = copyOf(await oneJournal());
    const [path = ''] = filesOf(root, 'journal');
    const bytes = readFileSync(path);
    bytes.write('cbj1');
    writeFileSync(path, bytes);
    expect(await startOf(root)).toBe('refused');
    expect(readFileSync(path)).toEqual(bytes);
  });
});

describe('after a loss of power', () => {
  it('a journal whose predecessor lost its end is cut, unless it was on the disk', async () => {
    const data = await twoJournals();
    const root = copyOf(data);
    const [first = ''] = filesOf(root, 'journal');
    writeFileSync(first, Buffer.concat(batchesOf(first).slice(0, -1)));
    const again = await openDurable({ root, boot: 'another boot' });
    const known = await again.backend.commands.get(IDS.map((id) => keyFor(id)));
    expect(known.map((command) => command !== null)).toEqual([true, false, false, false]);
    expect(again.backend.durability().away?.lost).toBe(true);
  });
});
