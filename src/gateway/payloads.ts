/**
 * Reads the payloads of frames: the advertisements in `hello` and `actions`, reports of contexts and windows, and site
 * definitions.
 *
 * Parsed lists of actions are cached.
 */
import type { ActionAdvertisement, ActionEffects, ActionGuards } from '../core/connections/connection.ts';
import type { Principal } from '../core/auth/principal.ts';
import { BoundedMap } from '../core/collections.ts';
import { requireAdvertised } from '../core/devices/device.ts';
import type { ByteRates } from '../core/shares/turns.ts';
import type { ContextReport, ReportPart, ReportedContext, ReportedWindow } from '../core/contexts/context.ts';
import { invalid } from '../core/errors.ts';
import { id, name as actionName } from '../core/ids.ts';
import {
  isArrayText,
  isObjectText,
  itemsOf,
  jsonFault,
  membersOf,
  readMembers,
  trustJson,
  utf8Length,
  type JsonFault,
  type JsonText,
  type Members,
} from '../core/json.ts';
import {
  ADVERTISED_BYTE_COST,
  ACTION_BYTES,
  CLIENT_ACTIONS,
  CLIENT_CONTEXTS,
  ENVELOPE_PARTS,
  JSON_DEPTH,
  METADATA_BYTES,
  RECEIVED_IDS,
} from '../core/limits.ts';
import type { Resumes } from '../core/commands/client-link.ts';
import type { SiteDefinition } from '../core/sites/site-requests.ts';
import type { Table } from '../protocol/fields.ts';
import type { FrameFault } from '../protocol/frame-fault.ts';
import { CONTEXT, WINDOW, parseRow } from '../protocol/report-rows.ts';

/** The metadata and actions that a client advertises. The JSON texts are exactly as received. */
export type Advertisement = { readonly metadata: JsonText | null; readonly actions: readonly ActionAdvertisement[] };

/**
 * Reads the payload of `hello` or `actions`. Throws `invalid_argument` with the name of the invalid member. Ignores
 * unknown members. `lists`: the cache of action lists. `onParse`: called before a list is parsed that is not in the
 * cache.
 */
export function readAdvertisement(payload: string | null, lists: ActionLists, onParse = () => {}): Advertisement {
  if (payload === null) return { metadata: null, actions: [] };
  const members = payloadMembers(payload);
  const metadata = memberIn(members, 'metadata');
  if (metadata !== null && utf8Length(metadata) > METADATA_BYTES)
    invalid('metadata', `at most ${METADATA_BYTES} bytes are kept`);
  const actions = memberIn(members, 'actions');
  const parse = (json: JsonText): readonly ActionAdvertisement[] => {
    onParse();
    return readActions(json);
  };
  return { metadata, actions: actions === null ? [] : lists.get(actions, { payload, parse }) };
}

/**
 * Reads an advertisement. If its list of actions must be parsed, the user is charged additional bytes, because parsing
 * is expensive.
 */
export function readAdvertised(
  { actionLists, inbound }: { readonly actionLists: ActionLists; readonly inbound: ByteRates },
  payload: string | null,
  principal: Principal,
): Advertisement {
  const advertised = readAdvertisement(payload, actionLists, () => {
    const more = (ADVERTISED_BYTE_COST - 1) * (payload?.length ?? 0);
    if (principal.kind === 'user') inbound.of(principal.userId).charge(more);
  });
  requireAdvertised(principal, advertised.actions);
  return advertised;
}

/**
 * Reads which commands a client has received, from the payload of its `hello`; null if the hello contains neither this
 * list nor a link attempt. Throws `invalid_argument` if it contains only one of the two.
 */
export function readResumes(payload: string | null, attempt: number | undefined): Resumes | null {
  const received = payload === null ? null : memberIn(payloadMembers(payload), 'received');
  if (attempt === undefined && received === null) return null;
  if (received === null) return invalid('received', 'required with link_attempt');
  if (attempt === undefined) return invalid('link_attempt', 'required with received');
  if (attempt < 1) return invalid('link_attempt', 'at least 1');
  return { attempt, received: new Set(arrayOf('received', received, RECEIVED_IDS).map(readReceived)) };
}

