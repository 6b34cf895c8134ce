/** Runs the command `callboard data`: checks a data directory, copies it, and gives up what is damaged. */
import { copyFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DataDirectory, cutFile, lockDirectory, readBatches, type FileEnd } from '../backends/journal/files.ts';
import { readConfig } from '../config.ts';
import { CommandError, UsageError, splitFlags, type Io } from './io.ts';
import { keepTrial } from './trial-credentials.ts';

/** How often a copy begins again because the relay replaced a file meanwhile. */
const COPIES = 5;

/** Runs `data check`, `data backup --to <directory>` or `data accept-loss`. */
export async function data(argv: readonly string[], io: Io): Promise<void> {
  const [verb = '', ...given] = argv;
  const { own, rest } = splitFlags(given, { values: ['--to'] });
  const { dataDir } = keepTrial(readConfig(io.env, rest), false, io).config;
  if (dataDir === null || !existsSync(dataDir))
    throw new UsageError('CALLBOARD_DATA_DIR: is required, and must be the data directory of a relay');
  const directory = new DataDirectory(dataDir);
  if (verb === 'backup') return backup(directory, own.get('--to'), io);
  if (verb !== 'check' && verb !== 'accept-loss') throw new UsageError('data: expected check, backup or accept-loss');
  const lock = await lockDirectory(dataDir);
  if (!lock) throw new CommandError(`${dataDir} is in use: stop its relay first.`);
  try {
    if (verb === 'check') check(directory, io);
    else acceptLoss(directory, io);
  } finally {
    lock.release();
  }
}

type Checked = { readonly path: string; readonly batches: number; readonly bytes: number; readonly end: FileEnd };

/** Reads all files of the directory that the next start would read, in its order. */
function filesOf(directory: DataDirectory): readonly string[] {
  const { journals, snapshots } = directory.numbered();
  const newest = snapshots.at(-1);
  const from = newest ?? 0;
  const following = journals.filter((number) => number >= from).map((number) => directory.journal(number));
  return newest === undefined ? following : [directory.snapshot(newest), ...following];
}

function checkFile(path: string): Checked {
  let [batches, bytes] = [0, 0];
  const end = readBatches(path, (body) => {
    batches++;
    bytes += body.length;
  });
  return { path, batches, bytes, end };
}

/** Prints one line for each file. Throws CommandError if a start would refuse the directory. */
function check(directory: DataDirectory, io: Io): void {
  const checked = filesOf(directory).map(checkFile);
  for (const file of checked) io.print(`${describe(file)}\n`);
  const bad = checked.filter((file, at) => isRefused(file, at === checked.length - 1));
  if (bad.length > 0) throw new CommandError('A relay refuses this directory; "callboard data accept-loss" cuts it.');
}

function describe({ path, batches, bytes, end }: Checked): string {
  const ok = `${basename(path)}: ${batches} batches, ${bytes} bytes`;
  return end.kind === 'whole'
    ? ok
    : `${ok}, then ${end.bytes} ${end.kind} bytes from byte ${end.offset} on (sha256 ${end.sha256})`;
}

/** An unfinished batch at the end of the last journal is what a crash leaves: a start cuts it. */
function isRefused({ path, end }: Checked, isLast: boolean): boolean {
  if (end.kind === 'whole') return false;
  return end.kind === 'damaged' || !isLast || basename(path).startsWith('snapshot');
}

/** Cuts the first damaged file, and puts aside what cannot be read without the part that was cut off. */
function acceptLoss(directory: DataDirectory, io: Io): void {
  const files = filesOf(directory);
  const at = files.findIndex((path, index) => isRefused(checkFile(path), index === files.length - 1));
  const path = files[at];
  if (path === undefined) return io.print('Nothing is damaged.\n');
  const aside = join(directory.root, `lost-${Date.now()}`);
  mkdirSync(aside, { mode: 0o700 });
  const { end } = checkFile(path);
  if (basename(path).startsWith('snapshot') || end.kind === 'whole') renameSync(path, join(aside, basename(path)));
  else {
    copyFileSync(path, join(aside, basename(path)));
    cutFile(path, end.offset);
    for (const later of files.slice(at + 1)) renameSync(later, join(aside, basename(later)));
  }
  io.print(`${basename(path)} was cut. What was given up is in ${aside}.\n`);
}

/** Copies the directory. Its relay may be running: the copy is what a kill at some moment meanwhile would leave. */
function backup(directory: DataDirectory, to: string | undefined, io: Io): void {
  if (to === undefined) throw new UsageError('--to: is required');
  if (existsSync(to)) throw new UsageError(`--to: ${to} exists already`);
  for (let left = COPIES; ; left--) {
    try {
      copy(directory, to);
      return io.print(`${directory.root} was copied to ${to}.\n`);
    } catch (error) {
      rmSync(to, { recursive: true, force: true });
      // A snapshot that ended meanwhile has replaced the files before it.
      if (left === 1 || !(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  }
}

function copy(directory: DataDirectory, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const path of [...filesOf(directory), join(directory.root, 'key')]) copyFileSync(path, join(to, basename(path)));
  for (const name of ['audit.jsonl', 'spill']) {
    const beside = join(directory.root, name);
    if (existsSync(beside)) cpSync(beside, join(to, name), { recursive: true });
  }
}
