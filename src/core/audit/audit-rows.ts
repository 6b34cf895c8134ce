/** Audit rows: their form, and how each row is chained to the previous one by its MAC. */
import { isRecord, parsedJson, toJson } from '../json.ts';

/**
 * What an administrator did, or a user who paused or resumed. `payload`: read payloads by an argument of a listing.
 * `reveal`: read one payload and gave the reason.
 */
export type OperatorAction =
  'disconnect' | 'drain' | 'cancel' | 'payload' | 'reveal' | 'pause' | 'resume' | 'revoke' | 'enrol' | 'rename';

/** The ids of what an act concerned; never a payload or a token. `view`: `raw` for the raw sample of history. */
export type AuditSubject = Readonly<
  Partial<
    Record<
      | 'userId'
      | 'clientId'
      | 'instanceId'
      | 'commandId'
      | 'messageId'
      | 'stream'
      | 'view'
      | 'nodeId'
      | 'pauseId'
      | 'tokenId',
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
export type AuditRow = AuditEntry & {
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
