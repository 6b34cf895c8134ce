/**
 * The tools that a user's agents are offered: one for each action that the user's clients advertise. Decides their
 * names and schemas, keeps the list steady while clients come and go, and separates the arguments of a call from its
 * params.
 */
import { hash } from 'node:crypto';
import type { ActionAdvertisement, ClientType } from '../core/connections/connection.ts';
import { isRecord, membersOf, parsedJson, trustJson, type JsonText } from '../core/json.ts';
import {
  AGENT_DESCRIPTION_CHARS,
  AGENT_SCHEMAS_CHARS,
  AGENT_SCHEMA_CHARS,
  AGENT_TOOLS,
  AGENT_TOOL_KEPT_MS,
  AGENT_TOOL_NAME_CHARS,
} from '../core/limits.ts';
import { visibleText } from '../protocol/visible-text.ts';

/** A tool as `tools/list` answers it. */
export type Tool = {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: { readonly type: 'object' } & Readonly<Record<string, unknown>>;
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
};

/** One client that advertises one action. */
export type Offer = {
  readonly clientId: string;
  readonly clientType: ClientType;
  readonly action: ActionAdvertisement;
};

/** The arguments that every tool of an action takes besides the params of the action. */
const OWN_ARGUMENTS = ['client', 'context_id', 'repeat_of', 'respond_within_ms'] as const;
type OwnArgument = (typeof OWN_ARGUMENTS)[number];

/** The schema of each own argument. They never change, so that the list stays the same while clients come and go. */
export const ARGUMENT_SCHEMAS: Readonly<Record<OwnArgument, object>> = {
  client: {
    type: 'string',
    description:
      'The id of the client that is to run the action. Needed if several clients offer it: see list_clients.',
  },
  context_id: {
    type: 'string',
    description: 'The id of the browser tab or other context in which it is to run: see list_clients.',
  },
  repeat_of: {
    type: 'string',
    description: 'The id of an earlier command that did the same, to run it once more on purpose.',
  },
  respond_within_ms: {
    type: 'integer',
    minimum: 1000,
    maximum: 300_000,
    description: 'How long the client may take, in milliseconds (default 30000).',
  },
};

// Names.

/** Returns the name of the tool of an action. `isTaken`: whether another tool has, or may have, the plain name. */
export function toolName(action: string, isTaken: (plain: string) => boolean): string {
  const plain = plainName(action);
  if (plain.length <= AGENT_TOOL_NAME_CHARS && !isTaken(plain)) return plain;
  const digest = hash('sha256', action, 'hex').slice(0, DIGEST_CHARS);
  return `${plain.slice(0, AGENT_TOOL_NAME_CHARS - DIGEST_CHARS - 1)}_${digest}`;
}

const DIGEST_CHARS = 6;

function plainName(action: string): string {
  return action.replaceAll(/[^A-Za-z0-9_]/g, '_');
}

// Texts of clients. They are shown to models, so each says which client wrote it, and cannot end that statement.

/** Returns a text of a client on one line, with hidden characters as their codes, and at most `most` characters. */
export function clientText(text: string, most: number): string {
  // White space first: a line feed could make the rest look like a text of the relay or of another client.
  const line = visibleText(
    text
      .slice(0, 4 * most)
      .toWellFormed()
      .replaceAll(/\s+/g, ' '),
  ).trim();
  return line.length <= most ? line : `${line.slice(0, most - 1).toWellFormed()}…`;
}

function describe(variants: readonly Variant[]): string {
  const [first, ...others] = variants;
  if (!first) return '';
  const texts = variants.map(({ by, text }) => `From the client "${by}": ${text}`);
  const several =
    others.length === 0
      ? ''
      : 'Clients describe this action differently. It takes the arguments of the client that runs it: see describe_action. ';
  return cut(several + texts.join(' '), AGENT_DESCRIPTION_CHARS);
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}

// Schemas.

/** The name under which a tool takes each own argument; null: the tool does not take it. */
export type ArgumentNames = Readonly<Record<OwnArgument, string | null>>;

