/**
 * Builds one call of program/transaction.lua from the acts of a tick: the reads, the conditions that must still hold,
 * the guards, and the writes, merged by key.
 *
 * It contains no rule about commands.
 */
import type { ClientKey } from '../../../core/ids.ts';
import type { BucketRate } from '../../../core/rates.ts';
import type { KeyKind } from '../keys.ts';
import type { StoreFrame } from '../program-calls.ts';

/** The settings of a call for its partition. `key`: returns the name of a key. */
export type CallSettings = {
  readonly key: (kind: KeyKind, part?: string, more?: string) => string;
  readonly retentionMs: number;
  readonly streamMessages: number;
  readonly streamsPerUser: number;
  /** Whether Redis decides the acts one by one in any case. For tests. */
  readonly careful: boolean;
  /** Whether the call can open streams. If so, it renews the expiry of each stream. */
  readonly opens: boolean;
};

/** How far the relay's time may be behind (BEHIND_MS) or ahead of (AHEAD_MS) the time of Redis, in milliseconds. */
const BEHIND_MS = 250;
const AHEAD_MS = 1_000;
/**
 * The most rows beyond the limit of a stream that may stay for a while, as in lib-history-blocks of history-rows.lua.
 */
const SLACK = 256;

const NUL = '\0';
/** Stands for the limit of a number that the call only decreases. */
const NO_LIMIT = 1e15;

/** A HASH with the fields that are read. */
export type ReadHash = { readonly slot: string; readonly key: string; readonly fields: Set<string> };

/** For each HASH, by its slot: a comparison is a field, the expected text, and the acts that need it. */
type Comparisons = Map<string, Map<string, [field: string, expected: string, acts: string]>>;
type Comparison = { readonly act: number; readonly field: string; readonly expected: string };
type Write = { readonly start: readonly string[]; readonly words: string[]; index: string };
type Sum = { sum: number; come: number; index: string };
/** `place`: the index among the scopes of the call, from 1. */
type Scope = Sum & { readonly key: string; readonly scope: string; readonly place: number; limit: number; go: number };
/** `place`: the index among the numbers of the call, from 0. */
type CallNumber = Sum & { readonly place: number; words: readonly string[] };
type Bucket = { readonly words: readonly string[]; come: number; index: string };
type Share = Sum & {
  readonly of: ShareOf;
  readonly words: readonly string[];
  readonly over: readonly [string, string];
};
type Waiting = { readonly slot: string; index: string; readonly words: string[] };
/**
 * A mailbox for commands that were admitted after a queue was read. `states`: the fields of the commands that were
 * read.
 */
type Late = { readonly mailbox: string; readonly key: ClientKey; readonly states: readonly string[] };
type Stream = Pick<StreamOf, 'userId' | 'uh' | 'suffix'> & {
  readonly words: readonly string[];
  readonly renewal: readonly string[];
  readonly rows: string[];
  readonly ids: string[];
  /** The mark of each row; '' for a row without a mark. */
  readonly marks: string[];
  acts: string;
};

/**
 * A row of history. `commandId`: '' if the row is about no command. `mark`: the arguments of the row's mark; '' if it
 * has none.
 */
type RowOf = { readonly text: string; readonly commandId: string; readonly mark: string };

/** An amount that an act takes of a share or gives back. */
type ShareOf = {
  readonly letter: string;
  readonly uh: string;
  /** The span that gives the amount back when it is removed; '' if there is none. */
  readonly span: string;
  /** The guarantee of a user and the total; null if the share is not guarded. */
  readonly bound: readonly [guarantee: number, total: number | null] | null;
  /** For history: the index of users who are over their guarantee, and the user's member in it. */
  readonly over?: readonly [key: string, member: string];
};

/** A change of a number. `within`: the limit only holds while the scope has more than `above` reservations. */
type ChangeOfNumber = {
  readonly by: 1 | -1;
  readonly limit: number;
  readonly code: string;
  readonly within?: { readonly sh: string; readonly above: number };
};

