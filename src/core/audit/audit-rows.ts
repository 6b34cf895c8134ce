/**
 * Audit rows: their form, how each row is chained to the previous one by its MAC, the port that stores them, the log
 * line of each act, and the verification of a chain.
 */
import { subjectOf, type Principal } from '../auth/principal.ts';
import { isRecord, parsedJson, toJson } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Log } from '../ports.ts';

/**
 * What an administrator did. `payload`: read payloads by an argument of a listing. `reveal`: read one payload and gave
 * the reason.
 */
export type OperatorAction = 'disconnect' | 'drain' | 'cancel' | 'payload' | 'reveal' | 'revoke';

/** The ids of what an act concerned; never a payload or a token. `view`: `raw` for the raw sample of history. */
export type AuditSubject = Readonly<
  Partial<
    Record<
      'userId' | 'clientId' | 'instanceId' | 'commandId' | 'messageId' | 'stream' | 'view' | 'nodeId' | 'tokenId',
      string
    >
  >
>;

/** The row of an act, written before the act. */
type ActRow = {
  readonly kind: 'act';
  readonly who: string;
  readonly action: OperatorAction;
  readonly subject: AuditSubject;
  readonly reason: string | null;
  readonly requestId: string | null;
};

export type AuditEntry =
  | ActRow
  /** What became of the act whose row has the number `of`. */
  | { readonly kind: 'outcome'; readonly of: number; readonly outcome: string }
  /**
   * The rows up to `through` were removed, because they were too old or too many. `throughMac`: the MAC of the last
   * removed row.
   */
  | { readonly kind: 'trim'; readonly through: number; readonly throughMac: string }
  /** The end of the file was an unfinished row of this many bytes, and was removed. */
  | { readonly kind: 'torn'; readonly bytes: number; readonly sha256: string };

/**
 * A row of the chain. `seq` grows by one. `prev`: the MAC of the previous row; empty in the first row. `key`: the id of
 * the key that signed the row (`keyIdOf`); absent in rows of earlier relays. `node`: the node that wrote the row.
 * Times are epoch milliseconds.
 */
type AuditRow = AuditEntry & {
  readonly seq: number;
  readonly prev: string;
  readonly key?: string;
  readonly at: number;
  readonly node: string;
};

/** A row as it is stored. `line` is a JSON object whose last member `mac` authenticates all others. */
export type SealedRow = { readonly row: AuditRow; readonly mac: string; readonly line: string };

/** Signs a text: HMAC-SHA-256 under the key of the audit, base64url. */
export type AuditSign = (text: string) => string;

/** The text whose signature gives the id of a key. The text of a row begins with a brace, so no row has this text. */
const KEY_ID_TEXT = 'callboard audit key id';
const KEY_ID_CHARACTERS = 12;

/**
 * Returns the id of a key: 72 bits of the signature of KEY_ID_TEXT, as 12 characters of base64url. The id tells keys
 * apart and does not reveal them. It helps an attacker no more than a row does: a guessed key can be tested with one
 * HMAC by its id, and also by the MAC of any row.
 */
export function keyIdOf(sign: AuditSign): string {
  return sign(KEY_ID_TEXT).slice(0, KEY_ID_CHARACTERS);
}

const SEALED = /^(\{.*),"mac":"([A-Za-z0-9_-]{43})"\}$/s;

export function sealRow(row: AuditRow, sign: AuditSign): SealedRow {
  const text = toJson(row) ?? '';
  const mac = sign(text);
  return { row, mac, line: `${text.slice(0, -1)},"mac":"${mac}"}` };
}

/**
 * Parses a stored line into its row, its MAC and the text that the MAC authenticates. Returns null if the line is not a
 * row. Does not check the MAC.
 */
export function openRow(line: string): (SealedRow & { readonly text: string }) | null {
  const [, open = '', mac = ''] = SEALED.exec(line) ?? [];
  const text = `${open}}`;
  const row = open === '' ? null : parsedJson(text);
  return isRow(row) ? { row, mac, line, text } : null;
}

const KINDS: ReadonlySet<unknown> = new Set<AuditEntry['kind']>(['act', 'outcome', 'trim', 'torn']);

function isRow(value: unknown): value is AuditRow {
  if (!isRecord(value)) return false;
  const { seq, prev, at, kind, key } = value;
  if (key !== undefined && typeof key !== 'string') return false;
  return Number.isSafeInteger(seq) && typeof prev === 'string' && typeof at === 'number' && KINDS.has(kind);
}