/** How the arguments of a tool hold the params: as `params`, or as the members that are no own arguments. */
type Placing = { readonly within: 'params' | 'members'; readonly names: ArgumentNames };

type Shaped = { readonly inputSchema: Tool['inputSchema']; readonly placing: Placing };

const COMBINING = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'not', 'if'];

/**
 * Builds the schema of a tool from those of its variants. One schema is taken over, if it describes an object and
 * refers to nothing outside. Hosts refuse schemas whose root combines others, so such a schema is moved into the member
 * `params`. Everything else becomes an object with any members.
 */
function shape(schemas: readonly (JsonText | null)[], most: number): Shaped {
  const parsed = schemas.map((text) => (text === null ? null : parsedJson(text)));
  const names = ownNames(parsed);
  const own = Object.fromEntries(
    OWN_ARGUMENTS.flatMap((name) => (names[name] === null ? [] : [[names[name], ARGUMENT_SCHEMAS[name]]])),
  );
  const open: Shaped = {
    inputSchema: { type: 'object', properties: own },
    placing: { within: 'members', names },
  };
  const [text = null, ...others] = schemas;
  const [schema] = parsed;
  if (text === null || others.length > 0 || text.length > most || !isRecord(schema) || refersOutside(schema))
    return open;
  if (COMBINING.some((word) => Object.hasOwn(schema, word))) {
    if (text.includes('$ref') || text.includes('$dynamicRef')) return open;
    const { $schema, ...within } = schema;
    const inputSchema = { ...($schema === undefined ? {} : { $schema }), type: 'object' as const };
    return {
      inputSchema: {
        ...inputSchema,
        properties: { params: within, ...PLAIN_PROPERTIES },
        required: ['params'],
        additionalProperties: false,
      },
      placing: { within: 'params', names: PLAIN_NAMES },
    };
  }
  const { type, properties, $id: _, ...rest } = schema;
  const isObject = type === undefined || type === 'object' || (Array.isArray(type) && type.includes('object'));
  if (!isObject || (properties !== undefined && !isRecord(properties))) return open;
  return { ...open, inputSchema: { ...rest, type: 'object', properties: { ...properties, ...own } } };
}

const PLAIN_NAMES: ArgumentNames = {
  client: 'client',
  context_id: 'context_id',
  repeat_of: 'repeat_of',
  respond_within_ms: 'respond_within_ms',
};
const PLAIN_PROPERTIES = { ...ARGUMENT_SCHEMAS };

/** The names of a tool that takes no own argument. */
export const NO_ARGUMENTS: ArgumentNames = { client: null, context_id: null, repeat_of: null, respond_within_ms: null };

/** Says how to pass an own argument: to `call_action`, which takes all of them, if the tool does not take it. */
export function passing(names: ArgumentNames, argument: OwnArgument): string {
  const name = names[argument];
  return name === null ? `use call_action and pass ${argument}` : `pass ${name}`;
}

/** Returns a name for each own argument that no schema uses for a param of its action. */
function ownNames(schemas: readonly unknown[]): ArgumentNames {
  const taken = new Set(schemas.flatMap((schema) => (isRecord(schema) ? namesIn(schema) : [])));
  const nameOf = (name: OwnArgument): string | null =>
    [name, `callboard_${name}`].find((candidate) => !taken.has(candidate)) ?? null;
  return {
    client: nameOf('client'),
    context_id: nameOf('context_id'),
    repeat_of: nameOf('repeat_of'),
    respond_within_ms: nameOf('respond_within_ms'),
  };
}

function namesIn({ properties, required }: Readonly<Record<string, unknown>>): readonly string[] {
  const named = isRecord(properties) ? Object.keys(properties) : [];
  const demanded: readonly unknown[] = Array.isArray(required) ? required : [];
  return [...named, ...demanded.filter((name) => typeof name === 'string')];
}

