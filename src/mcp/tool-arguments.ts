/** Separates the arguments of tools into the relay's own arguments and the params of the action. */
import { isRecord, membersOf, trustJson, type JsonText } from '../core/json.ts';
import type { Tool } from './tools.ts';

/** The relay's own arguments: those that the tool of every action takes besides the params of the action. */
const OWN_ARGUMENTS = ['client', 'context_id', 'repeat_of', 'respond_within_ms'] as const;
type OwnArgument = (typeof OWN_ARGUMENTS)[number];

/**
 * The schema of each of the relay's own arguments. The schemas are constant, so that the list stays the same while
 * clients come and go.
 */
export const ARGUMENT_SCHEMAS: Readonly<Record<OwnArgument, object>> = {
  client: {
    type: 'string',
    description: 'The client that runs it, if several offer it: see list_clients.',
  },
  context_id: {
    type: 'string',
    description: 'The tab or other context that it runs in: see list_clients.',
  },
  repeat_of: {
    type: 'string',
    description: 'The id of an equal earlier command, to run it once more.',
  },
  respond_within_ms: {
    type: 'integer',
    minimum: 1000,
    maximum: 300_000,
    description: 'How long it may take (default 30000).',
  },
};

// Names of the arguments.

/** The name that a tool has for each of the relay's own arguments; null: the tool does not take it. */
export type ArgumentNames = Readonly<Record<OwnArgument, string | null>>;

/**
 * Where a tool's arguments contain the params: in the member `params`, or as all members except the relay's own
 * arguments.
 */
export type Placing = { readonly within: 'params' | 'members'; readonly names: ArgumentNames };

export const PLAIN_NAMES: ArgumentNames = {
  client: 'client',
  context_id: 'context_id',
  repeat_of: 'repeat_of',
  respond_within_ms: 'respond_within_ms',
};

/** For a tool that takes none of the relay's own arguments. */
export const NO_ARGUMENTS: ArgumentNames = { client: null, context_id: null, repeat_of: null, respond_within_ms: null };

/**
 * Says how to pass one of the relay's own arguments. If the tool does not take it, refers to `call_action`, which takes
 * all of them.
 */
export function passing(names: ArgumentNames, argument: OwnArgument): string {
  const name = names[argument];
  return name === null ? `use call_action and pass ${argument}` : `pass ${name}`;
}

/** Returns a name for each of the relay's own arguments that no param of the action has. */
export function ownNames(params: ReadonlySet<string>): ArgumentNames {
  const nameOf = (name: OwnArgument): string | null =>
    [name, `callboard_${name}`].find((candidate) => !params.has(candidate)) ?? null;
  return {
    client: nameOf('client'),
    context_id: nameOf('context_id'),
    repeat_of: nameOf('repeat_of'),
    respond_within_ms: nameOf('respond_within_ms'),
  };
}

/** Returns the schemas of the relay's own arguments, by the names that a tool has for them. */
export function ownSchemas(names: ArgumentNames): Readonly<Record<string, object>> {
  return Object.fromEntries(
    OWN_ARGUMENTS.flatMap((name) => (names[name] === null ? [] : [[names[name], ARGUMENT_SCHEMAS[name]]])),
  );
}

// Splits the arguments of a call.

/** The arguments of a call: the params of the action, and the given values of the relay's own arguments. */
type SplitArguments = {
  readonly params: JsonText | null;
  readonly own: { readonly [Name in OwnArgument]?: JsonText | undefined };
};

/** The maximum number of members in the arguments of a call. */
const MEMBERS = 10_000;

/**
 * Separates the relay's own arguments from the params, whose text stays unchanged. Null: the arguments are not an
 * object.
 */
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

/** Returns the names of those arguments that the tool's schema does not contain. */
export function unknownArguments(args: JsonText | null, { properties }: Tool['inputSchema']): readonly string[] {
  const members = args === null ? null : membersOf(args, MEMBERS);
  if (members === null || !isRecord(properties)) return [];
  return [...members.keys()].filter((name) => !Object.hasOwn(properties, name));
}

function objectOf(members: ReadonlyMap<string, JsonText>): JsonText {
  return trustJson(`{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`);
}

/** How call_action takes its arguments: the params are in the member `params`. */
export const IN_PARAMS: Placing = { within: 'params', names: PLAIN_NAMES };
