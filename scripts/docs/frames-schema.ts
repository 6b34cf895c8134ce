/** Writes frames.schema.json: JSON Schemas of all frames in PROTOCOL.md, from the tables in src/protocol. */
import { ID, ROW_WORDS, WORDS, type FieldKind, type Table } from '../../src/protocol/fields.ts';
import { CONTEXT, CONTEXTS_MAX, WINDOW, WINDOWS_MAX } from '../../src/protocol/report-rows.ts';
import { DOWN, DOWN_WITH_PAYLOAD, UP, UP_WITH_PAYLOAD } from '../../src/protocol/frames.ts';
import { readIdentity } from '../release/identity.ts';

/** A JSON Schema 2020-12. */
export type Schema = boolean | { readonly [keyword: string]: unknown };

const DESCRIPTION =
  `A frame of PROTOCOL.md is validated as the object { "header", "payload" }: cut its text at the first
line feed and parse both parts. Leave "payload" out if the frame has no line feed. "#/$defs/up" describes the frames that
clients and callers send, "#/$defs/down" those that the relay sends, and "#/$defs/up.hello" one type. Members that are
not described are allowed, because a receiver ignores them. What a schema cannot say is in PROTOCOL.md: sizes in bytes,
ids that occur once, and that "maxLength" counts UTF-16 units.`.replaceAll('\n', ' ');

/** The schemas of the kinds of fields, except for kinds whose values are fixed words. */
const KINDS: Readonly<Record<Exclude<FieldKind, keyof (typeof ROW_WORDS & typeof WORDS)>, Schema>> = {
  id: { type: 'string', pattern: ID.source },
  name: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_.:-]{0,127}$' },
  user: { type: 'string', minLength: 1, maxLength: 128 },
  text: { type: 'string', maxLength: 1024 },
  prose: { type: 'string' },
  token: { type: 'string', minLength: 1, maxLength: 8192 },
  title: { type: 'string', maxLength: 256 },
  word: { type: 'string', minLength: 1, maxLength: 64 },
  count: { type: 'integer', minimum: 0, maximum: 1_000_000 },
  int: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
  bool: { type: 'boolean' },
};

/** Returns the JSON Schema of all frames. */
export function framesSchema(): Schema {
  const words = Object.entries({ ...ROW_WORDS, ...WORDS }).map(([kind, values]) => [kind, { enum: values }] as const);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `https://${readIdentity().domain}/frames.schema.json`,
    title: 'The frames of callboard.v1',
    description: DESCRIPTION,
    anyOf: [refTo('up'), refTo('down')],
    $defs: {
      up: { oneOf: Object.keys(UP).map((type) => refTo(`up.${type}`)) },
      down: { oneOf: Object.keys(DOWN).map((type) => refTo(`down.${type}`)) },
      ...framesOf('up', UP, UP_WITH_PAYLOAD),
      ...framesOf('down', DOWN, DOWN_WITH_PAYLOAD),
      ...PAYLOAD_PARTS,
      ...KINDS,
      ...Object.fromEntries(words),
    },
  };
}

function framesOf(
  direction: 'up' | 'down',
  tables: Readonly<Record<string, Table>>,
  withPayload: readonly string[],
): Readonly<Record<string, Schema>> {
  return Object.fromEntries(
    Object.entries(tables).map(([type, table]) => {
      const name = `${direction}.${type}`;
      const payload = withPayload.includes(type) ? (PAYLOADS[name] ?? true) : false;
      const required = NEEDS_PAYLOAD.includes(name) ? ['header', 'payload'] : ['header'];
      const header = { ...headerOf(type, table), ...(type === 'hello' && A_CLIENT_SAYS_WHICH) };
      return [name, { type: 'object', required, properties: { header, payload } }];
    }),
  );
}

function headerOf(type: string, table: Table): { readonly [keyword: string]: unknown } {
  const { required, properties } = objectOf(table);
  return { type: 'object', required: ['type', ...required], properties: { type: { const: type }, ...properties } };
}

