/**
 * Generates GraphQL documents that grow: draws a field with a selection, and adds copies, arguments and nested lists.
 */
import {
  getNamedType,
  getNullableType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isUnionType,
} from 'graphql';
import { schema } from '../../../src/graphql/schema/schema.ts';
import { GROWING_DOCUMENTS } from '../documents.ts';
import { drawJson, growJson, type JsonGene, jsonOf, showJson } from '../json-text.ts';
import { answerOf } from '../judge.ts';
import type { Draw } from '../../lib/random.ts';
import { sendDocument } from '../send-request.ts';
import type { CostInput, CostKind, Sender } from './cost.ts';
import type { CostTarget } from './cost-target.ts';

/**
 * A selected field with its arguments as GraphQL literals. `copies`: how often it is selected, each time with another
 * alias.
 */
export type Selection = {
  readonly field: string;
  readonly args: Readonly<Record<string, string>>;
  /** The type whose fields are selected. For a union or interface, each object type has an inline fragment. */
  readonly type: string | null;
  readonly copies: number;
  readonly subs: readonly Selection[];
};

export type Operation = 'query' | 'mutation' | 'subscription';

type DocumentGene = {
  readonly operation: Operation;
  readonly roots: readonly Selection[];
  /** The value of the variable `$json`, which is used for all arguments of opaque JSON. */
  readonly json: JsonGene | null;
};

/** Returns values for arguments that are ids or texts, by the name of the argument. */
type KnownValues = (name: string, draw: Draw) => string | null;

const COPIES_MAX = 100;
/** The maximum number of fields in a document. It exceeds the relay's limit of tokens. */
const FIELDS_MAX = 5_000;
const PAGES = [1, 10, 100, 1_000];
/** The number of levels of fields in a new selection. */
const LEVELS = 2;

const ROOTS: Readonly<Record<Operation, GraphQLObjectType>> = {
  query: rootOf('Query'),
  mutation: rootOf('Mutation'),
  subscription: rootOf('Subscription'),
};

function rootOf(name: string): GraphQLObjectType {
  const type = schema.getType(name);
  if (!isObjectType(type)) throw new Error(`the schema has no type ${name}`);
  return type;
}

/** Returns the root fields of an operation. */
export function rootFields(operation: Operation): readonly string[] {
  return Object.keys(ROOTS[operation].getFields());
}

export function drawDocument(
  draw: Draw,
  { operation, field, known }: { readonly operation: Operation; readonly field: string; readonly known: KnownValues },
): DocumentGene {
  const root = ROOTS[operation].getFields()[field];
  if (!root) throw new Error(`there is no field ${field}`);
  return { operation, roots: [selectionOf(draw, root, LEVELS, known)], json: null };
}

function selectionOf(draw: Draw, field: GraphQLField<unknown, unknown>, levels: number, known: KnownValues): Selection {
  const type = getNamedType(field.type);
  const isLeaf = !isObjectType(type) && !isUnionType(type) && !isInterfaceType(type);
  return {
    field: field.name,
    args: argumentsOf(draw, field, known),
    type: isLeaf ? null : type.name,
    copies: 1,
    subs: isLeaf ? [] : subsOf(draw, type.name, levels, known),
  };
}

function argumentsOf(draw: Draw, field: GraphQLField<unknown, unknown>, known: KnownValues): Record<string, string> {
  const args: Record<string, string> = {};
  for (const { name, type } of field.args) {
    if (name === 'after' || (!isNonNullType(type) && !draw.chance(0.35))) continue;
    const value = literalOf(draw, name, type, known);
    if (value !== null) args[name] = value;
  }
  return args;
}

function literalOf(draw: Draw, name: string, type: GraphQLInputType, known: KnownValues): string | null {
  const inner = getNullableType(type);
  if (isListType(inner)) {
    const items = Array.from({ length: draw.int(1, 3) }, () => literalOf(draw, name, inner.ofType, known));
    return `[${items.filter((item) => item !== null).join(',')}]`;
  }
  if (isEnumType(inner)) return draw.pick(inner.getValues()).name;
  if (isInputObjectType(inner)) {
    const members = Object.values(inner.getFields())
      .filter((member) => isNonNullType(member.type) || draw.chance(0.25))
      .map((member) => [member.name, literalOf(draw, member.name, member.type, known)] as const);
    return `{${members.flatMap(([key, value]) => (value === null ? [] : [`${key}:${value}`])).join(',')}}`;
  }
  if (inner.name === 'JSON') return '$json';
  if (inner.name === 'Int') return String(name === 'first' ? draw.pick(PAGES) : draw.pick([100, 1_000, 3_600]));
  if (inner.name === 'Boolean') return String(draw.chance(0.5));
  if (inner.name === 'DateTime') return JSON.stringify(draw.pick(['2020-01-01T00:00:00Z', '2100-01-01T00:00:00Z']));
  return JSON.stringify(known(name, draw) ?? 'x');
}

