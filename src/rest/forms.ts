/**
 * Defines how GraphQL scalars and enums are written in REST, for reading inputs and describing them; and states core's
 * rules for texts and lists as JSON Schemas, for the OpenAPI document only.
 */
import { isEnumType, type GraphQLEnumType, type GraphQLScalarType } from 'graphql';
import { CONTROL_CHARS, ID_PATTERN, NAME_PATTERN, hasAtMost } from '../core/ids.ts';
import { ACTION_PATTERN, CODE_PATTERN, DEVICE_NAME_PATTERN } from '../core/devices/device.ts';
import {
  DEVICE_ACTIONS,
  ERROR_CODE_CHARS,
  FILTER_TEXT_CHARS,
  FIRST_EPOCH_MS,
  ID_MAX_CHARS,
  INGEST_BATCH,
  LABELS_PER_FILTER,
  PAUSE_PATTERN_CHARS,
  LABEL_MAX_CHARS,
  MAX_REASON,
  SITE_NAMES,
  STREAM_SUFFIX_SEGMENTS,
  TITLE_MAX_CHARS,
  TOKEN_ID_CHARS,
  TRACE_MAX_CHARS,
  USER_GIVEN_CHARS,
  USER_MAX_CHARS,
} from '../core/limits.ts';
import { RESERVED_EVENTS, RESERVED_PREFIX } from '../core/sites/site-definition.ts';

/** A JSON Schema (2020-12, the dialect of OpenAPI 3.1). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The key under which a schema stores its component. It is a symbol, so it does not appear in JSON. */
const COMPONENT = Symbol('component');

type SchemaComponent = { readonly name: string; readonly schema: JsonSchema };

type Reference = JsonSchema & { readonly [COMPONENT]?: SchemaComponent };

/** Returns a reference to a component, to which keywords may be added. `openapi.ts` turns it into a `$ref`. */
export function named(name: string, schema: JsonSchema): JsonSchema {
  const reference: Reference = { [COMPONENT]: { name, schema } };
  return reference;
}

export function componentOf(schema: Reference): SchemaComponent | undefined {
  return schema[COMPONENT];
}

/**
 * Returns a schema that accepts null too. A schema without `type`, `anyOf` or component already does and is returned
 * unchanged.
 */
export function orNull(schema: JsonSchema): JsonSchema {
  const { description, default: preset, ...rest } = schema;
  const { type, anyOf } = rest;
  if (typeof type === 'string') return { ...schema, type: [type, 'null'] };
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: 'null' }] };
  if (componentOf(schema) === undefined) return schema;
  const outer = { ...(description !== undefined && { description }), ...(preset !== undefined && { default: preset }) };
  return { ...outer, anyOf: [rest, { type: 'null' }] };
}

/**
 * What core requires of an argument besides its GraphQL type. `schema`: for a value, or for each item of a list.
 * `list`: the allowed number of items.
 */
type Rule = { readonly schema?: JsonSchema; readonly list?: JsonSchema };

const USER_CHARS = `[^/${CONTROL_CHARS}]`;
const USER_CHARS_BUT_SPACE = `[^/\\s${CONTROL_CHARS}]`;
const SEGMENT = `(?!\\.{1,2}(?:/|$))${ID_PATTERN}`;
/** Excludes the users `.` and `..`, because URLs drop such path segments. */
const NO_DOTS = '(?!\\s*\\.{1,2}\\s*(?:/|$))';
const MORE_SEGMENTS = `{0,${STREAM_SUFFIX_SEGMENTS - 1}}`;
const SUFFIX_CHARS = STREAM_SUFFIX_SEGMENTS * (ID_MAX_CHARS + 1);

function text(name: string, description: string, bounds: JsonSchema): Rule {
  return { schema: named(name, { type: 'string', description, ...bounds }) };
}

