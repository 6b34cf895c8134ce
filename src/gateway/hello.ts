/** Parses the payload of `hello` and `actions`: the metadata and actions that a client advertises. */
import type { ActionAdvertisement, ActionEffects, ActionGuards } from '../core/connections/connection.ts';
import { invalid } from '../core/errors.ts';
import { name as actionName } from '../core/ids.ts';
import { isArrayText, isObjectText, itemsOf, utf8Length, type JsonText } from '../core/json.ts';
import { ACTION_BYTES, CLIENT_ACTIONS, METADATA_BYTES } from '../core/limits.ts';
import type { ActionLists } from './action-lists.ts';
import { flagIn, memberIn, objectOf, payloadMembers, textIn } from './payload.ts';

/** The metadata and actions that a client advertises; the JSON texts are exactly as received. */
export type Advertisement = { readonly metadata: JsonText | null; readonly actions: readonly ActionAdvertisement[] };

/**
 * Reads the payload of `hello` and of `actions`. Throws `invalid_argument` with the name of the invalid member. Unknown
 * members are ignored. `lists`: the lists of actions that are remembered.
 */
export function readAdvertisement(payload: string | null, lists: ActionLists): Advertisement {
  if (payload === null) return { metadata: null, actions: [] };
  const members = payloadMembers(payload);
  const metadata = memberIn(members, 'metadata');
  if (metadata !== null && utf8Length(metadata) > METADATA_BYTES)
    invalid('metadata', `at most ${METADATA_BYTES} bytes are kept`);
  const actions = memberIn(members, 'actions');
  return { metadata, actions: actions === null ? [] : lists.get(actions, { payload, parse: readActions }) };
}

function readActions(json: JsonText): readonly ActionAdvertisement[] {
  if (!isArrayText(json)) return invalid('actions', 'an array was expected');
  const items =
    itemsOf(json, CLIENT_ACTIONS) ?? invalid('actions', `at most ${CLIENT_ACTIONS} actions can be advertised`);
  const actions = items.map((item, index) => readAction(`actions[${index}]`, item));
  const names = new Set<string>();
  for (const { name } of actions) {
    if (names.has(name)) invalid('actions', `${name} appears twice`);
    names.add(name);
  }
  return actions;
}

function readAction(where: string, item: JsonText): ActionAdvertisement {
  if (utf8Length(item) > ACTION_BYTES) invalid(where, `at most ${ACTION_BYTES} bytes per action`);
  const members = objectOf(where, item);
  const text = (member: string): string | null => textIn(`${where}.${member}`, memberIn(members, member));
  const guards = readFlags(`${where}.guards`, memberIn(members, 'guards'), GUARDS);
  const effects = readFlags(`${where}.effects`, memberIn(members, 'effects'), EFFECTS);
  return {
    name: actionName(`${where}.name`, text('name') ?? invalid(`${where}.name`, 'required')),
    summary: text('summary'),
    description: text('description'),
    version: text('version'),
    checksArguments: flagIn(`${where}.checks_arguments`, memberIn(members, 'checks_arguments')),
    schema: readSchema(`${where}.schema`, memberIn(members, 'schema')),
    metadata: memberIn(members, 'metadata'),
    ...(guards && { guards }),
    ...(effects && { effects }),
  };
}

/** The names of flags on the wire, by their names in core. */
type FlagNames<T> = { readonly [Name in keyof T]: string };
const GUARDS: FlagNames<ActionGuards> = { approval: 'approval', lease: 'lease' };
const EFFECTS: FlagNames<ActionEffects> = {
  readOnly: 'read_only',
  destructive: 'destructive',
  idempotent: 'idempotent',
  openWorld: 'open_world',
};

/** Reads the flags of an object; null if the object is absent. Other members are ignored. */
function readFlags<T>(
  where: string,
  json: JsonText | null,
  names: FlagNames<T>,
): { readonly [Name in keyof T]: boolean | null } | null {
  if (json === null) return null;
  const members = objectOf(where, json);
  const flags: Partial<Record<keyof T, boolean | null>> = {};
  for (const name of Object.keys(names) as (keyof T)[])
    flags[name] = flagIn(`${where}.${names[name]}`, memberIn(members, names[name]));
  return flags as { readonly [Name in keyof T]: boolean | null };
}

/** Checks that a JSON Schema is an object, `true` or `false`. Does not check that it is a valid schema. */
function readSchema(where: string, json: JsonText | null): JsonText | null {
  const fits = json === null || json === 'true' || json === 'false' || isObjectText(json);
  return fits ? json : invalid(where, 'an object, true or false was expected');
}
