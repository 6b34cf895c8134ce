/**
 * Runs the commands that examine recorded data: `callboard data` checks, copies or repairs a data directory, and
 * `callboard audit verify` checks the chain of audit rows.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  BatchChain,
  NO_BATCH,
  cutFile,
  mayBeCut,
  readBatches,
  type BatchName,
  type FileEnd,
} from '../backends/journal/batches.ts';
import { DataDirectory } from '../backends/journal/files.ts';
import { readActs } from '../backends/journal/records.ts';
import { readConfig } from '../config.ts';
import { isRecord } from '../protocol/json.ts';
import { CommandError, UsageError, EXIT } from './exit-codes.ts';
import { splitFlags } from './flags.ts';
import { messageOf, type Io } from './io.ts';
import { keepTrial } from './trial-credentials.ts';
import { readAuditFile } from '../backends/memory/audit.ts';
import { ChainVerifier, type ChainReport, type UncheckedRows } from '../core/audit/audit-chain.ts';

/** How often a copy starts again because the relay replaced a file meanwhile. */
const COPIES = 5;

/** Runs `data check`, `data backup --to <directory>` or `data accept-loss`. */
export async function data(argv: readonly string[], io: Io): Promise<void> {
  const [verb = '', ...given] = argv;
  const { own, rest } = splitFlags(given, { values: ['--to'] });
  const config = readConfig(io.env, rest);
  const dataDir = config.dataDir ?? keepTrial(config, false, io).config.dataDir;
  if (dataDir === null || !existsSync(dataDir))
    throw new UsageError('CALLBOARD_DATA_DIR: is required, and must be the data directory of a relay');
  const directory = new DataDirectory(dataDir);
  if (verb === 'backup') return backup(directory, own.get('--to'), io);
  if (verb !== 'check' && verb !== 'accept-loss') throw new UsageError('data: expected check, backup or accept-loss');
  const lock = await directory.lock();
  if (!lock) throw new CommandError(`${dataDir} is in use: stop its relay first.`);
  try {
    if (verb === 'check') check(directory, io);
    else acceptLoss(directory, io);
  } finally {
    lock.release();
  }
}

type Checked = {
  readonly path: string;
  readonly batches: number;
  readonly bytes: number;
  readonly end: FileEnd;
  /** For a snapshot, the batch after which its journal continues; null for a journal. */
  readonly after: BatchName | null;
  /** Whether a relay would refuse to start with this file. */
  readonly refused: boolean;
};

/** Checks the files that the next start would read, in the same order. Stops after a file that the start would cut. */
function checked(directory: DataDirectory): readonly Checked[] {
  const { snapshot, journals } = directory.toRead();
  const files: Checked[] = [];
  let after: BatchName | null = snapshot === null && existsSync(directory.loss) ? null : NO_BATCH;
  if (snapshot !== null) {
    const file = checkFile({ directory, path: snapshot }, new BatchChain(NO_BATCH), null);
    after = file.after;
    files.push(file);
  }
  const chain = new BatchChain(after);
  for (const [index, path] of journals.entries()) {
    const file = checkFile({ directory, path }, chain, journals.slice(index));
    files.push(file);
    if (file.end.kind !== 'whole' && !file.refused) break;
  }
  return files;
}

type ToCheck = { readonly directory: DataDirectory; readonly path: string };

/** Checks one file. `journals`: this journal and the later ones; null for a snapshot, which is never cut. */
function checkFile({ directory, path }: ToCheck, chain: BatchChain, journals: readonly string[] | null): Checked {
  const { disk } = directory;
  let [batches, bytes] = [0, 0];
  let head: FileHead = { boot: null, after: null };
  const end = readBatches({ disk, path }, chain, (body) => {
    if (batches === 0) head = headIn(body);
    batches++;
    bytes += body.length;
  });
  const { boot, after } = head;
  const lostPower = directory.mayMissUnsynced(boot, disk.boot());
  const refused = end.kind !== 'whole' && !(journals && mayBeCut(end, { disk, files: journals, lostPower }));
  return { path, batches, bytes, end, refused, after };
}

/**
 * The beginning of a file: the boot id of the system that wrote it, and for a snapshot the batch after which its
 * journal continues. Null if unknown.
 */
type FileHead = { readonly boot: string | null; readonly after: BatchName | null };

function headIn(body: Buffer): FileHead {
  const [, header, , number, sum] = readActs(body).next().value?.facts ?? [];
  const boot = isRecord(header) && typeof header['boot'] === 'string' ? header['boot'] : null;
  return { boot, after: typeof number === 'number' && typeof sum === 'number' ? { number, sum } : null };
}