const ID = text('Id', 'An id: of a client, an instance, a command, a session and so on.', {
  pattern: `^(?!\\.{1,2}$)${ID_PATTERN}$`,
});
const ACTION = text('ActionName', 'The name of an action.', { pattern: `^${NAME_PATTERN}$` });
const EVENT = text('EventName', 'The name of an event. Names that an `EventSource` reserves are not allowed.', {
  pattern: `^(?!${RESERVED_PREFIX.replace('.', '\\.')})(?!(?:${[...RESERVED_EVENTS].join('|')})$)${NAME_PATTERN}$`,
});
const USER = text(
  'UserId',
  'A user id. The relay uses its canonical form (NFC, trimmed, an e-mail address in lower case), to which the bound of 128 characters applies.',
  {
    minLength: 1,
    maxLength: USER_MAX_CHARS,
    pattern: `^${NO_DOTS}${USER_CHARS}*${USER_CHARS_BUT_SPACE}${USER_CHARS}*$`,
  },
);
const TRACE = text('TraceText', 'An id of a tracing system.', {
  minLength: 1,
  maxLength: TRACE_MAX_CHARS,
  pattern: `^[^${CONTROL_CHARS}]*$`,
});
const CURSOR = text('Cursor', 'Opaque: the `next_cursor` of the page before, for the same filter and requester.', {
  minLength: 1,
  maxLength: 4096,
});
const STREAM_KEY = text('StreamKey', 'The full key of a stream: its user, a slash and its suffix.', {
  pattern: `^(?=[^/]{1,${USER_MAX_CHARS}}/)${NO_DOTS}${USER_CHARS}*${USER_CHARS_BUT_SPACE}${USER_CHARS}*(?:/${SEGMENT}){1,${STREAM_SUFFIX_SEGMENTS}}$`,
});
const STREAM_PREFIX = text('StreamPrefix', 'The beginning of a stream suffix.', {
  pattern: `^[A-Za-z0-9_.:@~/-]{1,${SUFFIX_CHARS}}$`,
});
const STREAM_SUFFIX = text('StreamSuffix', 'The part of a stream’s key after the user.', {
  pattern: `^(?!clients(?:/|$))${SEGMENT}(?:/${SEGMENT})${MORE_SEGMENTS}$`,
});
const REASON: Rule = { schema: { type: 'string', minLength: 1, maxLength: MAX_REASON } };
const TITLE: Rule = { schema: { type: 'string', minLength: 1, maxLength: TITLE_MAX_CHARS } };
const KIND: Rule = { schema: { type: 'string', const: 'event' } };
/**
 * The rule for the params of an invocation. Names that begin with `__cooperative_site_`, in upper or lower case, are
 * reserved for the relay.
 */
const PARAMS: Rule = {
  schema: {
    type: 'object',
    additionalProperties: true,
    propertyNames: { pattern: `^(?!${anyCase('__cooperative_site_')})` },
  },
};
/** The rule for a list of labels. In a query, labels are separated by commas. */
const LABELS: Rule = {
  ...text('Label', 'A label of a connection: `key=value`.', {
    minLength: 2,
    maxLength: LABEL_MAX_CHARS,
    pattern: '^[^=,]+=[^,]*$',
  }),
  list: { minItems: 1, maxItems: LABELS_PER_FILTER },
};
const CODE: Rule = { schema: { type: 'string', minLength: 1, maxLength: ERROR_CODE_CHARS } };
const FILTER_TEXT: Rule = { schema: { type: 'string', minLength: 1, maxLength: FILTER_TEXT_CHARS } };
const SITE_LIST = { maxItems: SITE_NAMES };

/**
 * The rule for each argument and input field, by its GraphQL name. A name has the same rule in the whole schema; a
 * field for which another rule applies names it in its extension `rule`.
 */
