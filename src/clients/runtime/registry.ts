/** Keeps the actions of one runtime, and writes their advertisement. */
import { NAME } from '../../protocol/fields.ts';
import { messageOf } from './errors.ts';
import { fits, MAX_ACTION_BYTES, MAX_ACTIONS, MAX_TIMEOUT_MS } from './limits.ts';
import type { ActionSpec, Handler } from './types.ts';
import { compileSchema, type Validate } from './validate.ts';

export type Registered = {
  readonly name: string;
  readonly spec: ActionSpec;
  readonly run: Handler;
  readonly validate: Validate | null;
  /** The advertisement as JSON text. */
  readonly json: string;
};

/** The actions of one runtime. */
export interface ActionRegistry {
  /**
   * Adds an action. Throws TypeError for an invalid one and then changes nothing. Returns a function that removes the
   * action; calling it twice does nothing.
   */
  add(name: string, spec: ActionSpec, run: Handler): () => void;
  get(name: string): Registered | undefined;
  /** Returns a JSON array of all advertisements, in the order in which they were added. */
  json(): string;
}

export function createRegistry(changed: () => void): ActionRegistry {
  const actions = new Map<string, Registered>();

  function validator(name: string, { schema }: ActionSpec): Validate | null {
    if (schema === undefined) return null;
    try {
      return compileSchema(schema);
    } catch (error) {
      throw new TypeError(`action ${name}: schema: ${messageOf(error)}`, { cause: error });
    }
  }

  return {
    add(name, spec, run) {
      if (!NAME.test(name)) throw new TypeError(`action ${name}: invalid action name`);
      if (actions.has(name)) throw new TypeError(`action ${name}: already registered`);
      if (actions.size >= MAX_ACTIONS) throw new TypeError(`action ${name}: more than ${MAX_ACTIONS} actions`);
      if (!isTimeout(spec.timeoutMs)) throw new TypeError(`action ${name}: timeoutMs: 1 to ${MAX_TIMEOUT_MS} expected`);
      const action = { name, spec, run, validate: validator(name, spec), json: advertise(name, spec) };
      actions.set(name, action);
      changed();
      return () => {
        if (actions.get(name) === action && actions.delete(name)) changed();
      };
    },
    get: (name) => actions.get(name),
    json: () => `[${Array.from(actions.values(), ({ json }) => json).join(',')}]`,
  };
}

function isTimeout(ms: number | undefined): boolean {
  return ms === undefined || (ms >= 1 && ms <= MAX_TIMEOUT_MS);
}

function advertise(name: string, spec: ActionSpec): string {
  const { summary, description, version, schema, metadata } = spec;
  const said = { checks_arguments: schema !== undefined, guards: guardsOf(spec), effects: effectsOf(name, spec) };
  const json = JSON.stringify({ name, summary, description, version, ...said, schema, metadata });
  if (!fits(json, MAX_ACTION_BYTES)) throw new TypeError(`action ${name}: larger than ${MAX_ACTION_BYTES} bytes`);
  return json;
}

/**
 * Returns the guards to advertise. Undefined: the action defines none, so the advertisement says nothing about them.
 */
function guardsOf({ approval, lease }: ActionSpec): object | undefined {
  return approval === undefined && lease === undefined ? undefined : { approval, lease };
}

function effectsOf(name: string, { effects }: ActionSpec): object | undefined {
  if (effects === undefined) return undefined;
  const { readOnly: read_only, destructive, idempotent, openWorld: open_world } = effects;
  const flags = { read_only, destructive, idempotent, open_world };
  const wrong = Object.values(flags).some((flag) => flag !== undefined && typeof flag !== 'boolean');
  if (wrong) throw new TypeError(`action ${name}: effects: true or false expected`);
  return flags;
}