// The port of the audit: a chain of rows that only grows at its end, and is trimmed at its beginning.

/** The newest row of the chain. `seq` 0 and an empty MAC: the chain has no rows. */
export type AuditHead = { readonly seq: number; readonly mac: string };

/**
 * The part of the chain that is kept. `count` is the number of its rows. `firstSeq` and `firstAt` are the number and
 * the time of its oldest row; null if there are no rows.
 */
export type AuditExtent = {
  readonly count: number;
  readonly firstSeq: number | null;
  readonly firstAt: number | null;
};

export type AuditAppend = {
  readonly sealed: SealedRow;
  /**
   * The last row number to remove when the new row is appended: that row and all before it are removed in the same act.
   * Null: none is removed.
   */
  readonly dropThrough: number | null;
  /**
   * Limits how often one principal acts. The row of an act is refused if its `who` already has `limit` rows of the same
   * action within `windowMs`. Null: no limit.
   */
  readonly rate: AuditRate | null;
};
export type AuditRate = { readonly limit: number; readonly windowMs: number };

export type AppendResult =
  | { readonly kind: 'appended'; readonly extent: AuditExtent }
  /** The newest row is not the predecessor that the new row names. Nothing was written. */
  | { readonly kind: 'moved'; readonly head: AuditHead }
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

/** The row of an act, and the row of its outcome if there is one, as they are stored. */
export type ListedAct = { readonly seq: number; readonly act: string; readonly outcome: string | null };

/**
 * The rows of one chain. Appending is atomic, also between processes, so the chain never forks. Throws
 * `store_unavailable` if the store does not answer; the row may then have been written or not.
 */
export interface AuditStore {
  /** The unfinished last row that was removed when the store was opened; null or absent: there was none. */
  readonly torn?: { readonly bytes: number; readonly sha256: string } | null;
  head(): MaybePromise<AuditHead>;
  /**
   * Appends a row if its `prev` and `seq` follow the newest row. When this resolves, the row is as durable as the
   * store.
   */
  append(append: AuditAppend): MaybePromise<AppendResult>;
  /**
   * Lists at most `first` rows of acts, newest first, with numbers below `before` (null: from the newest on). `userId`:
   * only acts that concern this user; null: all.
   */
  list(
    userId: string | null,
    page: { readonly before: number | null; readonly first: number },
  ): MaybePromise<readonly ListedAct[]>;
  /** Returns the stored lines of at most `first` rows whose numbers are above `after`, in order. */
  lines(after: number, first: number): MaybePromise<readonly string[]>;
  close?(): MaybePromise<void>;
}

// Writes the audit log: one line for each operation of an administrator, before the operation.

/** The message of the log line of each operation. */
const AUDIT_MESSAGES: Readonly<Record<OperatorAction, string>> = {
  payload: 'an administrator reads a payload',
  reveal: 'an administrator reveals a payload',
  disconnect: 'an administrator disconnects a client',
  drain: 'an administrator drains a node',
  cancel: 'an administrator cancels a command',
  revoke: 'an administrator revokes tokens',
};

/**
 * Writes one audit line: the principal (`requester`), the operation (`action`) and its subject. `subject` holds ids and
 * never a payload or a token.
 */
export function logAct(
  log: Log,
  requester: Principal,
  {
    action,
    subject,
    reason,
  }: { readonly action: OperatorAction; readonly subject: AuditSubject; readonly reason: string | null },
): void {
  const told = reason === null ? {} : { reason };
  log.info({ audit: action, requester: subjectOf(requester), ...subject, ...told }, AUDIT_MESSAGES[action]);
}

// Checks a chain of audit rows: that relays wrote all of them, and that none was changed, moved or removed.

type ChainFault = {
  /** The number of the row; null if it cannot be read. */
  readonly seq: number | null;
  readonly message: string;
};

/** Rows signed with one key that the check was not given, so that it cannot tell whether their content was changed. */
export type UncheckedRows = {
  /** The id of the key. */
  readonly key: string;
  /** The number of these rows, and the numbers of the first and the last of them. */
  readonly rows: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
};

