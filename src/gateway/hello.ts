/** Parses the payload of `hello` and `actions`: the metadata and actions that a client advertises. */
import {
  requirePrincipal,
  requireScope,
  requireUser,
  type Authenticator,
  type Principal,
} from '../core/auth/principal.ts';
import type { ClientLink } from '../core/commands/link-queues.ts';
import type { LinkSession } from '../core/commands/link-session.ts';
import type { ActionAdvertisement, ActionEffects, ActionGuards } from '../core/connections/connection.ts';
import type { ContextReport, ReportPart, ReportedContext, ReportedWindow } from '../core/contexts/context.ts';
import type { Core } from '../core/core.ts';
import { fail, invalid } from '../core/errors.ts';
import { id, name as actionName } from '../core/ids.ts';
import { isArrayText, isObjectText, itemsOf, utf8Length, type JsonText, type Members } from '../core/json.ts';
import {
  ACTION_BYTES,
  CLIENT_ACTIONS,
  CLIENT_CONTEXTS,
  DEAD_MS,
  IN_FLIGHT,
  MAX_FRAME_BYTES,
  METADATA_BYTES,
  PING_MS,
} from '../core/limits.ts';
import { holderOf, type Holdings } from '../core/shares/shares.ts';
import type { ByteRates } from '../core/shares/turns.ts';
import type { Table } from '../protocol/fields.ts';
import { CONTEXT, FRAMES_PER_MESSAGE, WINDOW, parseRow, type DownHeader, type UpFrame } from '../protocol/frames.ts';
import { arrayOf, flagIn, memberIn, objectOf, payloadMembers, scalarOf, textIn } from './frame-limits.ts';
import type { ActionLists } from './client-link.ts';

// Handles `hello`: authenticates the peer, opens its session in core and builds the `welcome`.

export type HelloFrame = Extract<UpFrame, { type: 'hello' }>;
export type LinkRole = 'client' | 'caller';

/**
 * The result of an accepted `hello`. `session` is null for a link without a client id. The link is counted in
 * `holdings`, and must be released there when it ends.
 */
export type Handshake = {
  readonly holdings: Holdings;
  readonly principal: Principal;
  readonly session: LinkSession | null;
  readonly welcome: DownHeader;
};

type HandshakeParts = {
  readonly core: Core;
  readonly authenticator: Authenticator;
  /** The inbound byte rates of users. */
  readonly inbound: ByteRates;
  readonly actionLists: ActionLists;
  /** The peer's address. */
  readonly address: string;
  /**
   * The number of bytes received up to and including `hello`. They count for the token's user even if `hello` is
   * refused.
   */
  readonly helloBytes: number;
};

/**
 * Checks the token, its scopes and the fields of the hello, in this order. Then claims the link's share, and binds a
 * client. Throws a CallboardError, also when the user or the administrator may not hold another link. The share stays
 * claimed only if the link opens.
 */
export async function openLink(
  { core, authenticator, inbound, actionLists, address, helloBytes }: HandshakeParts,
  hello: HelloFrame,
  link: ClientLink,
): Promise<Handshake> {
  const kind = kindOf(hello);
  const authenticated = await authenticator.authenticate(hello.token, address);
  if (authenticated?.kind === 'user') inbound.of(authenticated.userId).charge(helloBytes);
  const principal = admit(authenticated, kind);
  const { metadata, actions } = readAdvertisement(hello.payload, actionLists);
  if (kind === 'caller') {
    if (core.draining) fail('draining', 'This node takes no new links.');
    const holdings = claimLink(core, principal);
    return { principal, session: null, holdings, welcome: welcomeOf(core, principal, null) };
  }
  const request = {
    clientId: hello.client_id ?? invalid('client_id', 'required'),
    instanceId: hello.instance_id ?? invalid('instance_id', 'required for a client'),
    clientType: hello.client_type ?? invalid('client_type', 'required for a client'),
    metadata,
    actions,
  };
  const holdings = claimLink(core, principal);
  try {
    const session = await core.links.open(requireUser(principal, 'connect'), request, link);
    return { principal, session, holdings, welcome: welcomeOf(core, principal, session) };
  } catch (error) {
    releaseLink(holdings);
    throw error;
  }
}

/** Claims a link, and its socket. Throws a CallboardError, and claims neither, if the principal may not hold both. */
function claimLink({ shares }: Core, principal: Principal): Holdings {
  const holdings = shares.of(holderOf(principal));
  holdings.claim('links', 1);
  try {
    holdings.claim('sockets', 1);
  } catch (error) {
    holdings.release('links', 1);
    throw error;
  }
  return holdings;
}

/** Releases what a link claimed. Call it once, when the link ends. */
export function releaseLink(holdings: Holdings): void {
  holdings.release('links', 1);
  holdings.release('sockets', 1);
}

function kindOf(hello: HelloFrame): LinkRole {
  return hello.client_id === undefined ? 'caller' : 'client';
}

/**
 * Checks that this principal may open a link, and returns it. A client needs a user's token with the scope `connect`. A
 * caller needs the scope `invoke` or an administrator's token.
 */
export function admit(principal: Principal | null, kind: LinkRole): Principal {
  const requester = requirePrincipal(principal);
  return kind === 'client' ? requireUser(requester, 'connect') : requireScope(requester, 'invoke');
}

function welcomeOf(core: Core, principal: Principal, session: LinkSession | null): DownHeader {
  const { kind, connection, previous } = session?.result ?? {};
  return {
    type: 'welcome',
    node_id: core.nodeId,
    user_id: principal.kind === 'user' ? principal.userId : undefined,
    client_id: connection?.clientId,
    epoch: connection?.epoch,
    resumed: kind === undefined ? undefined : kind === 'resumed',
    replaced_instance_id: kind === 'replaced' ? previous?.instanceId : undefined,
    ping_ms: PING_MS,
    dead_ms: DEAD_MS,
    max_frame_bytes: MAX_FRAME_BYTES,
    frames_per_message: FRAMES_PER_MESSAGE,
    in_flight: IN_FLIGHT,
    idempotency_window_ms: core.idempotencyWindowMs,
    token_expires_at: principal.expiresAt ?? undefined,
  };
}

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

// Parses the payload of a `report` frame: contexts and windows.

/**
 * The most items that one list of a report may hold. It exceeds what a client may have, so a report over that limit is
 * still read and gets `capacity_exceeded`.
 */
const ROWS = 2 * CLIENT_CONTEXTS;

/**
 * Reads the payload of `report`. If any member is invalid, throws `invalid_argument` with the member's name. Unknown
 * members are ignored.
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
 * Reads the fields that the table names, without checking them. An absent field is null; an object or a list becomes
 * `{}`, which is refused later.
 */
function fieldsIn(members: Members, table: Table): Record<string, unknown> {
  return Object.fromEntries(Object.keys(table).map((field) => [field, scalarOf(members.get(field) ?? null)]));
}

/**
 * Throws `invalid_argument` for a row. `fault` starts with the name of the invalid member, or describes the row itself.
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
