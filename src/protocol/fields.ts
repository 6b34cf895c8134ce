/**
 * The kinds of fields in frame headers and report rows. A table names the kind of each field; types and checks follow
 * from it.
 */

/** The kinds of fields in the frames that the relay sends. */
type DownKind = 'id' | 'name' | 'user' | 'text' | 'int' | 'bool';
/** The kinds of fields in the rows that a client reports. */
type RowKind = 'id' | 'bool' | keyof typeof ROW_WORDS | 'title' | 'word' | 'count';
/** The kinds of fields; in a table, `?` marks an optional field. Check and type both follow from the table. */
export type FieldKind = DownKind | RowKind | WordKind | 'prose' | 'token';
export type Table = Readonly<Record<string, FieldKind | `${FieldKind}?`>>;
/** The table of a row that a client reports. */
export type RowTable = Readonly<Record<string, RowKind | `${RowKind}?`>>;
/** The table of a frame that the relay sends. */
export type DownTable = Readonly<Record<string, DownKind | `${DownKind}?`>>;

export const CLIENT_TYPES = ['browser', 'console', 'mobile', 'web'] as const;
/** The kinds of fields in reported rows whose values are words of a closed set. */
export const ROW_WORDS = {
  contextStatus: ['active', 'idle', 'closed'],
  windowStatus: ['open', 'closed'],
  ownership: ['user-owned', 'worker'],
} as const;
/** The other kinds whose values are words of a closed set. A client library is built without these words. */
export const WORDS = {
  clientType: CLIENT_TYPES,
  waitFor: ['admitted', 'acknowledged', 'completed'],
  siteOp: ['register', 'remove'],
  stages: ['first', 'all'],
} as const;
type Words = typeof ROW_WORDS & typeof WORDS;
type WordKind = keyof Words;
export type WireClientType = (typeof CLIENT_TYPES)[number];
export type WireWaitStage = (typeof WORDS)['waitFor'][number];

/** The value types of the kinds that are not plain strings. */
type Values = { int: number; count: number; bool: boolean } & { [K in WordKind]: Words[K][number] };
type ValueOf<K> = K extends keyof Values ? Values[K] : string;

/** The header that a table describes. An optional member may be undefined: JSON.stringify omits it. */
export type FieldsOf<T extends Table> = {
  readonly [F in keyof T as T[F] extends `${string}?` ? never : F]: ValueOf<T[F]>;
} & {
  readonly [F in keyof T as T[F] extends `${string}?` ? F : never]?: T[F] extends `${infer K}?`
    ? ValueOf<K> | undefined
    : never;
};

/** Matches the ids of clients, instances, commands, sites, windows, contexts and tasks. */
export const ID = /^[A-Za-z0-9_.:@~-]{1,128}$/;
/** Matches the names of actions and events. */
export const NAME = /^[A-Za-z][A-Za-z0-9_.:-]{0,127}$/;

/** `expected` describes a valid value, for the sender of a wrong one. */
export type Check = { readonly expected: string; test(value: unknown): boolean };
/** A check that need not describe a valid value. */
export type BareCheck = Pick<Check, 'test'> & Partial<Check>;

/**
 * The checks of the frames that the relay sends. They describe nothing, because a client ignores an invalid frame. A
 * client library needs no other checks but those of the rows that it reports.
 */
export const DOWN_CHECKS: Readonly<Record<DownKind, BareCheck>> = {
  id: { test: (v) => typeof v === 'string' && ID.test(v) },
  name: { test: (v) => typeof v === 'string' && NAME.test(v) },
  user: { test: (v) => typeof v === 'string' && v.length > 0 && v.length <= 128 },
  text: { test: (v) => typeof v === 'string' && v.length <= 1024 },
  int: { test: (v) => Number.isSafeInteger(v) },
  bool: { test: (v) => typeof v === 'boolean' },
};

/** The checks of reported rows. Marked as pure, so that a library may be built without them; so are all checks. */
const ROW_CHECKS = /* @__PURE__ */ rowChecks();

