/** Keeps the audit of administrators' acts in the memory of one process, and in a file if one is configured. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync } from 'node:fs';
import { open, rename, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type {
  AppendResult,
  AuditAppend,
  AuditExtent,
  AuditHead,
  AuditStore,
  ListedAct,
} from '../../core/audit/audit-store.ts';
import { openRow, type SealedRow } from '../../core/audit/audit-rows.ts';
import { CallboardError } from '../../core/errors.ts';
import type { Log } from '../../core/ports.ts';
import { lowerBound } from './sorted-map.ts';

type StoredRow = Pick<SealedRow, 'row' | 'line'>;

/** A chain of audit rows in memory. Every method completes in the tick of its call. */
export class MemoryAudit implements AuditStore {
  /** The rows, ordered by number. */
  #rows: StoredRow[] = [];
  #head: AuditHead = { seq: 0, mac: '' };
  readonly #outcomes = new Map<number, string>();

  /** Loads stored rows, oldest first. Skips lines that are not valid rows. */
  load(lines: readonly string[]): void {
    for (const line of lines) {
      const opened = openRow(line);
      if (opened) this.#add(opened);
    }
  }

  head(): AuditHead {
    return this.#head;
  }

  /** Returns why a row may not be appended now, or null if it may. */
  refusal({ sealed, rate }: AuditAppend): Exclude<AppendResult, { readonly kind: 'appended' }> | null {
    const { row } = sealed;
    if (row.prev !== this.#head.mac || row.seq !== this.#head.seq + 1) return { kind: 'moved', head: this.#head };
    if (!rate || row.kind !== 'act') return null;
    const from = row.at - rate.windowMs;
    let count = 0;
    for (let at = this.#rows.length - 1; at >= 0; at--) {
      const other = this.#rows[at]?.row;
      if (!other || other.at <= from) break;
      if (other.kind !== 'act' || other.who !== row.who || other.action !== row.action) continue;
      if (++count === rate.limit) return { kind: 'limited', retryAfterMs: other.at - from };
    }
    return null;
  }

  append(append: AuditAppend): AppendResult {
    const refusal = this.refusal(append);
    if (refusal) return refusal;
    if (append.dropThrough !== null) this.#drop(append.dropThrough);
    this.#add(append.sealed);
    return { kind: 'appended', extent: this.extent() };
  }

  extent(): AuditExtent {
    const first = this.#rows[0]?.row ?? null;
    return { count: this.#rows.length, firstSeq: first?.seq ?? null, firstAt: first?.at ?? null };
  }

  list(userId: string | null, { before, first }: { before: number | null; first: number }): readonly ListedAct[] {
    const found: ListedAct[] = [];
    for (let at = this.#indexOf(before ?? Infinity) - 1; at >= 0 && found.length < first; at--) {
      const { row, line } = this.#rows[at] ?? {};
      if (row?.kind !== 'act' || line === undefined || (userId !== null && row.subject.userId !== userId)) continue;
      found.push({ seq: row.seq, act: line, outcome: this.#outcomes.get(row.seq) ?? null });
    }
    return found;
  }

  lines(after: number, first: number): readonly string[] {
    const from = this.#indexOf(after + 1);
    return this.#rows.slice(from, from + first).map(({ line }) => line);
  }

  #add({ row, mac, line }: SealedRow): void {
    this.#rows.push({ row, line });
    this.#head = { seq: row.seq, mac };
    if (row.kind === 'outcome') this.#outcomes.set(row.of, line);
  }

  #drop(through: number): void {
    for (const { row } of this.#rows.splice(0, this.#indexOf(through + 1))) this.#outcomes.delete(row.seq);
  }

  /** Returns the index of the first row whose number is at least `seq`. */
  #indexOf(seq: number): number {
    return lowerBound(this.#rows.length, (at) => (this.#rows[at]?.row.seq ?? Infinity) < seq);
  }
}

// The audit of administrators' acts in a file, with one row on each line. The row of an act is on disk before the act
// begins.

const OWNER_ONLY = 0o600;

/** The contents of an audit file: its complete lines, and the bytes that follow them. */
type AuditFileText = {
  readonly lines: readonly string[];
  /** The size of the complete lines, in bytes. */
  readonly bytes: number;
  /** The bytes after the last line feed: an unfinished row, or nothing. */
  readonly torn: Buffer;
};

/** Reads an audit file without changing it. Throws the errors of `readFileSync`. */
export function readAuditFile(file: string | number): AuditFileText {
  const whole = readFileSync(file);
  const bytes = whole.lastIndexOf(0x0a) + 1;
  const lines = whole.subarray(0, bytes).toString('utf8').split('\n').slice(0, -1);
  return { lines, bytes, torn: whole.subarray(bytes) };
}

/**
 * Opens an audit file, or creates it. If a crash left an unfinished last row, the row is cut off and reported as
 * `torn`. Throws `invalid_argument` if the file cannot be used.
 */
export function openAuditFile(path: string, log: Log): AuditStore & { close(): Promise<void> } {
  const { found, torn } = openAt(path);
  const table = new MemoryAudit();
  table.load(found.lines);
  if (torn) log.warn({ path, ...torn }, 'the last row of the audit file was unfinished and was cut off');
  const file = new AuditFile(path, found.bytes);
  return {
    torn,
    head: () => table.head(),
    append: (append) => file.inTurn(() => appendTo(file, table, append)),
    list: (userId, page) => table.list(userId, page),
    lines: (after, first) => table.lines(after, first),
    close: () => file.inTurn(() => file.close()),
  };
}

function openAt(path: string): { readonly found: AuditFileText; readonly torn: (AuditStore['torn'] & {}) | null } {
  try {
    const fd = openSync(path, 'a+', OWNER_ONLY);
    try {
      const found = readAuditFile(fd);
      const bytes = found.torn.length;
      if (bytes === 0) return { found, torn: null };
      ftruncateSync(fd, fstatSync(fd).size - bytes);
      return { found, torn: { bytes, sha256: createHash('sha256').update(found.torn).digest('base64url') } };
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw new CallboardError('invalid_argument', `AUDIT_FILE: the file cannot be used (${codeOf(cause)})`, { cause });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
}

async function appendTo(file: AuditFile, table: MemoryAudit, append: AuditAppend): Promise<AppendResult> {
  const refusal = table.refusal(append);
  if (refusal) return refusal;
  const { sealed, dropThrough } = append;
  try {
    if (dropThrough === null) await file.add(`${sealed.line}\n`);
    else await file.replace([...table.lines(dropThrough, Infinity), sealed.line]);
  } catch (cause) {
    throw new CallboardError('store_unavailable', 'The audit file cannot be written.', { cause });
  }
  return table.append(append);
}

/** The open file and its expected size. If the actual size differs, another process has written to the file. */
class AuditFile {
  readonly #path: string;
  #size: number;
  #handle: FileHandle | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string, size: number) {
    this.#path = path;
    this.#size = size;
  }

  /** Runs the operations one after another, in the order of the calls. */
  inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(run);
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Appends a text, and resolves when the text is on disk. If the write fails, the file keeps its former content. */
  async add(text: string): Promise<void> {
    const handle = (this.#handle ??= await open(this.#path, 'a', OWNER_ONLY));
    if ((await handle.stat()).size !== this.#size) throw new Error('another process has written to the audit file');
    try {
      await handle.appendFile(text);
      await handle.datasync();
      this.#size += Buffer.byteLength(text);
    } catch (error) {
      await handle.truncate(this.#size);
      throw error;
    }
  }

  /** Writes the lines to a new file, and renames the new file over this file. */
  async replace(lines: readonly string[]): Promise<void> {
    const text = `${lines.join('\n')}\n`;
    const beside = `${this.#path}.new`;
    const handle = await open(beside, 'w', OWNER_ONLY);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, this.#path);
    await this.close();
    this.#size = Buffer.byteLength(text);
    const folder = await open(dirname(this.#path), 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = null;
  }
}
