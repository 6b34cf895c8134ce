/** Opens the backend with a data directory for tests, and starts it again as after a kill. */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { batchFilesOn, type BatchFile, type OpenFile } from '../../../src/backends/journal/batches.ts';
import { systemDisk } from '../../../src/backends/journal/disk.ts';
import { openData, type DataOptions, type OpenData } from '../../../src/backends/journal/open.ts';
import type { MemoryOptions } from '../../../src/backends/memory/backend.ts';
import { silentLog, type EventLoop } from '../../../src/core/ports.ts';
import { createCrypto, systemLoop } from '../../../src/platform/system.ts';
import { FakeClock } from '../../kit/clock.ts';

type Given = Partial<Omit<DataOptions, 'memory' | 'root' | 'disk'>> & {
  /** The id of this boot of the system, and the free bytes of the disk; absent: the system is asked. */
  readonly boot?: string | null;
  readonly freeBytes?: () => number;
  readonly clock?: MemoryOptions['clock'];
  readonly memory?: Partial<MemoryOptions>;
  readonly root?: string;
  readonly loop?: EventLoop;
};

/** Makes a folder that `removeFolders` removes. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-data-'));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];

export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

export function openDurable(options: Given = {}): Promise<OpenData> {
  const { clock = new FakeClock(), memory = {}, root, boot, freeBytes, ...given } = options;
  return openData({
    root: root ?? makeFolder(),
    disk: {
      ...systemDisk,
      ...(boot !== undefined && { boot: () => boot }),
      ...(freeBytes && { freeBytes }),
    },
    sync: 'off',
    version: 'test',
    loop: systemLoop,
    random: createCrypto('test'),
    onFailure(error) {
      throw error;
    },
    ...given,
    memory: { log: silentLog, sha256: createCrypto('test').sha256, ...memory, clock },
  });
}

/** Copies what a directory has at this moment, as a kill of its process would leave it. */
export function copyOf({ directory }: Pick<OpenData, 'directory'>): string {
  for (;;) {
    const copy = makeFolder();
    try {
      cpSync(directory.root, copy, { recursive: true });
      return copy;
    } catch (error) {
      // A file that a snapshot has replaced was removed in the middle of the copy.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  }
}

/** A file system under control of a test: it logs what is done, and fails when told to. */
export class Disk {
  log: string[] = [];
  /** The error of the next appends. */
  fault: (Error & { code: string }) | null = null;
  /** The reserve of the directory: while it is gone, there is room. */
  reserve: string | null = null;
  /** Whether syncs wait for `finishSyncs`. */
  held = false;
  syncFault: Error | null = null;
  /** The names of the files that were synced while the caller waited. */
  readonly syncedNow: string[] = [];
  #syncs: { readonly name: string; readonly finish: () => void }[] = [];

  readonly open: OpenFile = (path, after): BatchFile => {
    const file = batchFilesOn(systemDisk)(path, after);
    return {
      ...{ path, close: () => file.close() },
      syncNow: () => {
        this.syncedNow.push(basename(path));
        file.syncNow();
      },
      get size() {
        return file.size;
      },
      get last() {
        return file.last;
      },
      append: (text) => {
        if (this.fault && (this.reserve === null || existsSync(this.reserve))) throw this.fault;
        file.append(text);
        this.log.push('written');
      },
      sync: (done) => {
        const finish = (): void => {
          this.log.push('synced');
          done(this.syncFault);
        };
        if (this.held) this.#syncs.push({ name: basename(path), finish });
        else finish();
      },
    };
  };

  /** Finishes the syncs that wait, of all files or of one file. Returns how many there were. */
  finishSyncs(of?: string): number {
    const finished = this.#syncs.filter(({ name }) => of === undefined || name === of);
    this.#syncs = this.#syncs.filter((one) => !finished.includes(one));
    for (const { finish } of finished) finish();
    return finished.length;
  }
}