/** Returns the schema of an object that a table describes. An optional member may be null, which counts as absent. */
function objectOf(table: Table) {
  const members = Object.entries(table).map(([name, spec]) => {
    const kind = refTo(spec.replace('?', ''));
    return { name, optional: spec.endsWith('?'), schema: spec.endsWith('?') ? orNull(kind) : kind };
  });
  return {
    type: 'object',
    required: members.filter(({ optional }) => !optional).map(({ name }) => name),
    properties: Object.fromEntries(members.map(({ name, schema }) => [name, schema])),
  };
}

function refTo(name: string): { readonly $ref: string } {
  return { $ref: `#/$defs/${name}` };
}

function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] };
}

/** Requires `instance_id` and `client_type` in a hello with `client_id`. */
const A_CLIENT_SAYS_WHICH = {
  if: { required: ['client_id'], properties: { client_id: { type: 'string' } } },
  then: {
    required: ['instance_id', 'client_type'],
    properties: { instance_id: { type: 'string' }, client_type: { type: 'string' } },
  },
};

// The payloads whose members the protocol defines. They are written by hand, because no table in src/protocol describes
// them. src/gateway/payloads.ts reads such payloads, and a test compares its verdicts with those of these schemas.

const STRING = orNull({ type: 'string' });
const FLAG = orNull({ type: 'boolean' });
const listOf = (items: Schema, maxItems: number): Schema => orNull({ type: 'array', items, maxItems });
const objectWith = (properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema => ({
  type: 'object',
  ...(required.length > 0 && { required }),
  properties,
});
const flags = (...names: readonly string[]): Schema =>
  orNull(objectWith(Object.fromEntries(names.map((name) => [name, FLAG]))));

const ACTIONS = listOf(refTo('action'), 256);
const PAYLOAD_PARTS: Readonly<Record<string, Schema>> = {
  action: objectWith(
    {
      ...{ name: refTo('name'), summary: STRING, description: STRING, version: STRING, checks_arguments: FLAG },
      schema: { type: ['object', 'boolean', 'null'] },
      metadata: true,
      guards: flags('approval', 'lease'),
      effects: flags('read_only', 'destructive', 'idempotent', 'open_world'),
    },
    ['name'],
  ),
  context: objectOf(CONTEXT),
  window: objectOf(WINDOW),
};

/** Returns the schema of a part of a report. A snapshot has no `removed` rows. */
function partOf(row: string, most: number): Schema {
  // The schema allows more rows than a client may have, because the relay accepts the frame and refuses such a report
  // for another reason.
  const rows = listOf(refTo(row), 2 * CONTEXTS_MAX);
  const removed = listOf(refTo('id'), 2 * CONTEXTS_MAX);
  const part = objectWith({ snapshot: FLAG, set: rows, removed });
  return orNull({
    ...(typeof part === 'object' && part),
    description: `A client may have at most ${most} of these rows.`,
    if: { required: ['snapshot'], properties: { snapshot: { const: true } } },
    then: { properties: { removed: orNull({ type: 'array', maxItems: 0 }) } },
  });
}

/** The schemas of payloads, by frame. A payload that is not listed here may be any JSON. */
const PAYLOADS: Readonly<Record<string, Schema>> = {
  'up.hello': objectWith({ metadata: true, actions: ACTIONS }),
  'up.actions': objectWith({ actions: ACTIONS }),
  'up.report': objectWith({ contexts: partOf('context', CONTEXTS_MAX), windows: partOf('window', WINDOWS_MAX) }),
  'up.site': orNull(
    objectWith({
      title: orNull(refTo('title')),
      event_names: listOf(refTo('name'), 256),
      actions: listOf(refTo('name'), 256),
      capability_profile: flags('action_invocation', 'sharing'),
    }),
  ),
  'up.invoke': { type: 'object' },
  'down.command': { type: 'object' },
  'down.closed': objectWith({ commands: { type: 'array', items: refTo('id') } }, ['commands']),
};
const NEEDS_PAYLOAD = ['up.report', 'down.closed'];