/** Whether a reference in the schema does not begin with `#`. Hosts might fetch it. */
function refersOutside(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(refersOutside);
  if (!isRecord(value)) return false;
  return Object.entries(value).some(
    ([name, member]) =>
      ((name === '$ref' || name === '$dynamicRef') && !(typeof member === 'string' && member.startsWith('#'))) ||
      refersOutside(member),
  );
}

// The tools of one user.

/** An action as one or more clients advertise it in the same words. */
type Variant = {
  readonly key: string;
  /** The client whose description is shown. It stays the same while others advertise the same. */
  readonly by: string;
  readonly text: string;
  readonly types: ReadonlySet<ClientType>;
  readonly action: ActionAdvertisement;
};

type Entry = {
  variants: readonly Variant[];
  /** When a client last advertised the action, by `Clock.monotonic`. */
  seenAt: number;
};

/** The tool of an action, and how to read the arguments of its calls. */
export type ActionTool = { readonly action: string; readonly tool: Tool; readonly placing: Placing };

/** Whether the requester may invoke an action on clients of this type. */
export type Allowed = (action: string, clientType: ClientType) => boolean;

const ADVERTISED = new WeakMap<ActionAdvertisement, string>();

/** Returns a text that is equal for advertisements that a tool shows alike. */
function keyOf(action: ActionAdvertisement): string {
  const known = ADVERTISED.get(action);
  if (known !== undefined) return known;
  const { summary, description, schema, effects } = action;
  const key = hash('sha256', JSON.stringify([summary, description, schema, effects]), 'base64url');
  ADVERTISED.set(action, key);
  return key;
}

/** The actions that the clients of one user advertise, or did until lately. */
export class Catalog {
  readonly #entries = new Map<string, Entry>();
  readonly #shaped = new Map<string, Shaped>();

