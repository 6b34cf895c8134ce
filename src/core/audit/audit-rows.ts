/** Writes and reads audit rows. The MAC of each row chains it to the row before. */
import { isRecord, parsedJson, toJson } from '../json.ts';

/**
 * What an administrator did, or a user who paused or resumed. `payload`: read payloads by an argument of a listing.
 * `reveal`: read one payload, with a reason.
 */
export type OperatorAction =
  'disconnect' | 'drain' | 'cancel' | 'payload' | 'reveal' | 'pause' | 'resume' | 'revoke' | 'enrol' | 'rename';

/**
 * The ids of the objects that an action concerned; never a payload or a token. `view`: `raw` for the raw sample of
 * history.
 */
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

/** The row of an action. It is written before the action. */
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
  /** The outcome of the action whose row has the number `of`. */
  | { readonly kind: 'outcome'; readonly of: number; readonly outcome: string }
  /**
   * Records that the rows up to `through` were removed, because they were too old or too many. `throughMac`: the MAC of
   * the last removed row.
   */
  | { readonly kind: 'trim'; readonly through: number; readonly throughMac: string }
  /** Records that an unfinished row at the end of the file was removed. `bytes`: its length. */
  | { readonly kind: 'torn'; readonly bytes: number; readonly sha256: string };

/**
 * A row of the chain. `seq`: the number of the previous row plus one. `prev`: the MAC of the previous row; empty in the
 * first row. `key`: the id of the key that signed the row (`keyIdOf`); absent in rows of older relays. `node`: the node
 * that wrote the row. Times are epoch milliseconds.
 */
export type AuditRow = AuditEntry & {
  readonly seq: number;
  readonly prev: string;
  readonly key?: string;
  readonly at: number;
  readonly node: string;
};

/**
 * A row in the form in which it is stored. `line`: a JSON object whose last member `mac` authenticates all other
 * members.
 */
export type SealedRow = { readonly row: AuditRow; readonly mac: string; readonly line: string };

/** Signs a text: its HMAC-SHA-256 with the audit key, as base64url. */
export type AuditSign = (text: string) => string;

/** The text whose signature is the id of a key. No row has this text, because the text of a row begins with a brace. */
const KEY_ID_TEXT = 'callboard audit key id';
const KEY_ID_CHARACTERS = 12;

/**
 * Returns the id of a key: the first 12 characters (72 bits) of the signature of KEY_ID_TEXT, in base64url. The id
 * distinguishes keys and does not reveal them. It gives an attacker nothing new: testing a guessed key takes one HMAC
 * with the id, and one HMAC with the MAC of any row.
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
 * Parses a stored line: its row, its MAC, and the text that the MAC authenticates. Null if the line is not a row. Does
 * not check the MAC.
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
