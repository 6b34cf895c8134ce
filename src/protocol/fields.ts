/**
 * Defines the kinds of fields in frame headers and report rows. A table names the kind of each field; its types and its
 * checks are derived from it.
 */
import { TOKEN_CHARS, isIn, type Range } from './bounds.ts';

/** The kinds of fields in frames from the relay. */
type DownKind = 'id' | 'name' | 'user' | 'text' | 'int' | 'bool';
/** The kinds of fields in rows that a client reports. */
type RowKind = 'id' | 'bool' | keyof typeof ROW_WORDS | 'title' | 'word' | 'count';
/** All kinds of fields. In a table, `?` after the kind marks an optional field. */
export type FieldKind = DownKind | RowKind | WordKind | 'prose' | 'token';
export type Table = Readonly<Record<string, FieldKind | `${FieldKind}?`>>;
/** The table of a row that a client reports. */
export type RowTable = Readonly<Record<string, RowKind | `${RowKind}?`>>;
/** The table of a frame from the relay. */
export type DownTable = Readonly<Record<string, DownKind | `${DownKind}?`>>;

export const CLIENT_TYPES = ['browser', 'console', 'mobile', 'web'] as const;
/** The kinds of fields in report rows whose values are words of a fixed set. */
export const ROW_WORDS = {
  contextStatus: ['active', 'idle', 'closed'],
  windowStatus: ['open', 'closed'],
  ownership: ['user-owned', 'worker'],
} as const;
export const WAIT_STAGES = ['admitted', 'acknowledged', 'completed'] as const;
/** The other kinds of fields whose values are words of a fixed set. Client libraries do not contain these words. */
export const WORDS = {
  clientType: CLIENT_TYPES,
  waitFor: WAIT_STAGES,
  siteOp: ['register', 'remove'],
  pauseOp: ['pause', 'resume'],
  pauseQueued: ['keep', 'cancel'],
  pauseRunning: ['leave', 'cancel'],
  stages: ['first', 'all'],
} as const;
type Words = typeof ROW_WORDS & typeof WORDS;
type WordKind = keyof Words;
export type WireClientType = (typeof CLIENT_TYPES)[number];
export type WireWaitStage = (typeof WAIT_STAGES)[number];

/** The types of the values that are not plain strings. */
type Values = { int: number; count: number; bool: boolean } & { [K in WordKind]: Words[K][number] };
type ValueOf<K> = K extends keyof Values ? Values[K] : string;

/**
 * The type of the headers that a table describes. An optional member may be undefined, because JSON.stringify then
 * omits it.
 */
export type FieldsOf<T extends Table> = {
  readonly [F in keyof T as T[F] extends `${string}?` ? never : F]: ValueOf<T[F]>;
} & {
  readonly [F in keyof T as T[F] extends `${string}?` ? F : never]?: T[F] extends `${infer K}?`
    ? ValueOf<K> | undefined
    : never;
};

/** The patterns of ids, and of the names of actions and events, without anchors. */
export const ID_PATTERN = '[A-Za-z0-9_.:@~-]{1,128}';
export const NAME_PATTERN = '[A-Za-z][A-Za-z0-9_.:-]{0,127}';
/**
 * Matches the ids of clients, instances, commands, sites, windows, contexts and tasks. `.` and `..` are excluded,
 * because an id may be a segment of a URL path, and these two would disappear from it.
 */
export const ID = /* @__PURE__ */ new RegExp(`^(?!\\.{1,2}$)${ID_PATTERN}$`);
/** Matches the names of actions and events. */
export const NAME = /* @__PURE__ */ new RegExp(`^${NAME_PATTERN}$`);
/** Descriptions of valid ids and names, for error messages. */
export const ID_FORM = '1 to 128 of A-Z a-z 0-9 . _ : @ ~ -, neither . nor ..';
export const NAME_FORM = 'a letter, then up to 127 of A-Z a-z 0-9 _ . : -';

/** A check of a value. `expected`: describes a valid value, for error messages. */
export type Check = { readonly expected: string; test(value: unknown): boolean };
/** A check that may lack a description. */
export type BareCheck = Pick<Check, 'test'> & Partial<Check>;

/**
 * The checks of frames from the relay. They have no descriptions, because a client ignores an invalid frame. Besides
 * these, a client library needs only the checks of the rows that it reports.
 */
export const DOWN_CHECKS: Readonly<Record<DownKind, BareCheck>> = {
  id: { test: (v) => typeof v === 'string' && ID.test(v) },
  name: { test: (v) => typeof v === 'string' && NAME.test(v) },
  user: { test: (v) => typeof v === 'string' && v.length > 0 && v.length <= 128 },
  text: { test: (v) => typeof v === 'string' && v.length <= 1024 },
  int: { test: (v) => Number.isSafeInteger(v) },
  bool: { test: (v) => typeof v === 'boolean' },
};