function readReceived(item: JsonText, index: number): string {
  return readId(`received[${index}]`, item);
}

function readActions(json: JsonText): readonly ActionAdvertisement[] {
  if (!isArrayText(json)) return invalid('actions', 'an array was expected');
  const items =
    itemsOf(json, CLIENT_ACTIONS) ?? invalid('actions', `at most ${CLIENT_ACTIONS} actions can be advertised`);
  const actions = items.map((item, index) => readAction(`actions[${index}]`, item));
  checkOnce(
    'actions',
    actions.map(({ name }) => name),
  );
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

/** The name of each flag on the wire, by its name in core. */
type FlagNames<T> = { readonly [Name in keyof T]: string };
const GUARDS: FlagNames<ActionGuards> = { approval: 'approval', lease: 'lease' };
const EFFECTS: FlagNames<ActionEffects> = {
  readOnly: 'read_only',
  destructive: 'destructive',
  idempotent: 'idempotent',
  openWorld: 'open_world',
};

/** Reads the flags of an object; null if the object is absent. Ignores other members. */
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

// Parses the payload of a `report` frame: contexts and windows.

/**
 * The most items that one list of a report may contain. It is more than a client may have, so that a report over that
 * limit is still read and gets `capacity_exceeded`.
 */
const ROWS = 2 * CLIENT_CONTEXTS;

/**
 * Reads the payload of `report`. If a member is invalid, throws `invalid_argument` with the member's name. Ignores
 * unknown members.
 */
export function readReport(payload: string | null): ContextReport {
  const members = payloadMembers(payload);
  return {
    contexts: readPart('contexts', memberIn(members, 'contexts'), { read: readContext, idOf: (row) => row.contextId }),
    windows: readPart('windows', memberIn(members, 'windows'), { read: readWindow, idOf: (row) => row.windowId }),
  };
}

type Rows<T> = {
  readonly read: (where: string, item: JsonText) => T;
  readonly idOf: (row: T) => string;
};

function readPart<T>(where: string, json: JsonText | null, { read, idOf }: Rows<T>): ReportPart<T> | null {
  if (json === null) return null;
  const members = objectOf(where, json);
  const each = <R>(member: string, readOne: (at: string, item: JsonText) => R): R[] => {
    const list = memberIn(members, member);
    const items = list === null ? [] : arrayOf(`${where}.${member}`, list, ROWS);
    return items.map((item, i) => readOne(`${where}.${member}[${i}]`, item));
  };
  const snapshot = flagIn(`${where}.snapshot`, memberIn(members, 'snapshot')) ?? false;
  const set = each('set', read);
  const removed = each('removed', readId);
  if (snapshot && removed.length > 0)
    invalid(`${where}.removed`, 'a snapshot removes every row that it does not set, so `removed` must be empty');
  checkOnce(where, [...set.map(idOf), ...removed]);
  return { snapshot, set, removed };
}

function readContext(where: string, item: JsonText): ReportedContext {
  const members = objectOf(where, item);
  const row = parseRow(CONTEXT, fieldsIn(members, CONTEXT));
  if (typeof row === 'string') return invalidAt(where, row);
  const metadata = memberIn(members, 'metadata');
  if (metadata !== null && utf8Length(metadata) > METADATA_BYTES)
    invalid(`${where}.metadata`, `at most ${METADATA_BYTES} bytes are kept`);
  return {
    contextId: row.context_id,
    status: row.status,
    ownership: row.ownership,
    windowId: row.window_id ?? null,
    taskId: row.task_id ?? null,
    title: row.title ?? null,
    metadata,
  };
}

function readWindow(where: string, item: JsonText): ReportedWindow {
  const row = parseRow(WINDOW, fieldsIn(objectOf(where, item), WINDOW));
  if (typeof row === 'string') return invalidAt(where, row);
  return {
    windowId: row.window_id,
    ownership: row.ownership,
    focused: row.focused,
    type: row.type,
    state: row.state,
    incognito: row.incognito,
    tabCount: row.tab_count,
    capacity: row.capacity ?? null,
    draining: row.draining,
    status: row.status,
    workerCount: row.worker_count ?? 0,
    idleCount: row.idle_count ?? 0,
    busyCount: row.busy_count ?? 0,
  };
}

/**
 * Reads the fields that the table names, without checking them. An absent field becomes null. An object or a list
 * becomes `{}`, which a later check refuses.
 */
function fieldsIn(members: Members, table: Table): Record<string, unknown> {
  return Object.fromEntries(Object.keys(table).map((field) => [field, scalarOf(members.get(field) ?? null)]));
}

/**
 * Throws `invalid_argument` for a row. `fault` begins with the name of the invalid member and a colon, or describes the
 * row as a whole.
 */
function invalidAt(where: string, fault: string): never {
  const [, member, detail] = /^(\w+): (.*)$/s.exec(fault) ?? [];
  return member === undefined ? invalid(where, fault) : invalid(`${where}.${member}`, detail ?? fault);
}

function checkOnce(where: string, ids: readonly string[]): void {
  const seen = new Set<string>();
  for (const one of ids) {
    if (seen.has(one)) invalid(where, `${one} appears twice`);
    seen.add(one);
  }
}

function readId(where: string, item: JsonText): string {
  const value = scalarOf(item);
  return typeof value === 'string' ? id(where, value) : invalid(where, 'a string was expected');
}

/** Reads a site definition. Unknown members are ignored. */
export function readDefinition(payload: JsonText | null): Omit<SiteDefinition, 'siteId' | 'clientId'> {
  const given = payload === null || payload.trim() === 'null' ? trustJson('{}') : payload;
  const members = objectOf('payload', given);
  const profile = memberIn(members, 'capability_profile');
  return {
    title: textIn('title', memberIn(members, 'title')),
    eventNames: readNames('event_names', memberIn(members, 'event_names')),
    actions: readNames('actions', memberIn(members, 'actions')),
    capabilityProfile: profile === null ? null : readProfile(objectOf('capability_profile', profile)),
  };
}

function readProfile(members: Members): NonNullable<SiteDefinition['capabilityProfile']> {
  const flag = (member: string): boolean => flagIn(`capability_profile.${member}`, memberIn(members, member)) ?? false;
  return { actionInvocation: flag('action_invocation'), sharing: flag('sharing') };
}

function readNames(where: string, json: JsonText | null): readonly string[] | null {
  if (json === null) return null;
  return arrayOf(where, json, ENVELOPE_PARTS).map(
    (item, i) => textIn(`${where}[${i}]`, item) ?? invalid(`${where}[${i}]`, 'a string was expected'),
  );
}

/** The most lists in the cache. Each version of each connected application needs one. */
const LISTS = 64;
/**
 * The longest payload, in characters, whose list is cached. The text of a list may be a slice of its payload, which
 * then stays in memory as a whole. All cached payloads together have at most 4 Mi characters.
 */
const PAYLOAD_CHARS = 65_536;

type Parsed = {
  readonly payload: string;
  readonly parse: (json: JsonText) => readonly ActionAdvertisement[];
};

/**
 * A cache of parsed lists of actions by their JSON text. All tabs of an application advertise the same list, so they
 * share one parsed object, and the list is not parsed again when the tabs reconnect.
 */
export class ActionLists {
  readonly #lists = new BoundedMap<string, readonly ActionAdvertisement[]>({ most: LISTS, order: 'used' });

  /**
   * Returns the list for a text, which is part of `payload`. Calls `parse` if the list is not in the cache. If `parse`
   * throws, nothing is cached.
   */
  get(json: JsonText, { payload, parse }: Parsed): readonly ActionAdvertisement[] {
    if (payload.length > PAYLOAD_CHARS) return parse(json);
    const known = this.#lists.get(json);
    if (known) return known;
    const list = parse(json);
    this.#lists.set(json, list);
    return list;
  }

  get size(): number {
    return this.#lists.size;
  }
}

// Checks that the payload of a frame is JSON, and reads members from it.

/** The error for a payload that is not JSON, or nested too deeply. */
export class BadPayload extends Error {
  /** The fault that the frame has because of its payload. */
  readonly frameFault: FrameFault['fault'];

  constructor(fault: JsonFault) {
    super(`payload: ${fault === 'depth' ? TOO_DEEP : NOT_JSON}`);
    this.frameFault = fault === 'depth' ? 'invalid_argument' : 'unreadable';
  }
}

const TOO_DEEP = `nested deeper than ${JSON_DEPTH} levels`;
const NOT_JSON = 'not JSON';

type WithPayload = { readonly payload: string | null };

/** Returns the payload unchanged if it is JSON; null if the frame has no payload. */
export function payloadOrFault({ payload }: WithPayload): JsonText | BadPayload | null {
  if (payload === null) return null;
  const fault = jsonFault(payload);
  return fault === null ? trustJson(payload) : new BadPayload(fault);
}

/** Returns the payload if it is JSON, like `payloadOrFault`, but throws a BadPayload otherwise. */
export function payloadOf(frame: WithPayload): JsonText | null {
  const payload = payloadOrFault(frame);
  if (payload instanceof BadPayload) throw payload;
  return payload;
}

/**
 * Returns the members of a JSON object, as JSON texts. Throws `invalid_argument` for the parameter `where` if the text
 * is not an object.
 */
function objectOf(where: string, json: JsonText): Members {
  if (!isObjectText(json)) return invalid(where, 'an object was expected');
  return membersOf(json, ENVELOPE_PARTS) ?? invalid(where, `at most ${ENVELOPE_PARTS} members are allowed`);
}

/** Returns the members of a frame's payload, like `objectOf`. Checks first that the payload is JSON. */
function payloadMembers(payload: string | null): Members {
  const members = payload === null ? 'syntax' : readMembers(payload, ENVELOPE_PARTS);
  if (members === null) return invalid('payload', 'an object was expected');
  if (members === 'members') return invalid('payload', `at most ${ENVELOPE_PARTS} members are allowed`);
  if (typeof members === 'string') return invalid('payload', members === 'depth' ? TOO_DEEP : NOT_JSON);
  return members;
}

/**
 * Returns the items of a JSON array. Throws `invalid_argument` for the parameter `where` if the text is not an array,
 * or has more than `most` items.
 */
function arrayOf(where: string, json: JsonText, most: number): readonly JsonText[] {
  if (!isArrayText(json)) return invalid(where, 'an array was expected');
  return itemsOf(json, most) ?? invalid(where, `at most ${most} items are allowed`);
}

/** Returns the value of a member as JSON text; null if it is absent or JSON `null`. */
function memberIn(members: Members, name: string): JsonText | null {
  const json = members.get(name);
  return json === undefined || json === 'null' ? null : json;
}

/** Reads a string, or null. Throws `invalid_argument` for the parameter `where` if the value is anything else. */
function textIn(where: string, json: JsonText | null): string | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'string' ? value : invalid(where, 'a string was expected');
}

/** Reads a boolean, or null. Throws `invalid_argument` for the parameter `where` if the value is anything else. */
function flagIn(where: string, json: JsonText | null): boolean | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'boolean' ? value : invalid(where, 'true or false was expected');
}

/**
 * Reads a JSON string, number, boolean or null. Returns an empty object for an object or an array, without parsing it.
 */
function scalarOf(json: JsonText | null): unknown {
  if (json === null) return null;
  return isObjectText(json) || isArrayText(json) ? {} : JSON.parse(json);
}
