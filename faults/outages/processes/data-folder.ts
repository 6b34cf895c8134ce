/**
 * Controls the data directory of a relay under faults: damages its end as a crash does, fills its disk, and removes
 * unsynced data as a loss of power does.
 */
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { between } from '../../lib/random.ts';
import type { Plan } from '../plan/plan.ts';
import { makeSmallDisk, type SmallDisk } from './small-disk.ts';

export type DataFolder = Disposable & {
  /** Environment variables, including settings, with which the relay uses the folder. */
  readonly env: Readonly<Record<string, string>>;
  /** Appends bytes to the journal, like a crash in the middle of a write. Only while no relay runs. */
  tear(random: () => number): void;
  /**
   * Removes all data that had not been synced, and changes the id of this boot. Only while no relay runs. Returns the
   * time until which all records were kept, in nanoseconds of the monotonic clock: the start of the last completed
   * sync.
   */
  losePower(random: () => number): number;
  /** How old a record may be that a loss of power removes, in milliseconds; null: any age. */
  readonly withinMs: number | null;
  /** The file system of the folder, which can be filled and made read-only; null if the plan does not need it. */
  readonly disk: SmallDisk | null;
};

/** The maximum number of bytes of an unfinished batch. */
const TORN_BYTES = 200;
/** The size of a page in bytes. A disk writes a page either completely or not at all. */
const PAGE_BYTES = 4096;

/** The size of the file system of a data directory, in bytes. */
const DISK_BYTES = 64 * 1024 * 1024;

/** Creates the data directory for a plan. `folder`: the folder of the run. */
export function makeDataFolder(folder: string, { sync, kinds }: Pick<Plan, 'sync' | 'kinds'>): DataFolder {
  const needsDisk = kinds.some((kind) => kind === 'data-full' || kind === 'relay-shut');
  const disk = needsDisk ? makeSmallDisk(DISK_BYTES) : null;
  const root = disk?.path ?? join(folder, 'data');
  const power = kinds.includes('relay-power');
  const [log, boot] = [join(folder, 'power.log'), join(folder, 'boot-id')];
  let boots = 0;
  const nextBoot = (): void => writeFileSync(boot, `boot ${++boots}\n`);
  nextBoot();
  const shim = power ? { LD_PRELOAD: compileShim(folder), POWER_LOSS_LOG: log, POWER_LOSS_BOOT: boot } : {};
  return {
    env: { CALLBOARD_DATA_DIR: root, CALLBOARD_DATA_SYNC: sync, ...shim },
    tear(random) {
      const last = namesOf(root, 'journal').at(-1);
      const bytes = Buffer.from(Array.from({ length: between(random, 1, TORN_BYTES) }, () => between(random, 0, 255)));
      if (last) appendFileSync(join(root, last), bytes);
    },
    losePower(random) {
      const { sizes, names, keptUntil } = readLog(log);
      for (const name of readdirSync(root).filter((one) => /^(journal|snapshot)-/.test(one))) {
        const path = join(root, name);
        if (!names.has(path)) rmSync(path);
        else forget(path, sizes.get(path) ?? 0, random);
      }
      nextBoot();
      return keptUntil;
    },
    withinMs: { '100': 100, always: 0, off: null }[sync],
    disk,
    [Symbol.dispose]: () => disk?.[Symbol.dispose](),
  };
}

function namesOf(root: string, kind: string): readonly string[] {
  return readdirSync(root)
    .filter((name) => name.startsWith(kind))
    .sort();
}

/** Compiles the library that records what a relay has synced. Throws if this machine has no C compiler. */
function compileShim(folder: string): string {
  const [source, library] = [join(import.meta.dirname, 'power-loss.c'), join(folder, 'power-loss.so')];
  const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
  if (status !== 0) throw new Error(`a loss of power needs a C compiler: ${String(stderr)}`);
  return library;
}

type Synced = {
  readonly sizes: ReadonlyMap<string, number>;
  readonly names: ReadonlySet<string>;
  /** The start of the last sync of a journal, in nanoseconds. */
  readonly keptUntil: number;
};

function readLog(path: string): Synced {
  const [sizes, names] = [new Map<string, number>(), new Set<string>()];
  let keptUntil = 0;
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  for (const line of lines) {
    const { kind, rest = '' } = /^(?<kind>[SN]) (?<rest>.*)$/.exec(line)?.groups ?? {};
    if (kind === 'N') names.add(rest);
    const synced = /^(?<bytes>\d+) (?<began>\d+) (?<of>.*)$/.exec(kind === 'S' ? rest : '')?.groups;
    if (!synced) continue;
    const { bytes, began, of = '' } = synced;
    // A file may have been renamed after its sync.
    for (const name of [of, of.replace(/\.new$/, '')]) sizes.set(name, Number(bytes));
    if (/\/journal-\d+$/.test(of) && names.has(of)) keptUntil = Math.max(keptUntil, Number(began));
  }
  return { sizes, names, keptUntil };
}

/** Removes the unsynced end of a file, or only one page of it, because a disk may write pages in any order. */
function forget(path: string, synced: number, random: () => number): void {
  const { size } = statSync(path);
  const firstPage = Math.ceil(synced / PAGE_BYTES);
  const lastPage = Math.floor(size / PAGE_BYTES) - 1;
  if (lastPage < firstPage || between(random, 0, 1) === 0) return truncateSync(path, synced);
  const bytes = readFileSync(path);
  const page = between(random, firstPage, lastPage);
  bytes.fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
  writeFileSync(path, bytes);
}