/** The stream that a row is appended to. `renewal`: the arguments that renew its expiry; empty if no renewal is due. */
export type StreamOf = {
  readonly key: string;
  readonly userId: string;
  readonly uh: string;
  readonly suffix: string;
  readonly sth: string;
  readonly heads: ReadHash;
  readonly places: ReadHash;
  readonly renewal: readonly string[];
};

function sign(act: number, count: number): string {
  return String.fromCharCode(act, count);
}

/** The acts of one call, with everything that they read, check and write. An act is a number, from 1. */
export class TransactionCall {
  readonly now: number;
  readonly settings: CallSettings;
  readonly meta: ReadHash;
  acts = 0;
  /** `renewed`: the streams whose expiry this call renews. `opened`: the keys that it registers. */
  readonly renewed: string[] = [];
  readonly opened = new Set<string>();
  /**
   * By the key of a scope's reservations: the time by which this call makes Redis search the scope for due commands.
   */
  readonly searched = new Map<string, number>();
  readonly #hashes = new Map<string, ReadHash>();
  readonly #equal: Comparisons = new Map();
  readonly #starts: Comparisons = new Map();
  readonly #holds: Comparisons = new Map();
  readonly #only: string[][] = [];
  readonly #texts = new Map<string, string[]>();
  readonly #leases = new Map<string, { held: string; over: string }>();
  readonly #deadlines: string[][] = [];
  readonly #unknown: string[][] = [];
  readonly #scopes = new Map<string, Scope>();
  readonly #numbers = new Map<string, CallNumber>();
  /** The shares, by the hash of the user. */
  readonly #shares = new Map<string, Share[]>();
  readonly #buckets = new Map<string, Bucket>();
  readonly #counters = new Map<string, Sum & { readonly words: readonly string[] }>();
  /** `#writes`: the write commands by key. `#ordered`: all of them in order. */
  readonly #writes = new Map<string, Write[]>();
  readonly #ordered: Write[] = [];
  readonly #last: Write[] = [];
  readonly #links: string[][] = [];
  readonly #late: string[][] = [];
  readonly #waiting = new Map<string, Waiting>();
  readonly #streams = new Map<string, Stream>();

  constructor(settings: CallSettings, now: number) {
    this.settings = settings;
    this.now = now;
    this.meta = { slot: 'm', key: this.key('meta'), fields: new Set() };
    this.#hashes.set(this.meta.key, this.meta);
  }

  /** Returns the name of a key, in the form that keys.ts describes. */
  key(kind: KeyKind, part?: string, more?: string): string {
    return this.settings.key(kind, part, more);
  }