function rowChecks(): Readonly<Record<RowKind, Check>> {
  return {
    id: { expected: '1 to 128 of A-Z a-z 0-9 . _ : @ ~ -', ...DOWN_CHECKS.id },
    bool: { expected: 'true or false', ...DOWN_CHECKS.bool },
    contextStatus: oneOf(ROW_WORDS.contextStatus),
    windowStatus: oneOf(ROW_WORDS.windowStatus),
    ownership: oneOf(ROW_WORDS.ownership),
    title: textOf(0, 256),
    word: textOf(1, 64),
    count: {
      expected: 'an integer from 0 to 1000000',
      test: (v) => typeof v === 'number' && Number.isInteger(v) && v >= 0 && v <= 1_000_000,
    },
  };
}

/** The checks of all kinds of fields. */
export const CHECKS = /* @__PURE__ */ allChecks();

function allChecks(): Readonly<Record<FieldKind, Check>> {
  return {
    ...rowChecks(),
    name: { expected: 'a letter, then up to 127 of A-Z a-z 0-9 _ . : -', ...DOWN_CHECKS.name },
    user: { expected: '1 to 128 characters', ...DOWN_CHECKS.user },
    text: textOf(0, 1024),
    int: { expected: 'an integer', ...DOWN_CHECKS.int },
    // Unbounded here: the receiver truncates it, so that a long message does not make its frame invalid.
    prose: { expected: 'a string', test: (v) => typeof v === 'string' },
    token: textOf(1, 8192),
    clientType: oneOf(WORDS.clientType),
    waitFor: oneOf(WORDS.waitFor),
    siteOp: oneOf(WORDS.siteOp),
    stages: oneOf(WORDS.stages),
  };
}

function oneOf(words: readonly unknown[]): Check {
  return { expected: `one of ${words.join(', ')}`, test: (v) => words.includes(v) };
}

function textOf(min: number, max: number): Check {
  const expected = min === 0 ? `a string of at most ${max} characters` : `a string of ${min} to ${max} characters`;
  return { expected, test: (v) => typeof v === 'string' && v.length >= min && v.length <= max };
}

/** One field of a table with its check. */
export type FieldRule = { readonly field: string; readonly optional: boolean; readonly check: BareCheck };

/** Returns a table as a list of members. `checks`: the checks of all kinds that the table uses. */
export function membersOf<Kind extends FieldKind>(
  table: Readonly<Record<string, Kind | `${Kind}?`>>,
  checks: Readonly<Record<Kind, BareCheck>>,
): readonly FieldRule[] {
  return Object.entries(table).map(([field, spec]) => ({
    field,
    optional: spec.endsWith('?'),
    check: checks[spec.replace('?', '') as Kind],
  }));
}

/** Returns the members of a table. Cached, so that the specs of a table are not parsed again for each row. */
function rowMembersOf(table: RowTable): readonly FieldRule[] {
  const known = MEMBERS.get(table);
  if (known) return known;
  const members = membersOf(table, ROW_CHECKS);
  MEMBERS.set(table, members);
  return members;
}

const MEMBERS = /* @__PURE__ */ new WeakMap<RowTable, readonly FieldRule[]>();

/**
 * Checks a reported row against its table; returns its first fault or null. Other fields are ignored, so that a newer
 * peer may add some. A field that is null counts as absent.
 */
export function checkRow(table: RowTable, row: Readonly<Record<string, unknown>>): string | null {
  for (const member of rowMembersOf(table)) {
    const value = Object.hasOwn(row, member.field) ? row[member.field] : undefined;
    const wrong = faultIn(member, value);
    if (wrong !== null) return wrong;
  }
  return null;
}

/** Returns a description of what is wrong with this value of the field; null when the value is valid. */
export function faultIn({ field, optional, check }: FieldRule, value: unknown): string | null {
  if (value === undefined || value === null) return optional ? null : `${field}: required`;
  return check.test(value) ? null : `${field}: expected ${check.expected}`;
}