/** Draws fields of a type: all or some of the fields without selections, and sometimes one field with a selection. */
function subsOf(draw: Draw, typeName: string, levels: number, known: KnownValues): readonly Selection[] {
  const type = schema.getType(typeName);
  if (isUnionType(type) || isInterfaceType(type))
    return schema.getPossibleTypes(type).map((one) => ({
      ...{ field: `... on ${one.name}`, args: {}, type: one.name, copies: 1 },
      subs: subsOf(draw, one.name, levels, known),
    }));
  if (!isObjectType(type)) return [];
  const fields = Object.values(type.getFields()).filter(({ args }) => args.every((arg) => !isNonNullType(arg.type)));
  const leaves = fields.filter(({ type }) => !isComposite(getNamedType(type).name));
  const nested = fields.filter(({ type }) => isComposite(getNamedType(type).name));
  const some = draw.chance(0.3) ? leaves : leaves.filter(() => draw.chance(0.3));
  // A list has its rows in the field `nodes` or `items`; without that field, the list costs little.
  const rows = nested.filter(({ name }) => name === 'nodes' || name === 'items');
  const deeper = levels > 0 && nested.length > 0 && draw.chance(0.6) ? [draw.pick(nested)] : [];
  const chosen = [...new Set([...some, ...rows, ...deeper])];
  const subs = chosen.map((field) => selectionOf(draw, field, levels - 1, known));
  return subs.length > 0 ? subs : [{ field: '__typename', args: {}, type: null, copies: 1, subs: [] }];
}

function isComposite(name: string): boolean {
  const type = schema.getType(name);
  return isObjectType(type) || isUnionType(type) || isInterfaceType(type);
}

/** Returns the document with one to three changes, most of which make it larger. */
export function growDocument(draw: Draw, gene: DocumentGene, known: KnownValues): DocumentGene {
  let grown = gene;
  for (let left = draw.int(1, 3); left > 0; left--) {
    const changed = changeOnce(draw, grown, known);
    if (countOf(changed.roots) <= FIELDS_MAX) grown = changed;
  }
  return grown;
}

/** Counts the fields that the document selects. Copies of a field multiply the fields in its selection. */
function countOf(selections: readonly Selection[]): number {
  return selections.reduce((sum, { copies, subs }) => sum + copies * (1 + countOf(subs)), 0);
}

function changeOnce(draw: Draw, gene: DocumentGene, known: KnownValues): DocumentGene {
  const { operation, roots } = gene;
  if (draw.chance(0.15)) return { ...gene, json: gene.json ? growJson(draw, gene.json) : drawJson(draw) };
  if (draw.chance(0.1)) return { ...gene, roots: [...roots, draw.pick(roots)].slice(0, 10) };
  const spots = roots.flatMap((root) => spotsOf(root));
  const spot = draw.pick(spots);
  return { ...gene, roots: roots.map((root) => replace(root, spot, change(draw, { spot, operation, known }))) };
}

const spotsOf = (selection: Selection): readonly Selection[] => [selection, ...selection.subs.flatMap(spotsOf)];

function replace(selection: Selection, spot: Selection, by: Selection): Selection {
  if (selection === spot) return by;
  return { ...selection, subs: selection.subs.map((sub) => replace(sub, spot, by)) };
}

function change(
  draw: Draw,
  { spot, known }: { readonly spot: Selection; readonly operation: Operation; readonly known: KnownValues },
): Selection {
  const kind = draw.int(0, 9);
  const { copies, args, subs, type } = spot;
  if (kind < 2) return { ...spot, copies: Math.min(COPIES_MAX, copies * draw.pick([2, 4])) };
  if (kind === 2) return { ...spot, copies: Math.max(1, copies >> 1) };
  if (kind === 3 && 'first' in args) return { ...spot, args: { ...args, first: String(draw.pick(PAGES)) } };
  if (kind === 4 && subs.length > 1) return { ...spot, subs: subs.filter((sub) => sub !== draw.pick(subs)) };
  if (type === null) return spot;
  if (kind === 5) {
    // The arguments are drawn again, because a filter that matches nothing makes a scan long.
    const field = fieldOf(spot);
    return field ? { ...spot, args: argumentsOf(draw, field, known) } : spot;
  }
  const added = subsOf(draw, type, draw.int(0, LEVELS), known);
  const names = new Set(subs.map(({ field }) => field));
  return { ...spot, subs: [...subs, ...added.filter(({ field }) => !names.has(field))] };
}

/**
 * Returns the definition of a selected field. In this schema, fields with the same name and type have the same
 * arguments.
 */
function fieldOf({ field, type }: Selection): GraphQLField<unknown, unknown> | null {
  for (const owner of Object.values(schema.getTypeMap())) {
    if (!isObjectType(owner)) continue;
    const found = owner.getFields()[field];
    if (found && getNamedType(found.type).name === type) return found;
  }
  return null;
}