  /** Returns a HASH. Only those fields of it are read that are added to `fields`. */
  hash(key: string): ReadHash {
    const known = this.#hashes.get(key);
    if (known) return known;
    const made = { slot: String(this.#hashes.size), key, fields: new Set<string>() };
    this.#hashes.set(key, made);
    return made;
  }

  /** Requires that a field equals a text; '': that the field is absent. */
  equal(act: number, hash: ReadHash, field: string, expected: string): void {
    compare(this.#equal, hash, { act, field, expected });
  }

  starts(act: number, hash: ReadHash, field: string, expected: string): void {
    compare(this.#starts, hash, { act, field, expected });
  }

  /** Requires that a field contains a text; '': that the field is the head of an open stream. */
  holds(act: number, hash: ReadHash, field: string, expected: string): void {
    compare(this.#holds, hash, { act, field, expected });
  }

  /** Requires that the HASH of a client contains no live commands except those with these fields. */
  only(act: number, { slot }: ReadHash, states: readonly string[]): void {
    this.#only.push([slot, String.fromCharCode(act), String(states.length), ...states]);
  }

  /** Requires that a STRING equals a text; '': that it is absent. */
  text(act: number, key: string, expected: string): void {
    this.#texts.set(`${act} ${key}`, [key, expected, String.fromCharCode(act)]);
  }

  /** Requires, by the clock of Redis, that the lease of a node is over (`isOver`) or still held. */
  lease(act: number, node: string, isOver: boolean): void {
    const acts = this.#leases.get(node) ?? { held: '', over: '' };
    this.#leases.set(node, acts);
    acts[isOver ? 'over' : 'held'] += String.fromCharCode(act);
  }

  /** Requires, by the clock of Redis, that a time has come (`isOver`) or has not come yet. */
  deadline(act: number, at: number, isOver: boolean): void {
    this.#deadlines.push([String(at), String.fromCharCode(act), isOver ? '1' : '']);
  }

  /** Requires that no ended command of the user has this name. */
  unknown(act: number, uh: string, name: string): void {
    this.#unknown.push([this.key('spans', uh), this.key('ended', uh, ''), name, String.fromCharCode(act)]);
  }

  /** Adds a reservation to a scope (`by` 1), or removes one (-1). */
  scope(act: number, of: { readonly sh: string; readonly scope: string; readonly limit: number }, by: 1 | -1): void {
    const { sh, scope, limit } = of;
    const held = this.#scopes.get(sh) ?? {
      key: this.key('reserved', sh),
      scope,
      place: this.#scopes.size + 1,
      limit: NO_LIMIT,
      sum: 0,
      come: 0,
      go: 0,
      index: '',
    };
    this.#scopes.set(sh, held);
    if (by > 0) {
      held.come++;
      held.limit = Math.min(held.limit, limit);
    } else held.go++;
    held.index += sign(act, by + 64);
  }

  /**
   * Changes a number in a HASH. If the number grows, the limit applies. Returns the index of the number in the answer.
   */
  number(act: number, { slot, fields }: ReadHash, field: string, change: ChangeOfNumber): number {
    fields.add(field);
    const { by, limit, code, within } = change;
    const name = slot + NUL + field;
    const words = (most: number): readonly string[] => {
      const above = within ? [String(this.#scopes.get(within.sh)?.place ?? 0), String(within.above)] : ['0', '0'];
      return [slot, field, String(most), code, ...above];
    };
    const held = this.#numbers.get(name) ?? {
      words: words(NO_LIMIT),
      place: this.#numbers.size,
      sum: 0,
      come: 0,
      index: '',
    };
    if (by > 0) held.words = words(limit);
    this.#numbers.set(name, held);
    add(held, by);
    held.index += sign(act, by + 64);
    return held.place;
  }

  share(act: number, of: ShareOf, by: number): void {
    if (by === 0) return;
    const held = this.#shareOf(of);
    add(held, by);
    held.index += `${act}:${by} `;
  }

  #shareOf(of: ShareOf): Share {
    const { letter, uh, span, bound, over = ['', ''] } = of;
    const ofUser = this.#shares.get(uh) ?? [];
    const known = ofUser.find((one) => one.of.letter === letter && one.of.span === span && one.of.bound === bound);
    if (known) return known;
    const own = `${letter}:${uh}`;
    const ofSpan = span === '' ? '' : `${span}:${uh}`;
    const [guarantee, total] = bound ?? [-1, null];
    this.meta.fields.add(letter).add(own);
    if (ofSpan !== '') this.meta.fields.add(ofSpan);
    const words = [letter, own, ofSpan, String(guarantee), String(total ?? -1)];
    const made = { of, words, over, sum: 0, come: 0, index: '' };
    if (ofUser.push(made) === 1) this.#shares.set(uh, ofUser);
    return made;
  }

  /** Takes a token of the bucket with this key. The bucket must have one, by the time of Redis. */
  token(act: number, key: string, { burst, perSecond }: BucketRate): void {
    const held = this.#buckets.get(key) ?? { words: [key, String(burst), String(perSecond)], come: 0, index: '' };
    this.#buckets.set(key, held);
    held.come++;
    held.index += sign(act, 1 + 64);
  }

  /** Adds 1 to a field of a HASH. */
  count(act: number, key: string, field: string): void {
    const name = key + NUL + field;
    const held = this.#counters.get(name) ?? { words: [key, field], sum: 0, come: 0, index: '' };
    this.#counters.set(name, held);
    held.sum++;
    held.index += sign(act, 2);
  }

  /**
   * Adds arguments of an act to the Redis command that begins with `start`: the name, the key, and perhaps further
   * arguments.
   */
  write(act: number, start: readonly string[], words: readonly string[]): void {
    const held = this.#writeOf(start);
    for (const word of words) held.words.push(word);
    held.index += sign(act, words.length + 1);
  }

  #writeOf(start: readonly string[]): Write {
    const [, key = ''] = start;
    const ofKey = this.#writes.get(key) ?? [];
    const known = ofKey.find(
      (one) => one.start.length === start.length && one.start.every((word, i) => word === start[i]),
    );
    if (known) return known;
    const made = { start, words: [], index: '' };
    if (ofKey.push(made) === 1) this.#writes.set(key, ofKey);
    this.#ordered.push(made);
    return made;
  }

  /** Adds a Redis command for all acts together, after the other writes. Repeating it must be harmless. */
  once(words: readonly string[]): void {
    this.#last.push({ start: words, words: [], index: '' });
  }

  /** Writes the link of a client. Redis inserts the last place of the client's queue between the two texts. */
  link(act: number, { slot, fields }: ReadHash, texts: readonly [start: string, rest: string]): void {
    fields.add('o');
    this.#links.push([slot, String.fromCharCode(act), ...texts]);
  }

  /** Posts those queued commands of a client that were not read, in the order of their places. */
  late(act: number, { slot }: ReadHash, { mailbox, key: { userId, clientId }, states }: Late): void {
    this.#late.push([slot, String.fromCharCode(act), mailbox, userId, clientId, String(states.length), ...states]);
  }

  /**
   * Adds a waiting command. Its state is written with its place in the queue, which Redis assigns. `words`: field; the
   * texts of its state before and after the place; the least place before its own; and the mailbox of another node,
   * with the data that is posted there, or ''.
   */
  wait(act: number, { slot, fields }: ReadHash, words: readonly string[]): void {
    fields.add('o');
    const held = this.#waiting.get(slot) ?? { slot, index: '', words: [] };
    this.#waiting.set(slot, held);
    held.index += String.fromCharCode(act);
    for (const word of words) held.words.push(word);
  }

  /** Appends a row to a stream. */
  row(act: number, of: StreamOf, row: RowOf): void {
    const { key, heads, places, suffix, sth, renewal, userId, uh } = of;
    heads.fields.add(sth).add('t');
    if (row.commandId !== '') places.fields.add(row.commandId);
    const held = this.#streams.get(sth) ?? {
      userId,
      uh,
      suffix,
      words: [key, heads.slot, sth, suffix, places.slot],
      renewal,
      rows: [],
      ids: [],
      marks: [],
      acts: '',
    };
    this.#streams.set(sth, held);
    held.rows.push(row.text);
    held.ids.push(row.commandId);
    held.marks.push(row.mark);
    held.acts += String.fromCharCode(act);
  }

  /** Returns a stream of the call by its hash. */
  streamOf(sth: string): Pick<StreamOf, 'userId' | 'uh' | 'suffix'> | undefined {
    return this.#streams.get(sth);
  }

  /** Returns the arguments of the call after the key. */
  words({ node, epoch, number, confirmed, time }: StoreFrame): readonly string[] {
    const { retentionMs, streamMessages, streamsPerUser, careful } = this.settings;
    this.meta.fields.delete(`calls:${node}`);
    const head = ['floor', 'watched', `calls:${node}`];
    const out = [time, node, epoch, number, confirmed, this.now, BEHIND_MS, AHEAD_MS, this.acts].map(String);
    out.push(String(streamMessages), String(Math.min(SLACK, Math.floor(streamMessages / 32))), careful ? '1' : '');
    out.push(String(this.#hashes.size), String(retentionMs), String(streamsPerUser));
    for (const { slot, key, fields } of this.#hashes.values()) {
      const all = slot === 'm' ? [...head, ...fields] : [...fields];
      out.push(slot, key, String(all.length), ...all);
    }
    out.push(this.key('node', node));
    const part = (rows: Iterable<readonly string[]>, size: number): void => {
      out.push(String(size));
      for (const row of rows) for (const word of row) out.push(word);
    };
    for (const comparisons of [this.#equal, this.#starts, this.#holds]) {
      out.push(String(comparisons.size));
      for (const [slot, ofSlot] of comparisons) {
        out.push(slot);
        part(ofSlot.values(), ofSlot.size);
      }
    }
    part(this.#only, this.#only.length);
    part(this.#texts.values(), this.#texts.size);
    out.push(this.key('nodes'));
    out.push(String(this.#leases.size));
    for (const [name, { held, over }] of this.#leases) out.push(name, held, over);
    part(this.#deadlines, this.#deadlines.length);
    part(this.#unknown, this.#unknown.length);
    out.push(this.key('scopes'), String(this.#scopes.size));
    for (const { key, scope, limit, come, go, index } of this.#scopes.values())
      out.push(key, scope, String(limit), String(come), String(go), index);
    out.push(String(this.#numbers.size));
    for (const { words, sum, come, index } of this.#numbers.values())
      out.push(...words, String(sum), String(come), index);
    const shares = [...this.#shares.values()].flat();
    out.push(String(shares.length));
    for (const { words, sum, come, index, over } of shares)
      out.push(...words, String(sum), String(come), index, ...over);
    out.push(String(this.#buckets.size));
    for (const { words, come, index } of this.#buckets.values()) out.push(...words, String(come), index);
    out.push(String(this.#counters.size));
    for (const { words, sum, index } of this.#counters.values()) out.push(...words, String(sum), index);
    out.push(String(this.#ordered.length + this.#last.length));
    for (const writes of [this.#ordered, this.#last])
      for (const { start, words, index } of writes) {
        out.push(String(start.length), String(words.length), index, ...start);
        for (const word of words) out.push(word);
      }
    part(this.#links, this.#links.length);
    part(this.#late, this.#late.length);
    out.push(String(this.#waiting.size));
    for (const { slot, index, words } of this.#waiting.values()) {
      out.push(slot, String(index.length), index);
      for (const word of words) out.push(word);
    }
    out.push(String(this.#streams.size));
    for (const { words, renewal, rows, ids, marks, acts } of this.#streams.values()) {
      const isMarked = marks.some((mark) => mark !== '');
      out.push(...words, String(rows.length), acts, String(renewal.length), isMarked ? '1' : '');
      out.push(...renewal, ...rows, ...ids, ...(isMarked ? marks : []));
    }
    return out;
  }
}

/** Adds a comparison. A comparison that several acts need is sent once. */
function compare(all: Comparisons, { slot, fields }: ReadHash, { act, field, expected }: Comparison): void {
  fields.add(field);
  const ofSlot = all.get(slot) ?? new Map<string, [string, string, string]>();
  if (ofSlot.size === 0) all.set(slot, ofSlot);
  const name = field + NUL + expected;
  const known = ofSlot.get(name);
  if (known) known[2] += String.fromCharCode(act);
  else ofSlot.set(name, [field, expected, String.fromCharCode(act)]);
}

function add(held: Sum, by: number): void {
  held.sum += by;
  if (by > 0) held.come += by;
}