  /** Takes over what the connected clients advertise now. `now`: by `Clock.monotonic`. */
  refresh(offers: readonly Offer[], now: number): void {
    const live = Map.groupBy(offers, ({ action }) => action.name);
    for (const [name, { seenAt }] of this.#entries)
      if (!live.has(name) && now - seenAt >= AGENT_TOOL_KEPT_MS) this.#entries.delete(name);
    for (const [name, offered] of [...live].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const known = this.#entries.get(name);
      if (!known && this.#entries.size >= AGENT_TOOLS && !this.#forgetOne(live)) continue;
      this.#entries.set(name, { variants: variantsOf(offered, known?.variants ?? []), seenAt: now });
    }
  }

  /** Makes room by forgetting the action that no client has advertised for longest. */
  #forgetOne(live: ReadonlyMap<string, unknown>): boolean {
    let oldest: string | null = null;
    let since = Infinity;
    for (const [name, { seenAt }] of this.#entries) {
      if (!live.has(name) && seenAt < since) [oldest, since] = [name, seenAt];
    }
    return oldest !== null && this.#entries.delete(oldest);
  }

  /**
   * Returns the tools that this requester may call, in the order of their names. `reserved`: the names of other tools.
   */
  tools(allowed: Allowed, reserved: ReadonlySet<string>): readonly ActionTool[] {
    const plain = Map.groupBy(this.#entries.keys(), plainName);
    const isTaken = (name: string): boolean => reserved.has(name) || (plain.get(name)?.length ?? 0) > 1;
    let room = AGENT_SCHEMAS_CHARS;
    const tools: ActionTool[] = [];
    for (const name of [...this.#entries.keys()].sort()) {
      const variants = (this.#entries.get(name)?.variants ?? []).filter(({ types }) =>
        [...types].some((type) => allowed(name, type)),
      );
      if (variants.length === 0) continue;
      const { inputSchema, placing } = this.#shape(variants, room);
      room -= Math.min(AGENT_SCHEMA_CHARS, variants[0]?.action.schema?.length ?? 0);
      const tool = { name: toolName(name, isTaken), title: name, description: describe(variants), inputSchema };
      tools.push({ action: name, placing, tool: { ...tool, annotations: annotationsOf(variants) } });
    }
    return tools.sort((a, b) => (a.tool.name < b.tool.name ? -1 : 1));
  }

  /** Shapes a schema once for each combination of variants. */
  #shape(variants: readonly Variant[], room: number): Shaped {
    const most = Math.min(AGENT_SCHEMA_CHARS, room);
    const key = `${most < AGENT_SCHEMA_CHARS ? 'open' : ''} ${variants.map((variant) => variant.key).join(' ')}`;
    const known = this.#shaped.get(key);
    if (known) return known;
    if (this.#shaped.size >= 2 * AGENT_TOOLS) this.#shaped.clear();
    const schemas = [...new Set(variants.map(({ action }) => action.schema))];
    const shaped = shape(schemas, most < AGENT_SCHEMA_CHARS ? 0 : most);
    this.#shaped.set(key, shaped);
    return shaped;
  }
}

/** Groups the offers of one action by what they say. Variants that were known keep the client that is named. */
function variantsOf(offers: readonly Offer[], before: readonly Variant[]): readonly Variant[] {
  const groups = Map.groupBy(offers, ({ action }) => keyOf(action));
  return [...groups]
    .map(([key, group]) => {
      const known = before.find((variant) => variant.key === key);
      const types = new Set(group.map(({ clientType }) => clientType));
      const [first] = group.toSorted((a, b) => (a.clientId < b.clientId ? -1 : 1));
      const action = known?.action ?? first?.action;
      return (
        action && { key, by: known?.by ?? first?.clientId ?? '', text: known?.text ?? textOf(action), types, action }
      );
    })
    .filter((variant) => variant !== undefined)
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

function textOf({ summary, description }: ActionAdvertisement): string {
  const texts = [summary, description].filter((text) => text !== null && text.trim() !== '');
  return texts.length === 0 ? 'no description.' : clientText(texts.join(' '), AGENT_DESCRIPTION_CHARS);
}

/** Returns the hints for all variants together. An action without hints may do anything. */
function annotationsOf(variants: readonly Variant[]): Tool['annotations'] {
  const effects = variants.map(({ action }) => action.effects);
  return {
    readOnlyHint: effects.every((effect) => effect?.readOnly === true),
    destructiveHint: effects.some((effect) => effect?.destructive !== false && effect?.readOnly !== true),
    idempotentHint: effects.every((effect) => effect?.idempotent === true),
    openWorldHint: effects.some((effect) => effect?.openWorld !== false),
  };
}

// The arguments of a call.

/** The arguments of a call: the params of the action, and the own arguments as they were given. */
export type SplitArguments = {
  readonly params: JsonText | null;
  readonly own: { readonly [Name in OwnArgument]?: JsonText | undefined };
};

/** The most members of the arguments of a call. */
const MEMBERS = 10_000;

/** Separates the own arguments from the params, whose text is not changed. Null: the arguments are not an object. */
export function splitArguments(args: JsonText | null, { within, names }: Placing): SplitArguments | null {
  if (args === null) return { params: null, own: {} };
  const members = membersOf(args, MEMBERS);
  if (members === null) return null;
  const own: { [Name in OwnArgument]?: JsonText } = {};
  const rest = new Map(members);
  for (const name of OWN_ARGUMENTS) {
    const given = names[name];
    const value = given === null ? undefined : members.get(given);
    if (given === null || value === undefined) continue;
    own[name] = value;
    rest.delete(given);
  }
  if (within === 'params') return { params: rest.get('params') ?? null, own };
  return { params: rest.size === members.size ? args : objectOf(rest), own };
}

/** Returns the names of the arguments that the schema of a tool does not have. */
export function unknownArguments(args: JsonText | null, { properties }: Tool['inputSchema']): readonly string[] {
  const members = args === null ? null : membersOf(args, MEMBERS);
  if (members === null || !isRecord(properties)) return [];
  return [...members.keys()].filter((name) => !Object.hasOwn(properties, name));
}

function objectOf(members: ReadonlyMap<string, JsonText>): JsonText {
  return trustJson(`{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`);
}

/** The placing of call_action, whose params are in a member. */
export const IN_PARAMS: Placing = { within: 'params', names: PLAIN_NAMES };
