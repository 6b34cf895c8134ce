/**
 * Stores the actions of a runtime, writes their advertisements, and checks params and results against their schemas.
 */
import { deeperThan, longerThan, utf8Length } from '../../protocol/bounds.ts';
import { isRecord } from '../../protocol/json.ts';
import type { ActionSchema, ActionSpec, JsonSchema, StandardIssue, StandardSchema } from '../link/actions.ts';
import {
  ANY,
  BOOLEAN,
  FUNCTION,
  NAME,
  OBJECT,
  STRING,
  checkMembers,
  checkValue,
  wrong,
  type MembersOf,
} from '../link/options.ts';
import { boundedMessage, messageOf } from './action-errors.ts';
import { compileSchema } from './json-schema.ts';
import { METADATA_DEPTH } from './reports.ts';
import type { Handler } from './types.ts';

/** The relay's limits for actions (PROTOCOL.md, section 10). */
const MAX_ACTIONS = 256;
const MAX_ACTION_BYTES = 64 * 1024;
/** The longest delay that setTimeout supports, in milliseconds. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The value as the schema converts it, or its first fault in at most 256 characters. */
type CheckedValue = { readonly value: unknown } | { readonly fault: string };
/** Checks a value. Rejects or throws only if the schema's library does. */
export type SchemaCheck = (value: unknown) => CheckedValue | Promise<CheckedValue>;

export type Registered = {
  readonly name: string;
  readonly spec: ActionSpec;
  readonly run: Handler;
  readonly check: SchemaCheck | null;
  readonly checkResult: SchemaCheck | null;
  readonly json: string;
};

const SPEC: MembersOf<ActionSpec> = [
  {},
  {
    ...{ summary: STRING, description: STRING, version: STRING, metadata: ANY, timeoutMs: ANY },
    ...{ schema: ANY, jsonSchema: ANY, result: ANY, lease: BOOLEAN, approval: BOOLEAN, effects: OBJECT },
  },
];
const EFFECTS: MembersOf<NonNullable<ActionSpec['effects']>> = [
  {},
  { readOnly: BOOLEAN, destructive: BOOLEAN, idempotent: BOOLEAN, openWorld: BOOLEAN },
];

type RegistryOptions = {
  changed(): void;
  /** Returns the most bytes that all advertisements together may have. */
  maxBytes(): number;
};

export class ActionRegistry {
  readonly #actions = new Map<string, Registered>();
  readonly #options: RegistryOptions;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /**
   * Adds an action. If the action is invalid, throws TypeError and changes nothing. Returns a function that removes the
   * action; calling it again does nothing.
   */
  add(name: string, spec: ActionSpec, run: Handler<never>): () => void {
    const actions = this.#actions;
    checkValue('action', name, NAME);
    if (!isRecord(spec)) throw wrong(`action ${name}`, spec, 'handle(name, spec, handler) with a spec such as {}');
    checkMembers(`action ${name}: `, spec, SPEC);
    checkValue(`action ${name}`, run, FUNCTION);
    const { timeoutMs = MAX_TIMEOUT_MS } = spec;
    if (actions.has(name)) throw new TypeError(`action ${name}: already registered`);
    if (actions.size >= MAX_ACTIONS) throw new TypeError(`action ${name}: more than ${MAX_ACTIONS} actions`);
    if (!(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS))
      throw wrong(`action ${name}: timeoutMs`, timeoutMs, `1 to ${MAX_TIMEOUT_MS}`);
    const action = {
      name,
      spec,
      // `check` guarantees that the params have the type that the handler expects.
      run: run as Handler,
      check: checkOf(`action ${name}: schema`, spec.schema),
      checkResult: checkOf(`action ${name}: result`, spec.result),
      json: advertise(name, spec),
    };
    const maxBytes = this.#options.maxBytes();
    const bytes = utf8Length(this.json()) + utf8Length(action.json);
    if (bytes > maxBytes)
      throw new TypeError(`action ${name}: payload_too_large: all actions have ${bytes} bytes, of ${maxBytes}`);
    actions.set(name, action);
    this.#options.changed();
    return () => {
      if (actions.get(name) === action && actions.delete(name)) this.#options.changed();
    };
  }

