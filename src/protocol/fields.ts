/** Describes frame headers as tables, and checks headers against them. */

/** The kinds of fields in the frames that the relay sends. */
type DownKind = 'id' | 'name' | 'user' | 'text' | 'int' | 'bool';
/**
 * The kinds of header fields that a frame table may use. `?` after a kind marks an optional field. Both the check
 * (`checkFields`) and the type (`FieldsOf`) are derived from one table, so the two cannot differ.
 */
export type FieldKind =
  | DownKind
  | 'prose'
  | 'token'
  | 'clientType'
  | 'waitFor'
  | 'contextStatus'
  | 'windowStatus'
  | 'ownership'
  | 'siteOp'
  | 'stages'
  | 'title'
  | 'word'
  | 'count';
type Spec = FieldKind | `${FieldKind}?`;
export type Table = Readonly<Record<string, Spec>>;
/** The table of a frame that the relay sends. */
export type DownTable = Readonly<Record<string, DownKind | `${DownKind}?`>>;

const CLIENT_TYPES = ['browser', 'console', 'mobile', 'web'] as const;
export type WireClientType = (typeof CLIENT_TYPES)[number];
export const WAIT_STAGES = ['admitted', 'acknowledged', 'completed'] as const;
export type WireWaitStage = (typeof WAIT_STAGES)[number];
const CONTEXT_STATUSES = ['active', 'idle', 'closed'] as const;
type WireContextStatus = (typeof CONTEXT_STATUSES)[number];
const WINDOW_STATUSES = ['open', 'closed'] as const;
type WireWindowStatus = (typeof WINDOW_STATUSES)[number];
const OWNERSHIPS = ['user-owned', 'worker'] as const;
type WireOwnership = (typeof OWNERSHIPS)[number];
const SITE_OPS = ['register', 'remove'] as const;
type WireSiteOp = (typeof SITE_OPS)[number];
export const STAGES_TOLD = ['first', 'all'] as const;
export type WireStages = (typeof STAGES_TOLD)[number];

/** The value types of the kinds that are not plain strings. */
type Values = {
  int: number;
  count: number;
  bool: boolean;
  clientType: WireClientType;
  waitFor: WireWaitStage;
  contextStatus: WireContextStatus;
  windowStatus: WireWindowStatus;
  ownership: WireOwnership;
  siteOp: WireSiteOp;
  stages: WireStages;
};
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

export type Check = { readonly expected: string; test(value: unknown): boolean };

/** The checks of the frames that the relay sends. A client library needs no other checks. */
export const DOWN_CHECKS: Readonly<Record<DownKind, Check>> = {
  id: { expected: '1 to 128 of A-Z a-z 0-9 . _ : @ ~ -', test: (v) => typeof v === 'string' && ID.test(v) },
  name: {
    expected: 'a letter, then up to 127 of A-Z a-z 0-9 _ . : -',
    test: (v) => typeof v === 'string' && NAME.test(v),
  },
  user: { expected: '1 to 128 characters', test: (v) => typeof v === 'string' && v.length > 0 && v.length <= 128 },
  text: textOf(0, 1024),
  int: { expected: 'an integer', test: (v) => Number.isSafeInteger(v) },
  bool: { expected: 'true or false', test: (v) => typeof v === 'boolean' },
};

/**
 * The checks of all kinds of fields. Marked as pure, so that a library that does not use them is built without them.
 */
export const CHECKS = /* @__PURE__ */ allChecks();

function allChecks(): Readonly<Record<FieldKind, Check>> {
  return {
    ...DOWN_CHECKS,
    // Unbounded here: the receiver truncates it, so that a long message does not make its frame invalid.
    prose: { expected: 'a string', test: (v) => typeof v === 'string' },
    token: textOf(1, 8192),
    clientType: oneOf(CLIENT_TYPES),
    waitFor: oneOf(WAIT_STAGES),
    contextStatus: oneOf(CONTEXT_STATUSES),
    windowStatus: oneOf(WINDOW_STATUSES),
    ownership: oneOf(OWNERSHIPS),
    siteOp: oneOf(SITE_OPS),
    stages: oneOf(STAGES_TOLD),
    title: textOf(0, 256),
    word: textOf(1, 64),
    count: {
      expected: 'an integer from 0 to 1000000',
      test: (v) => typeof v === 'number' && Number.isInteger(v) && v >= 0 && v <= 1_000_000,
    },
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
export type FieldRule = { readonly field: string; readonly optional: boolean; readonly check: Check };

/** Returns a table as a list of members. `checks`: the checks of all kinds that the table uses. */
export function membersOf<Kind extends FieldKind>(
  table: Readonly<Record<string, Kind | `${Kind}?`>>,
  checks: Readonly<Record<Kind, Check>>,
): readonly FieldRule[] {
  return Object.entries(table).map(([field, spec]) => ({
    field,
    optional: spec.endsWith('?'),
    check: checks[spec.replace('?', '') as Kind],
  }));
}

/** Returns the members of a table. Cached, so that the specs of a table are not parsed again for each header. */
function allMembersOf(table: Table): readonly FieldRule[] {
  const known = MEMBERS.get(table);
  if (known) return known;
  const members = membersOf(table, CHECKS);
  MEMBERS.set(table, members);
  return members;
}

const MEMBERS = /* @__PURE__ */ new WeakMap<Table, readonly FieldRule[]>();

/**
 * Checks a header against its table. Fields that the table does not name are ignored, so that a newer peer may add
 * fields. A field that is null counts as absent. Returns a description of the first fault, or null when the header is
 * valid.
 */
export function checkFields(table: Table, header: Readonly<Record<string, unknown>>): string | null {
  for (const member of allMembersOf(table)) {
    const value = Object.hasOwn(header, member.field) ? header[member.field] : undefined;
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