const RULES: Readonly<Record<string, Rule>> = {
  ...sameRule(USER, 'userId', 'owner'),
  ...sameRule(ID, 'clientId', 'instanceId', 'commandId', 'nodeId', 'callerNodeId', 'windowId', 'taskId'),
  ...sameRule(ID, 'contextId', 'checkInstance', 'messageId', 'sessionId', 'grantId', 'pauseId'),
  siteId: ID,
  action: ACTION,
  actions: { ...ACTION, list: SITE_LIST },
  events: { ...EVENT, list: SITE_LIST },
  eventNames: { ...EVENT, list: SITE_LIST },
  names: { ...EVENT, list: SITE_LIST },
  traceId: TRACE,
  parentSpanId: TRACE,
  idOrTrace: TRACE,
  pattern: {
    schema: { type: 'string', minLength: 1, maxLength: PAUSE_PATTERN_CHARS, pattern: `^[^${CONTROL_CHARS}]*$` },
  },
  caller: { schema: { type: 'string', minLength: 1, maxLength: USER_GIVEN_CHARS, pattern: '^[^\\u0000]*$' } },
  outcomes: { list: { minItems: 1 } },
  by: { list: { minItems: 1 } },
  after: CURSOR,
  stream: STREAM_KEY,
  prefix: STREAM_PREFIX,
  streamSuffix: STREAM_SUFFIX,
  reason: REASON,
  title: TITLE,
  kind: KIND,
  params: PARAMS,
  labels: LABELS,
  code: CODE,
  userCode: { schema: { type: 'string', pattern: CODE_PATTERN } },
  deviceName: { schema: { type: 'string', pattern: DEVICE_NAME_PATTERN } },
  actionPatterns: {
    schema: { type: 'string', pattern: ACTION_PATTERN },
    list: { minItems: 1, maxItems: DEVICE_ACTIONS },
  },
  tokenId: { schema: { type: 'string', minLength: 1, maxLength: TOKEN_ID_CHARS } },
  text: FILTER_TEXT,
  messages: { list: { minItems: 1, maxItems: INGEST_BATCH } },
};

/** Returns the rule of an argument; undefined if core accepts everything that its GraphQL type accepts. */
export function ruleOf(argument: string): Rule | undefined {
  return Object.hasOwn(RULES, argument) ? RULES[argument] : undefined;
}

function sameRule(rule: Rule, ...names: readonly string[]): Record<string, Rule> {
  return Object.fromEntries(names.map((name) => [name, rule]));
}