/**
 * The checks of report rows. They, and all other checks, are marked as pure, so that bundlers drop them from a library
 * that does not use them.
 */
const ROW_CHECKS = /* @__PURE__ */ rowChecks();

function rowChecks(): Readonly<Record<RowKind, Check>> {
  return {
    id: { expected: ID_FORM, ...DOWN_CHECKS.id },
    bool: { expected: 'true or false', ...DOWN_CHECKS.bool },
    contextStatus: oneOf(ROW_WORDS.contextStatus),
    windowStatus: oneOf(ROW_WORDS.windowStatus),
    ownership: oneOf(ROW_WORDS.ownership),
    title: textOf(0, 256),
    word: textOf(1, 64),
    count: integerIn({ min: 0, max: 1_000_000 }),
  };
}

/** The checks of all kinds of fields. */
export const CHECKS = /* @__PURE__ */ allChecks();

function allChecks(): Readonly<Record<FieldKind, Check>> {
  return {
    ...rowChecks(),
    name: { expected: NAME_FORM, ...DOWN_CHECKS.name },
    user: { expected: '1 to 128 characters', ...DOWN_CHECKS.user },
    text: textOf(0, 1024),
    int: { expected: 'an integer', ...DOWN_CHECKS.int },
    // The length is not limited here: the receiver cuts the text, so a long message does not make its frame invalid.
    prose: { expected: 'a string', test: (v) => typeof v === 'string' },
    token: textOf(1, TOKEN_CHARS),
    clientType: oneOf(WORDS.clientType),
    waitFor: oneOf(WORDS.waitFor),
    siteOp: oneOf(WORDS.siteOp),
    pauseOp: oneOf(WORDS.pauseOp),
    pauseQueued: oneOf(WORDS.pauseQueued),
    pauseRunning: oneOf(WORDS.pauseRunning),
    stages: oneOf(WORDS.stages),
  };
}

export function oneOf(words: readonly unknown[]): Check {
  return { expected: `one of ${words.join(', ')}`, test: (v) => words.includes(v) };
}

export function textOf(min: number, max: number): Check {
  const expected = min === 0 ? `a string of at most ${max} characters` : `a string of ${min} to ${max} characters`;
  return { expected, test: (v) => typeof v === 'string' && v.length >= min && v.length <= max };
}

function integerIn(range: Range): Check {
  return { expected: `an integer from ${range.min} to ${range.max}`, test: (v) => isIn(v, range) };
}

/** The most characters in the id of a trace or a span of another tracing system. */
export const TRACE_MAX_CHARS = 256;
/** Matches the id of a trace or a span of another tracing system. A character is a Unicode code point. */
export const TRACE = /* @__PURE__ */ new RegExp(`^[^\\p{Cc}\\u2028\\u2029]{0,${TRACE_MAX_CHARS}}$`, 'u');
export const TRACE_FORM = `at most ${TRACE_MAX_CHARS} characters without control characters`;

/** A field of a table with its check. */
export type FieldRule = { readonly field: string; readonly optional: boolean; readonly check: BareCheck };

/** Converts a table to a list of its fields. `checks`: the checks of all kinds that occur in the table. */
export function membersOf<Kind extends string>(
  table: Readonly<Record<string, Kind | `${Kind}?`>>,
  checks: Readonly<Record<Kind, BareCheck>>,
): readonly FieldRule[] {
  return Object.entries(table).map(([field, spec]) => ({
    field,
    optional: spec.endsWith('?'),
    check: checks[spec.replace('?', '') as Kind],
  }));
}

/** Returns the fields of a table. Cached, so that a table is not converted again for each row. */
function rowMembersOf(table: RowTable): readonly FieldRule[] {
  const known = MEMBERS.get(table);
  if (known) return known;
  const members = membersOf(table, ROW_CHECKS);
  MEMBERS.set(table, members);
  return members;
}

const MEMBERS = /* @__PURE__ */ new WeakMap<RowTable, readonly FieldRule[]>();

/**
 * Checks a report row against its table. Returns the first fault; null if there is none. Ignores unknown members,
 * because a newer peer may send them. A null member counts as absent.
 */
export function checkRow(table: RowTable, row: Readonly<Record<string, unknown>>): string | null {
  for (const member of rowMembersOf(table)) {
    const value = Object.hasOwn(row, member.field) ? row[member.field] : undefined;
    const wrong = faultIn(member, value);
    if (wrong !== null) return wrong;
  }
  return null;
}

/** Returns a description of what is wrong with the value of a field; null if the value is valid. */
export function faultIn({ field, optional, check }: FieldRule, value: unknown): string | null {
  if (value === undefined || value === null) return optional ? null : `${field}: required`;
  return check.test(value) ? null : `${field}: expected ${check.expected}`;
}