  get(name: string): Registered | undefined {
    return this.#actions.get(name);
  }

  /** Returns a JSON array of all advertisements, in the order in which the actions were added. */
  json(): string {
    return `[${Array.from(this.#actions.values(), ({ json }) => json).join(',')}]`;
  }
}

/**
 * Returns the check of a schema; null if there is no schema. `where`: the beginning of the message of the TypeError for
 * a wrong schema.
 */
function checkOf(where: string, schema: ActionSchema | undefined): SchemaCheck | null {
  if (schema === undefined) return null;
  try {
    if (isStandard(schema)) return standardCheck(schema);
    const faultOf = compileSchema(schema);
    return (value) => {
      const fault = faultOf(value);
      return fault === null ? { value } : { fault };
    };
  } catch (error) {
    throw new TypeError(`${where}: ${messageOf(error)}`, { cause: error });
  }
}

/** Whether the schema is that of a library. Such a schema may be a function, for example with arktype. */
function isStandard(schema: ActionSchema): schema is StandardSchema {
  return schema instanceof Object && '~standard' in schema;
}

function standardCheck({ '~standard': { validate } }: StandardSchema): SchemaCheck {
  const read = (result: Awaited<ReturnType<typeof validate>>): CheckedValue =>
    result.issues ? { fault: issueText(result.issues[0]) } : { value: result.value };
  return (value) => {
    const result = validate(value);
    return result instanceof Promise ? result.then(read) : read(result);
  };
}

function issueText(issue: StandardIssue | undefined): string {
  const path = issue?.path?.map((part) => `/${String(typeof part === 'object' ? part.key : part)}`).join('');
  return boundedMessage(`${path || 'params'}: ${issue?.message ?? 'invalid'}`);
}

function advertise(name: string, spec: ActionSpec): string {
  const { summary, description, version, metadata } = spec;
  const schema = jsonSchemaOf(name, spec);
  const said = {
    checks_arguments: spec.schema !== undefined,
    guards: guardsOf(spec),
    effects: effectsOf(name, spec),
  };
  let json: string;
  try {
    json = JSON.stringify({ name, summary, description, version, ...said, schema, metadata });
  } catch (cause) {
    throw new TypeError(`action ${name}: no JSON: ${messageOf(cause)}`, { cause });
  }
  if (longerThan(json, MAX_ACTION_BYTES)) throw new TypeError(`action ${name}: larger than ${MAX_ACTION_BYTES} bytes`);
  if (deeperThan(json, METADATA_DEPTH)) throw new TypeError(`action ${name}: more than ${METADATA_DEPTH} deep`);
  return json;
}

/** Returns the JSON Schema to advertise. Throws TypeError if a library's schema cannot be converted to one. */
function jsonSchemaOf(name: string, { schema, jsonSchema }: ActionSpec): JsonSchema | undefined {
  if (jsonSchema !== undefined || schema === undefined || !isStandard(schema)) return jsonSchema ?? schema;
  const library = schema['~standard'].jsonSchema;
  let cause: unknown;
  try {
    if (library) return library.input({ target: 'draft-2020-12' });
  } catch (error) {
    cause = error;
  }
  throw new TypeError(`action ${name}: schema: it has no JSON Schema: give one as jsonSchema beside it`, { cause });
}

/**
 * Returns the guards to advertise. Undefined if the action defines none: the advertisement then says nothing about
 * guards.
 */
function guardsOf({ approval, lease }: ActionSpec): object | undefined {
  return approval === undefined && lease === undefined ? undefined : { approval, lease };
}

function effectsOf(name: string, { effects }: ActionSpec): object | undefined {
  if (effects === undefined) return undefined;
  checkMembers(`action ${name}: effects.`, effects, EFFECTS);
  const { readOnly: read_only, destructive, idempotent, openWorld: open_world } = effects;
  return { read_only, destructive, idempotent, open_world };
}