function anyCase(word: string): string {
  return word.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

// Converts and describes the values of GraphQL scalars and enums.

/** The requirements for an argument besides its GraphQL type: inclusive bounds, and the rule of core. */
export type Bounds = { readonly minimum?: number; readonly maximum?: number; readonly rule?: Rule | undefined };

/**
 * How a scalar or enum is read and described in REST. A value is converted to the form that resolvers receive; a value
 * of a wrong type is read as undefined.
 */
export type Leaf = {
  readonly schema: JsonSchema;
  readonly expected: string;
  /** Reads the text of a path segment or a query value. Null: the type cannot be used in a path or a query. */
  readonly fromText: ((raw: string) => unknown) | null;
  readonly fromJson: (value: unknown) => unknown;
  /**
   * What `fromJson` receives: a parsed value (`plain`), or unparsed JSON text (`text`), for values that are passed
   * through.
   */
  readonly shape: 'plain' | 'text';
};

/** The maximum Int of GraphQL. */
const INT32 = 2_147_483_647;
/** The maximum length of an id, in characters. */
const ID_CHARS = 512;
/** The maximum length of a text, in characters. It suffices for a cursor that contains the longest names. */
const TEXT_CHARS = 4096;
/**
 * The last and the first accepted time, in epoch milliseconds. They bound the years that RFC 3339 can write with four
 * digits.
 */
const LAST_TIME = 253_402_300_799_999;
const FIRST_TIME = -62_135_596_800_000;
/** Matches times in the years 0001 to 9999 with any offset and at most nanoseconds, but without leap seconds. */
const TIME_PATTERN =
  '^(?!0000)\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$';
const RFC3339 = new RegExp(TIME_PATTERN);
const TIME_SCHEMA = named('TimeInput', {
  description:
    'An RFC 3339 time with any offset, or epoch milliseconds. A smaller number than the minimum is a time in seconds.',
  anyOf: [
    { type: 'string', format: 'date-time', pattern: TIME_PATTERN },
    { type: 'integer', minimum: FIRST_EPOCH_MS, maximum: LAST_TIME },
    { type: 'integer', const: 0 },
  ],
});

const SCALARS: Readonly<Record<string, (bounds: Bounds) => Leaf>> = {
  Int: intLeaf,
  Boolean: () => ({
    schema: { type: 'boolean' },
    expected: 'true or false',
    fromText: (raw) => (raw === 'true' ? true : raw === 'false' ? false : undefined),
    fromJson: (value) => (typeof value === 'boolean' ? value : undefined),
    shape: 'plain',
  }),
  ID: ({ rule }) => textLeaf(ID_CHARS, rule),
  String: ({ rule }) => textLeaf(TEXT_CHARS, rule),
  DateTime: () => ({
    schema: TIME_SCHEMA,
    expected: 'an RFC 3339 time or epoch milliseconds, not seconds',
    fromText: (raw) => (/^\d{1,15}$/.test(raw) ? fromEpoch(Number(raw)) : fromRfc3339(raw)),
    fromJson: (value) =>
      typeof value === 'number' ? fromEpoch(value) : typeof value === 'string' ? fromRfc3339(value) : undefined,
    shape: 'plain',
  }),
  JSON: ({ rule }) => ({
    schema: rule?.schema ?? {},
    expected: 'JSON',
    fromText: null,
    fromJson: (value) => value,
    shape: 'text',
  }),
};

/** Returns how a scalar or enum is read and described in REST. Null if REST does not support the type. */
export function leafOf(type: GraphQLScalarType | GraphQLEnumType, bounds: Bounds = {}): Leaf | null {
  if (isEnumType(type)) return enumLeaf(type);
  return Object.hasOwn(SCALARS, type.name) ? (SCALARS[type.name]?.(bounds) ?? null) : null;
}

/** Returns the wire words of an enum, which the schema uses as its internal values. */
function wireWords(type: GraphQLEnumType): readonly string[] {
  return type.getValues().map(({ value }) => String(value));
}

export function enumSchema(type: GraphQLEnumType): JsonSchema {
  const description = type.description ? { description: type.description } : {};
  return { type: 'string', ...description, enum: wireWords(type) };
}

/** Creates the REST form of an enum. Requests contain wire words, and resolvers receive them unchanged. */
function enumLeaf(type: GraphQLEnumType): Leaf {
  const words = wireWords(type);
  const known = new Set<unknown>(words);
  return {
    schema: named(type.name, enumSchema(type)),
    expected: `one of ${words.join(', ')}`,
    fromText: (raw) => (known.has(raw) ? raw : undefined),
    fromJson: (value) => (known.has(value) ? value : undefined),
    shape: 'plain',
  };
}

function intLeaf({ minimum = -INT32 - 1, maximum = INT32 }: Bounds): Leaf {
  const bounded = minimum > -INT32 - 1 || maximum < INT32;
  const check = (value: number) =>
    Number.isInteger(value) && value >= minimum && value <= maximum ? value : undefined;
  return {
    schema: { type: 'integer', ...(bounded ? { minimum, maximum } : { format: 'int32' }) },
    expected: bounded ? `an integer, ${minimum} to ${maximum}` : 'an integer',
    fromText: (raw) => (/^-?\d{1,10}$/.test(raw) ? check(Number(raw)) : undefined),
    fromJson: (value) => (typeof value === 'number' ? check(value) : undefined),
    shape: 'plain',
  };
}

/** Creates the REST form of a text. It checks only the length; core checks the rest. */
function textLeaf(longest: number, rule: Rule | undefined): Leaf {
  const check = (text: string) =>
    text.length > 0 && hasAtMost(text, longest) && text.isWellFormed() ? text : undefined;
  return {
    schema: rule?.schema ?? { type: 'string', minLength: 1, maxLength: longest },
    expected: `1 to ${longest} characters`,
    fromText: check,
    fromJson: (value) => (typeof value === 'string' ? check(value) : undefined),
    shape: 'plain',
  };
}

function fromEpoch(ms: number): number | undefined {
  return Number.isInteger(ms) && (ms === 0 || ms >= FIRST_EPOCH_MS) && ms <= LAST_TIME ? ms : undefined;
}

function fromRfc3339(text: string): number | undefined {
  if (!RFC3339.test(text)) return undefined;
  const ms = Date.parse(text.toUpperCase());
  // `Date.parse` reads 30 February as 2 March. A date that does not exist is refused, because it would silently move a
  // bound.
  const day = text.slice(0, 10);
  const exists = !Number.isNaN(Date.parse(day)) && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
  // With its offset, a time on the first or last day may fall outside the years with four digits. It is then moved to
  // the nearest accepted time.
  return exists ? Math.min(Math.max(ms, FIRST_TIME), LAST_TIME) : undefined;
}

/** Converts a GraphQL name into a wire name: `clientId` -> `client_id`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
