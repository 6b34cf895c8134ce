import type { ActionAdvertisement } from '../core/connections/connection.ts';
import { invalid } from '../core/errors.ts';
import { name as actionName } from '../core/ids.ts';
import { fromJson, utf8Length, type JsonText, type JsonValue } from '../core/json.ts';
import { ACTION_BYTES, CLIENT_ACTIONS, METADATA_BYTES } from '../core/limits.ts';
import { checkedJson, isArrayText, isObjectText, itemsOf, membersOf } from './json.ts';

/** What a client says of itself, in the words in which it said it. */
export type Advertisement = { readonly metadata: JsonText | null; readonly actions: readonly ActionAdvertisement[] };

/** Reads the payload of `hello` and of `actions`. Throws `invalid_argument` naming the member; members that it does not know are ignored. */
export function readAdvertisement(payload: string | null): Advertisement {
  if (payload === null) return { metadata: null, actions: [] };
  const members = objectOf('payload', checkedJson(payload) ?? invalid('payload', 'not JSON, or nested too deeply'));
  const metadata = valueOf(members, 'metadata');
  if (metadata !== null && utf8Length(metadata) > METADATA_BYTES)
    invalid('metadata', `at most ${METADATA_BYTES} bytes are kept`);
  return { metadata, actions: readActions(valueOf(members, 'actions')) };
}

function readActions(json: JsonText | null): readonly ActionAdvertisement[] {
  if (json === null) return [];
  if (!isArrayText(json)) return invalid('actions', 'an array was expected');
  const items = itemsOf(json);
  if (items.length > CLIENT_ACTIONS) invalid('actions', `at most ${CLIENT_ACTIONS} can be advertised`);
  const actions = items.map((item, index) => readAction(`actions[${index}]`, item));
  const names = new Set<string>();
  for (const { name } of actions) {
    if (names.has(name)) invalid('actions', `${name} stands there twice`);
    names.add(name);
  }
  return actions;
}

function readAction(where: string, item: JsonText): ActionAdvertisement {
  if (utf8Length(item) > ACTION_BYTES) invalid(where, `at most ${ACTION_BYTES} bytes an action`);
  const members = objectOf(where, item);
  const text = (member: string): string | null => readText(`${where}.${member}`, valueOf(members, member));
  return {
    name: actionName(`${where}.name`, text('name') ?? invalid(`${where}.name`, 'required')),
    summary: text('summary'),
    description: text('description'),
    version: text('version'),
    checksArguments: readFlag(`${where}.checks_arguments`, valueOf(members, 'checks_arguments')),
    schema: readSchema(`${where}.schema`, valueOf(members, 'schema')),
    metadata: valueOf(members, 'metadata'),
  };
}

function objectOf(where: string, json: JsonText): ReadonlyMap<string, JsonText> {
  return isObjectText(json) ? membersOf(json) : invalid(where, 'an object was expected');
}

/** Null stands for left out. */
function valueOf(members: ReadonlyMap<string, JsonText>, member: string): JsonText | null {
  const json = members.get(member);
  return json === undefined || json === 'null' ? null : json;
}

function readText(where: string, json: JsonText | null): string | null {
  const value: JsonValue = fromJson(json);
  return value === null || typeof value === 'string' ? value : invalid(where, 'a string was expected');
}

function readFlag(where: string, json: JsonText | null): boolean | null {
  const value: JsonValue = fromJson(json);
  return value === null || typeof value === 'boolean' ? value : invalid(where, 'true or false was expected');
}

/** A JSON Schema is an object, or `true` or `false`; whether it means anything is the client's affair. */
function readSchema(where: string, json: JsonText | null): JsonText | null {
  const fits = json === null || json === 'true' || json === 'false' || isObjectText(json);
  return fits ? json : invalid(where, 'an object, true or false was expected');
}