export type ChainReport = {
  readonly rows: number;
  readonly firstSeq: number | null;
  readonly lastSeq: number | null;
  /** The MAC of the last row. If you keep it elsewhere, it shows later whether rows at the end were removed. */
  readonly lastMac: string | null;
  /** The first row that is wrong; null if none is. */
  readonly fault: ChainFault | null;
  /**
   * The rows whose keys are not given, by key, in the order in which the keys appear. Without a fault and without such
   * rows, the chain is whole.
   */
  readonly unchecked: readonly UncheckedRows[];
};

/**
 * A gap of missing rows, up to the row `seq - 1`. `prev`: the MAC of the last missing row, as the row after the gap
 * names it.
 */
type Gap = { readonly from: number; readonly seq: number; readonly prev: string };

/**
 * Takes the rows of a chain in order. A gap is not a fault if a row of kind `trim` in the same chain records that these
 * rows were removed. For a row whose key is not given, only its place in the chain is checked: its number, and that the
 * row and its successor name the MACs of their predecessors.
 */
export class ChainVerifier {
  readonly #keys: ReadonlyMap<string, AuditSign>;
  readonly #gaps: Gap[] = [];
  readonly #trims = new Set<string>();
  readonly #unchecked = new Map<string, UncheckedRows>();
  #rows = 0;
  #first: number | null = null;
  #last: { readonly seq: number; readonly mac: string } = { seq: 0, mac: '' };
  #fault: ChainFault | null = null;

  /** `keys`: the present key, and earlier ones with which old rows may have been signed. */
  constructor(keys: readonly AuditSign[]) {
    this.#keys = new Map(keys.map((sign) => [keyIdOf(sign), sign]));
  }

  add(line: string): void {
    if (this.#fault) return;
    const opened = openRow(line);
    if (!opened) return this.#fail(null, `The row after number ${this.#last.seq} cannot be read.`);
    const { row, mac } = opened;
    const { seq, key } = row;
    const changed = this.#changeOf(opened);
    if (changed !== null) return this.#fail(seq, changed);
    if (seq <= this.#last.seq)
      return this.#fail(seq, `Row ${seq} is not in its place: row ${this.#last.seq} is before it.`);
    if (seq > this.#last.seq + 1) this.#gaps.push({ from: this.#last.seq + 1, seq, prev: row.prev });
    else if (row.prev !== this.#last.mac) return this.#fail(seq, `Row ${seq} does not follow row ${this.#last.seq}.`);
    if (key !== undefined && !this.#keys.has(key)) this.#noteUnchecked(key, seq);
    this.#note(row);
    this.#last = { seq, mac };
  }

  report(): ChainReport {
    const { seq, mac } = this.#last;
    const missing = this.#gaps.find((gap) => !this.#trims.has(`${gap.seq - 1}:${gap.prev}`));
    return {
      rows: this.#rows,
      firstSeq: this.#first,
      lastSeq: this.#rows > 0 ? seq : null,
      lastMac: this.#rows > 0 ? mac : null,
      fault: missing ? missingRows(missing) : this.#fault,
      unchecked: [...this.#unchecked.values()],
    };
  }

  /** Returns the fault that the MAC of a row shows; null if the MAC is right, or if its key was not given. */
  #changeOf({ row: { seq, key }, mac, text }: SealedRow & { readonly text: string }): string | null {
    if (key === undefined) {
      // Older relays did not name the key.
      const signed = [...this.#keys.values()].some((sign) => sign(text) === mac);
      return signed ? null : `Row ${seq} was changed, or was written under another key.`;
    }
    const sign = this.#keys.get(key);
    return !sign || sign(text) === mac ? null : `Row ${seq} was changed.`;
  }

  #note(row: AuditRow): void {
    this.#rows++;
    this.#first ??= row.seq;
    if (row.kind === 'trim') this.#trims.add(`${row.through}:${row.throughMac}`);
  }

  #noteUnchecked(key: string, seq: number): void {
    const { rows, firstSeq } = this.#unchecked.get(key) ?? { rows: 0, firstSeq: seq };
    this.#unchecked.set(key, { key, rows: rows + 1, firstSeq, lastSeq: seq });
  }

  #fail(seq: number | null, message: string): void {
    this.#fault = { seq, message };
  }
}

function missingRows({ from, seq }: Gap): ChainFault {
  const which = from === seq - 1 ? `Row ${from} is` : `Rows ${from} to ${seq - 1} are`;
  return { seq, message: `${which} missing before row ${seq}, and no row says that they were trimmed.` };
}