/** Prints one line for each file. Throws CommandError if a start would refuse the directory. */
function check(directory: DataDirectory, io: Io): void {
  const { missing } = directory.toRead();
  const files = checked(directory);
  for (const file of files) io.print(`${describe(file)}\n`);
  if (missing !== null) io.print(`${basename(missing)}: is missing\n`);
  if (missing !== null || files.some(({ refused }) => refused))
    throw new CommandError('A relay refuses this directory; "callboard data accept-loss" cuts it.');
}

function describe({ path, batches, bytes, end }: Checked): string {
  const whole = `${basename(path)}: ${batches} batches, ${bytes} bytes`;
  return end.kind === 'whole'
    ? whole
    : `${whole}, then ${end.bytes} ${end.kind} bytes from byte ${end.offset} on (sha256 ${end.sha256})`;
}

/**
 * Cuts off what a start would refuse, and everything after it, and moves it into a folder of the directory. The next
 * start treats this as a loss of records.
 */
function acceptLoss(directory: DataDirectory, io: Io): void {
  const aside = join(directory.root, `lost-${new Date().toISOString().replaceAll(/\D/g, '')}`);
  const { missing } = directory.toRead();
  const lost = [...lostFiles(directory)];
  if (lost.length === 0 && missing === null) return io.print('Nothing is damaged.\n');
  mkdirSync(aside, { mode: 0o700 });
  // Written first, so that the next start knows of the loss even if this program is interrupted.
  writeFileSync(directory.loss, '');
  for (const { path, cutAt } of lost) {
    const copy = join(aside, basename(path));
    if (cutAt === null) renameSync(path, copy);
    else {
      copyFileSync(path, copy);
      cutFile({ disk: directory.disk, path }, cutAt);
    }
    io.print(cutAt === null ? `${basename(path)} was put aside.\n` : `${basename(path)} was cut at byte ${cutAt}.\n`);
  }
  if (missing !== null) writeFileSync(missing, '', { mode: 0o600 });
  directory.sync();
  io.print(`What was given up is in ${aside}.\n`);
}

/** Yields the files that must be cut at `cutAt`, or moved away completely if `cutAt` is null. */
function* lostFiles(directory: DataDirectory): Generator<{ readonly path: string; readonly cutAt: number | null }> {
  const { snapshot, journals, missing } = directory.toRead();
  const files = checked(directory);
  const ofSnapshot = files.find(({ path }) => path === snapshot);
  if (ofSnapshot?.refused) yield { path: ofSnapshot.path, cutAt: null };
  let isLost = false;
  for (const path of journals) {
    isLost ||= missing !== null && path > missing;
    if (isLost) {
      yield { path, cutAt: null };
      continue;
    }
    const file = files.find((one) => one.path === path);
    if (!file || file.end.kind === 'whole' || !file.refused) continue;
    yield { path, cutAt: file.end.offset };
    isLost = true;
  }
}

/**
 * Copies the directory. Its relay may be running: the copy is then in the state in which a kill during the copy would
 * have left the directory.
 */