/** Returns the JSON text of the request. */
export function documentBody({ operation, roots, json }: DocumentGene): string {
  const text = setText(roots);
  const usesJson = text.includes('$json');
  // A variable is parsed with the body even if the document does not use it.
  const query = `${operation}${usesJson ? '($json:JSON)' : ''}${text}`;
  const variables = json || usesJson ? `,"variables":{"json":${json ? jsonOf(json) : '{}'}}` : '';
  return `{"query":${JSON.stringify(query)}${variables}}`;
}

/** Returns the document on one line, with a description of its variable. Repeated selections are shown once. */
function showDocument({ operation, roots, json }: DocumentGene): string {
  return `${operation}${shortSet(roots)}${json ? ` with a variable of JSON ${showJson(json)}` : ''}`;
}

function shortSet(selections: readonly Selection[]): string {
  const texts = selections.map(({ field, args, copies, subs }) => {
    const given = Object.entries(args).map(([name, value]) => `${name}:${value}`);
    const times = copies > 1 ? ` x${copies}` : '';
    return `${field}${given.length > 0 ? `(${given.join(',')})` : ''}${subs.length > 0 ? shortSet(subs) : ''}${times}`;
  });
  return `{${texts.join(' ')}}`;
}

function setText(selections: readonly Selection[]): string {
  const used = new Set<string>();
  let aliases = 0;
  const texts = selections.flatMap((selection) =>
    Array.from({ length: selection.copies }, () => {
      const { field, args, subs } = selection;
      const isFragment = field.startsWith('...');
      const alias = isFragment || !used.has(field) ? '' : `a${aliases++}:`;
      used.add(field);
      const given = Object.entries(args).map(([name, value]) => `${name}:${value}`);
      return `${alias}${field}${given.length > 0 ? `(${given.join(',')})` : ''}${subs.length > 0 ? setText(subs) : ''}`;
    }),
  );
  return `{${texts.join(' ')}}`;
}

// Defines the GraphQL documents of the cost mode: one kind for each root field and sender, and one for growing texts.

/** How long the events of a subscription are read, in milliseconds. */
const EVENTS_MS = 300;
const SENDERS: readonly Sender[] = ['user', 'admin'];
const TEXT_MAX = 900_000;

export function documentKinds(target: CostTarget): readonly CostKind[] {
  const fields = (['query', 'mutation', 'subscription'] as const).flatMap((operation) =>
    rootFields(operation).map((field) => ({ operation, field })),
  );
  return SENDERS.flatMap((sender) => [
    ...fields.map((of): CostKind => ({
      family: 'documents',
      name: `${of.operation} ${of.field}`,
      sender,
      draw: (draw) => inputOf(target, sender, drawDocument(draw, { ...of, known: target.known })),
    })),
    ...GROWING_DOCUMENTS.map((_, form): CostKind => ({
      family: 'documents',
      name: `document text ${form}`,
      sender,
      draw: (draw) => textOf(target, sender, { form, size: draw.size(1_000) }),
    })),
  ]);
}

function inputOf(target: CostTarget, sender: Sender, gene: DocumentGene): CostInput {
  return {
    prepare: async () => () => send(target, sender, { operation: gene.operation, body: documentBody(gene) }),
    finish: async () => {},
    mutate: (draw: Draw) => inputOf(target, sender, growDocument(draw, gene, target.known)),
    show: () => showDocument(gene),
  };
}

type Text = { readonly form: number; readonly size: number };

function textOf(target: CostTarget, sender: Sender, { form, size }: Text): CostInput {
  const body = (): string => JSON.stringify({ query: GROWING_DOCUMENTS[form]?.(size) ?? '' });
  return {
    prepare: async () => {
      const text = body();
      return () => send(target, sender, { operation: 'query', body: text });
    },
    finish: async () => {},
    // Some mutants are smaller, because small texts are refused by other rules than large ones.
    mutate: (draw: Draw) =>
      textOf(target, sender, {
        form,
        size: Math.min(TEXT_MAX, Math.max(1, Math.round(size * draw.pick([0.5, 0.9, 1.2, 2, 4])))),
      }),
    show: () => body(),
  };
}

async function send(
  target: CostTarget,
  sender: Sender,
  { operation, body }: { readonly operation: Operation; readonly body: string },
): Promise<string> {
  const token = target.token(sender);
  if (operation !== 'subscription')
    return answerOf(await sendDocument(target.url, body, { agent: target.agent, token, address: '10.0.0.1' }));
  let text = '';
  try {
    const response = await fetch(`${target.url}/graphql`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'text/event-stream',
        'content-type': 'application/json',
      },
      body,
      signal: AbortSignal.timeout(EVENTS_MS),
    });
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString('utf8');
    return answerOf({ status: response.status, text });
  } catch {
    return `events: ${text.length} characters`;
  }
}
