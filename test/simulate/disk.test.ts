/** Tests the simulated disk: what a kill and a loss of power leave, and what a full, slow or failing disk does. */
import { describe, expect, it } from 'vitest';
import { SimulatedDisk } from '../../faults/simulate/disk.ts';
import { SimulatedProcess } from '../../faults/simulate/process.ts';
import { Simulation } from '../../faults/simulate/virtual.ts';

const MIB = 1024 * 1024;
const TEN = Buffer.from('0123456789');
const MORE = Buffer.from('abcdefghij');
const SEEDS = Array.from({ length: 60 }, (_, seed) => seed + 1);

function machine(seed = 1) {
  const simulation = new Simulation(seed);
  const process = new SimulatedProcess(simulation, 'p');
  const disk = new SimulatedDisk(simulation, { bytes: 64 * MIB });
  return { simulation, process, disk, files: disk.of(process) };
}

type Machine = ReturnType<typeof machine>;

function write({ files }: Machine, path: string, ...parts: readonly Buffer[]) {
  const file = files.open(path, 'append');
  for (const part of parts) for (let at = 0; at < part.length;) at += file.write(part, at);
  return file;
}

function textOf({ disk }: Machine, path: string): string {
  const file = disk.of(null).open(path, 'read');
  const bytes = Buffer.alloc(file.size());
  file.read(bytes, 0, bytes.length, 0);
  return bytes.toString('latin1');
}

function syncNames({ files }: Machine): void {
  files.openFolder('/d').syncNow();
}

describe('a simulated disk', () => {
  it('keeps what was written when a process is killed', () => {
    const one = machine();
    write(one, '/d/a', TEN, MORE);
    one.process.die();
    expect(textOf(one, '/d/a')).toBe('0123456789abcdefghij');
    expect(() => one.files.open('/d/a', 'append')).toThrow(/has ended/);
  });

  it('keeps what was synced when power is lost, and of the rest nothing, all, a part, or a part with a hole', () => {
    const found = new Set<string>();
    for (const seed of SEEDS) {
      const one = machine(seed);
      write(one, '/d/a', TEN).syncNow();
      syncNames(one);
      write(one, '/d/a', MORE);
      one.disk.losePower();
      const text = textOf(one, '/d/a');
      expect(text.slice(0, 10)).toBe('0123456789');
      const rest = text.slice(10);
      if (rest.includes('\0')) expect(rest.replaceAll(/[^\0]/g, '').length).toBeLessThanOrEqual(10);
      else expect('abcdefghij'.startsWith(rest)).toBe(true);
      found.add(rest === '' ? 'lost' : rest.includes('\0') ? 'hole' : rest.length < 10 ? 'torn' : 'whole');
    }
    expect([...found].sort()).toEqual(['hole', 'lost', 'torn', 'whole']);
  });

  it('counts what was written after a sync began as not synced', async () => {
    const kept = new Set<number>();
    for (const seed of SEEDS) {
      const one = machine(seed);
      const file = write(one, '/d/a', TEN);
      syncNames(one);
      let isSynced = false;
      file.sync(() => (isSynced = true));
      write(one, '/d/a', MORE);
      expect(one.disk.unsyncedSince(() => true)).toBe(0);
      await one.simulation.run(10, () => isSynced);
      expect(isSynced).toBe(true);
      expect(one.disk.unsyncedSince(() => true)).toBe(0);
      one.disk.losePower();
      kept.add(one.files.sizeOf('/d/a'));
    }
    expect(Math.min(...kept)).toBe(10);
    expect(kept.size).toBeGreaterThan(2);
  });

  it('may undo names that were not synced, the last ones first, and has another boot', () => {
    const found = new Set<string>();
    for (const seed of SEEDS) {
      const one = machine(seed);
      const boot = one.files.boot();
      write(one, '/d/old', TEN).syncNow();
      syncNames(one);
      write(one, '/d/new', MORE).syncNow();
      one.files.rename('/d/new', '/d/old');
      one.disk.losePower();
      expect(one.disk.of(null).boot()).not.toBe(boot);
      found.add(`${one.files.names('/d').toSorted().join(' ')}: ${textOf(one, '/d/old')}`);
    }
    expect([...found].sort()).toEqual(['new old: 0123456789', 'old: 0123456789', 'old: abcdefghij']);
  });

  it('keeps names that were synced', () => {
    for (const seed of SEEDS) {
      const one = machine(seed);
      write(one, '/d/a', TEN).syncNow();
      syncNames(one);
      one.disk.losePower();
      expect(one.files.names('/d')).toEqual(['a']);
      expect(one.disk.unsyncedSince(() => true)).toBeNull();
    }
  });

  it('writes in part while it becomes full, and then throws ENOSPC; emptied files give room back', () => {
    const one = machine();
    write(one, '/d/b', MORE);
    one.disk.leave(4);
    const file = one.files.open('/d/a', 'append');
    let written = 0;
    expect(() => {
      for (;;) written += file.write(TEN, written);
    }).toThrow(expect.objectContaining({ code: 'ENOSPC' }));
    expect([written, textOf(one, '/d/a'), one.files.freeBytes('/d')]).toEqual([4, '0123', 0]);
    one.files.empty('/d/b');
    expect(one.files.freeBytes('/d')).toBe(10);
    one.disk.leave(Infinity);
    expect(one.files.freeBytes('/d')).toBe(64 * MIB - 4);
  });

  it('fails syncs, after which another process finds what they were for, or nothing, or a part', async () => {
    const found = new Set<string>();
    for (const seed of SEEDS) {
      const one = machine(seed);
      const file = write(one, '/d/a', TEN);
      one.disk.fault = 'sync';
      let code: unknown = null;
      file.sync((error) => (code = error && 'code' in error && error.code));
      await one.simulation.run(10, () => code !== null);
      expect([code, textOf(one, '/d/a')]).toEqual(['EIO', '0123456789']);
      one.disk.of(new SimulatedProcess(one.simulation, 'q'));
      const text = textOf(one, '/d/a');
      found.add(text === '0123456789' ? 'there' : text === '' ? 'not there' : 'in part');
    }
    expect([...found].sort()).toEqual(['in part', 'not there', 'there']);
  });

  it('holds up the process that writes to a slow disk, and no other', async () => {
    const one = machine();
    const other = new SimulatedProcess(one.simulation, 'q');
    one.disk.slowMs = 1_000_000;
    write(one, '/d/a', TEN);
    const ran: string[] = [];
    one.process.after(1, 'later', () => ran.push('p'));
    other.after(1, 'later', () => ran.push('q'));
    await one.simulation.run(100);
    expect(ran).toEqual(['q']);
    await one.simulation.run(1_000_000, () => ran.length === 2);
    expect(ran).toEqual(['q', 'p']);
  });

  it('lets the lock go with the process that has it', async () => {
    const one = machine();
    expect(await one.files.lock('/d/lock')).not.toBeNull();
    const next = one.disk.of(new SimulatedProcess(one.simulation, 'q'));
    expect(await next.lock('/d/lock')).toBeNull();
    one.process.die();
    expect(await next.lock('/d/lock')).not.toBeNull();
  });
});