function backup(directory: DataDirectory, to: string | undefined, io: Io): void {
  if (to === undefined) throw new UsageError('--to: is required');
  if (existsSync(to)) throw new UsageError(`--to: ${to} exists already`);
  for (let left = COPIES; ; left--) {
    try {
      copy(directory, to);
      return io.print(`${directory.root} was copied to ${to}.\n`);
    } catch (error) {
      rmSync(to, { recursive: true, force: true });
      // A snapshot was completed during the copy and has replaced earlier files. The copy starts again.
      if (left === 1 || !(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  }
}

function copy(directory: DataDirectory, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  const { snapshot, journals } = directory.toRead();
  const paths = [...(snapshot === null ? [] : [snapshot]), ...journals, join(directory.root, 'key')];
  for (const path of paths) copyFileSync(path, join(to, basename(path)));
  for (const beside of [directory.audit, directory.spill])
    if (existsSync(beside)) cpSync(beside, join(to, basename(beside)), { recursive: true });
  // A relay that starts from the copy lacks the records that were written after the copy.
  writeFileSync(new DataDirectory(to).loss, '');
}

// The command `callboard audit verify`.

/** Advice if the key of some rows is missing: only the operator can tell whether there ever was such a key. */
const UNKNOWN_KEY = 'If no key of yours ever had this id, these rows were forged or changed.';

/**
 * Verifies the chain of an audit file (`--file`; by default AUDIT_FILE, or the file in DATA_DIR), or the chain of a
 * running relay (`--url`, with an administrator's token in CALLBOARD_TOKEN). The audit keys come from the relay's
 * settings. Throws CommandError with the first faulty row, or if the key of some rows is missing.
 */
export async function audit([, ...argv]: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--file', '--url'] });
  const config = readConfig(io.env, rest);
  const { auditKeys } = await import('../callboard.ts');
  // A secret that was generated just now has signed no rows.
  const keys = auditKeys(config.generated ? { audit: config.audit, auth: { adminTokens: [] } } : config);
  if (keys.length === 0)
    throw new UsageError('CALLBOARD_AUDIT_KEY or CALLBOARD_SECRET: the key of the rows is required');
  const verifier = new ChainVerifier(keys);
  const url = own.get('--url');
  const file = own.get('--file') ?? config.audit.file ?? inDataDirectory(config.dataDir);
  if (url !== undefined) await addFromRelay(verifier, { url, token: io.env['CALLBOARD_TOKEN'] ?? '' });
  else if (file !== null) addFromFile(verifier, file, io);
  else throw new UsageError('--file or --url: one is required');
  printReport(verifier.report(), io);
}

function inDataDirectory(dataDir: string | null): string | null {
  return dataDir === null ? null : new DataDirectory(dataDir).audit;
}

function addFromFile(verifier: ChainVerifier, path: string, io: Io): void {
  const { lines, torn } = readOrFail(path);
  for (const line of lines) verifier.add(line);
  if (torn.length > 0)
    io.print(`the last row is unfinished (${torn.length} bytes): the relay ended while it was written\n`);
}

function readOrFail(path: string): ReturnType<typeof readAuditFile> {
  try {
    return readAuditFile(path);
  } catch (error) {
    throw new CommandError(`${path} cannot be read: ${messageOf(error)}`);
  }
}

const CHAIN = 'query ($after: Int!) { auditChain(afterSeq: $after) { lines lastSeq } }';
/** The time limit for the relay's answer, in milliseconds. */
const ANSWER_MS = 30_000;

type AuditedRelay = { readonly url: string; readonly token: string };

async function addFromRelay(verifier: ChainVerifier, relay: AuditedRelay): Promise<void> {
  for (let after: number | null = 0; after !== null;) {
    const part: ChainPart = await readPart(relay, after);
    for (const line of part.lines) verifier.add(line);
    // If a forged row has a lower number than the rows before it, reading on from it would never end.
    after = part.lastSeq !== null && part.lastSeq > after ? part.lastSeq : null;
  }
}

type ChainPart = { readonly lines: readonly string[]; readonly lastSeq: number | null };

async function readPart({ url, token }: AuditedRelay, after: number): Promise<ChainPart> {
  const answer = await fetch(`${url.replace(/\/$/, '')}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: CHAIN, variables: { after } }),
    signal: AbortSignal.timeout(ANSWER_MS),
    // Redirects are not followed, because another host must not get the token.
    redirect: 'error',
  }).catch((error: unknown) => {
    throw new CommandError(`${url} does not answer (${messageOf(error)})`);
  });
  const text = await answer.text();
  const { data, errors } = parsed(text);
  if (!data?.auditChain)
    throw new CommandError(`${url} answers ${answer.status}: ${errors?.[0]?.message ?? text.slice(0, 200)}`);
  return data.auditChain;
}

type ChainAnswer = {
  readonly data?: { readonly auditChain?: ChainPart } | null;
  readonly errors?: readonly { readonly message: string }[];
};

function parsed(text: string): ChainAnswer {
  try {
    return JSON.parse(text) as ChainAnswer;
  } catch {
    return {};
  }
}

function printReport({ rows, firstSeq, lastSeq, lastMac, fault, unchecked }: ChainReport, io: Io): void {
  const missing = unchecked.map((part) => `${missingKey(part)}\n`).join('');
  if (fault) throw new CommandError(`The audit is broken. ${fault.message}\n${missing}`.trimEnd());
  if (missing !== '') throw new CommandError(`${missing}${verifiedRows(rows, unchecked)}${UNKNOWN_KEY}`, EXIT.unknown);
  if (rows === 0) return io.print('the audit has no rows\n');
  io.print(`${rows} rows verified, ${firstSeq} to ${lastSeq}; the last one ends with ${lastMac}\n`);
}

function missingKey({ key, rows, firstSeq, lastSeq }: UncheckedRows): string {
  const signed = `signed with a key that is not given (key id ${key}; set AUDIT_KEY to the key of that time)`;
  if (rows === 1) return `The audit cannot be checked in full: row ${firstSeq} is ${signed}.`;
  const which = rows === lastSeq - firstSeq + 1 ? 'rows' : `${rows} of the rows`;
  return `The audit cannot be checked in full: ${which} ${firstSeq} to ${lastSeq} are ${signed}.`;
}

function verifiedRows(rows: number, unchecked: readonly UncheckedRows[]): string {
  const verified = rows - unchecked.reduce((sum, part) => sum + part.rows, 0);
  return verified === 0 ? '' : `${verified} other rows were verified. `;
}
