/**
 * Computes the maximum cost of an operation before it runs, and advises what to request instead if the cost is too
 * high.
 */
import {
  GraphQLError,
  Kind,
  TypeInfo,
  getArgumentValues,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  visit,
  visitWithTypeInfo,
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type VariableValues,
} from 'graphql';
import type { Principal } from '../../core/auth/principal.ts';
import { BoundedMap } from '../../core/collections.ts';
import { RawJson, isRecord } from '../../core/json.ts';
import { fragmentsOf } from '../selection.ts';
import type { Values } from '../variables-coercion.ts';
import { isObject } from '../writer/objects.ts';

export type Costs = ReturnType<typeof createCosts>;

/** The maximum number of costs that are cached for one operation, each for other variables. */
const REMEMBERED = 100;
/** The maximum length of the cache key of a cost. */
const KEY_CHARS = 500;
/** The number of items that are assumed for a list whose field declares no number. */
const LIST_ITEMS = 10;

/**
 * Creates the functions that compute the maximum cost of an operation before it runs. The cost is derived from the
 * costs that the fields declare, from the rows that filters may scan, and from the requested sizes of lists. In a page,
 * a field with the extension `perRow` counts once for each row that the page may have, and every other field counts
 * once. A cost that cannot be computed is Infinity. The only fact about the requester that affects the cost is whether
 * it is an administrator. For others, fields that only administrators may read cost next to nothing.
 */
export function createCosts(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode) {
  const fragments = fragmentsOf(document);
  const alone: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments.values()] };
  const known = new BoundedMap<string, number>({ most: REMEMBERED });
  let names: readonly string[] | null = null;
  const computed = (variables: VariableValues, requester: Principal | null, noted: Noted | null): number => {
    const root = schema.getRootType(operation.operation);
    if (!root) return Infinity;
    try {
      const costing = { schema, fragments, variables, requester, noted, sums: new Map() };
      return new Walk(costing).selection(operation.selectionSet, root, OUTSIDE);
    } catch {
      return Infinity;
    }
  };
  return {
    of(variables: VariableValues, requester: Principal | null): number {
      names ??= costVariables(schema, alone);
      const key = keyOf(names, variables.coerced);
      const whole = key === null ? null : `${requester?.kind === 'admin' ? 'admin' : ''}${key}`;
      const remembered = whole === null ? undefined : known.get(whole);
      if (remembered !== undefined) return remembered;
      const cost = computed(variables, requester, null);
      if (whole !== null) known.set(whole, cost);
      return cost;
    },
    /**
     * Returns the error of an argument that does not fit, because of which the cost cannot be computed; null if the
     * cost can be computed.
     */
    fault(variables: VariableValues, requester: Principal | null): GraphQLError | null {
      const root = schema.getRootType(operation.operation);
      if (!root) return null;
      try {
        const costing = { schema, fragments, variables, requester, noted: null, sums: new Map() };
        new Walk(costing).selection(operation.selectionSet, root, OUTSIDE);
        return null;
      } catch (error) {
        return error instanceof GraphQLError ? error : null;
      }
    },
    /** Returns what to request instead so that the cost is at most `most`; null if no single change suffices. */
    advice(variables: VariableValues, requester: Principal | null, most: number): string | null {
      const noted: Noted = { pages: new Map(), scans: new Map() };
      const cost = computed(variables, requester, noted);
      return Number.isFinite(cost) ? adviceOf(noted, cost, most) : null;
    },
  };
}

/** What pages and scans add to the cost of the operation, by the path of their field. */
type Noted = { readonly pages: Map<string, { rows: number; eachRow: number }>; readonly scans: Map<string, number> };

/**
 * Returns the single change that makes the operation fit into `most`: a shorter page or a narrower filter. Of several,
 * it returns the one for the field that adds most to the cost. Null if no single change suffices.
 */
function adviceOf({ pages, scans }: Noted, cost: number, most: number): string | null {
  const shorter = [...pages].flatMap(([path, { rows, eachRow }]) => {
    const fitting = Math.floor((most - (cost - rows * eachRow)) / eachRow);
    const says = `Ask for at most ${fitting} rows of "${path}" instead of ${rows}.`;
    return fitting >= 1 && fitting < rows ? [{ adds: rows * eachRow, says }] : [];
  });
  const narrower = [...scans].flatMap(([path, adds]) => {
    const says = `Let the filter of "${path}" name a client, so that fewer rows are scanned.`;
    return cost - adds < most ? [{ adds, says }] : [];
  });
  const [best] = [...shorter, ...narrower].sort((a, b) => b.adds - a.adds);
  return best?.says ?? null;
}

/**
 * Describes where a field stands: the path and how often the field is resolved, and the number of rows of the page
 * around it.
 */
type Around = { readonly path: string; readonly times: number; readonly rows: number };
const OUTSIDE: Around = { path: '', times: 1, rows: 1 };

type Costing = {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly variables: VariableValues;
  readonly requester: Principal | null;
  /** Collects the pages and scans of the operation; null: only the cost is computed. */
  readonly noted: Noted | null;
  /** The costs of selections computed so far, so that a fragment that is spread often is computed only once. */
  readonly sums: Map<SelectionSetNode, Map<string, number>>;
};

class Walk {
  readonly #of: Costing;

  constructor(of: Costing) {
    this.#of = of;
  }

  selection(set: SelectionSetNode, type: GraphQLNamedType, around: Around): number {
    const { noted, sums } = this.#of;
    if (noted) return this.#sum(set, type, around);
    const key = `${type.name} ${around.rows}`;
    const known = sums.get(set)?.get(key);
    if (known !== undefined) return known;
    const sum = this.#sum(set, type, around);
    const ofSet = sums.get(set) ?? new Map<string, number>();
    sums.set(set, ofSet.set(key, sum));
    return sum;
  }

  #sum(set: SelectionSetNode, type: GraphQLNamedType, around: Around): number {
    let sum = 0;
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) sum += this.#field(selection, type, around);
      else {
        const fragment =
          selection.kind === Kind.INLINE_FRAGMENT ? selection : this.#of.fragments.get(selection.name.value);
        if (!fragment) throw new Error('A spread names no fragment.');
        const on = fragment.typeCondition && this.#of.schema.getType(fragment.typeCondition.name.value);
        sum += this.selection(fragment.selectionSet, on ?? type, around);
      }
    }
    return sum;
  }

  #field(node: FieldNode, parent: GraphQLNamedType, { path, times, rows }: Around): number {
    const name = node.name.value;
    const field = isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined;
    if (!field) return name.startsWith('__') ? 1 : Infinity;
    const declared = this.#declared(field, node);
    const at = path === '' ? (node.alias?.value ?? name) : `${path}.${node.alias?.value ?? name}`;
    const perRow = field.extensions['perRow'] === true;
    const type = getNamedType(field.type);
    const page = hasRows(type) && declared.items !== null;
    const each = perRow
      ? rows
      : page
        ? 1
        : (declared.items ?? (isListType(getNullableType(field.type)) ? LIST_ITEMS : 1));
    const inner = page ? Math.max(0, declared.items ?? 0) : perRow ? 1 : rows;
    const { noted } = this.#of;
    if (noted && declared.scan > 0) noted.scans.set(at, (noted.scans.get(at) ?? 0) + times * declared.scan);
    const below = node.selectionSet
      ? this.selection(node.selectionSet, type, { path: at, times: times * Math.max(each, 0), rows: inner })
      : 0;
    if (noted && perRow) {
      const known = noted.pages.get(path);
      noted.pages.set(path, { rows, eachRow: (known?.eachRow ?? 0) + times * below });
    }
    return declared.own + declared.scan + below * Math.max(each, 0);
  }

  /**
   * Returns what a field declares: its own cost, the cost of the rows that it scans, and its number of items (null:
   * none declared).
   */
  #declared(field: GraphQLField<unknown, unknown>, node: FieldNode): Declared {
    const { complexity } = field.extensions;
    const { requester, variables } = this.#of;
    const given: unknown = isFunction(complexity)
      ? computedFrom(complexity, getArgumentValues(field, node, variables), { requester, field })
      : complexity;
    if (typeof given === 'number') return { own: given, scan: 0, items: null };
    if (!isRecord(given)) return { own: 1, scan: 0, items: null };
    const { field: own, scan, multiplier } = given;
    return {
      own: typeof own === 'number' ? own - (typeof scan === 'number' ? scan : 0) : 1,
      scan: typeof scan === 'number' ? scan : 0,
      items: typeof multiplier === 'number' ? multiplier : null,
    };
  }
}

/**
 * Calls the function with which a field computes its declaration. Throws a GraphQLError that names the field if the
 * arguments do not fit.
 */
function computedFrom(
  complexity: (...args: readonly unknown[]) => unknown,
  args: unknown,
  { requester, field }: { requester: Principal | null; field: GraphQLField<unknown, unknown> },
): unknown {
  try {
    return complexity(args, { requester }, field);
  } catch {
    throw new GraphQLError(`The arguments of "${field.name}" do not fit.`);
  }
}

type Declared = { readonly own: number; readonly scan: number; readonly items: number | null };

function isFunction(value: unknown): value is (...args: readonly unknown[]) => unknown {
  return typeof value === 'function';
}

const withRows = new WeakMap<GraphQLNamedType, boolean>();

/** Whether a type is a page, which means that it has fields that count once for each row. */
function hasRows(type: GraphQLNamedType): boolean {
  const known = withRows.get(type);
  if (known !== undefined) return known;
  const fields = isCompositeType(type) && !isAbstractType(type) ? Object.values(type.getFields()) : [];
  const has = fields.some(({ extensions }) => extensions['perRow'] === true);
  withRows.set(type, has);
  return has;
}

/** Returns the names of the variables that affect the cost: those in arguments of fields that compute their cost. */
function costVariables(schema: GraphQLSchema, document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  const info = new TypeInfo(schema);
  const add = { Variable: ({ name }: { readonly name: { readonly value: string } }) => void names.add(name.value) };
  const look = {
    Argument(node: ArgumentNode) {
      if (isFunction(info.getFieldDef()?.extensions['complexity'])) visit(node, add);
    },
  };
  visit(document, visitWithTypeInfo(info, look));
  return [...names];
}

/**
 * Returns the cache key of a cost, made of the numbers and the structure of the variables. Of a text only its presence
 * affects the cost, and payloads do not affect it. Null if the key would be too long.
 */
function keyOf(names: readonly string[], variables: Values): string | null {
  let key = '';
  for (const name of names) {
    key += `|${partOf(variables[name], KEY_CHARS - key.length)}`;
    if (key.length > KEY_CHARS) return null;
  }
  return key;
}

/** Returns the part of a cache key for one value. Stops soon after `most` characters. */
function partOf(value: unknown, most: number): string {
  if (typeof value === 'string') return 'text';
  if (value instanceof RawJson) return 'json';
  if (!isObject(value)) return String(value);
  let part = Array.isArray(value) ? '[' : '{';
  for (const name of Object.keys(value)) {
    if (part.length > most) break;
    part += `${name}:${partOf(value[name], most - part.length)},`;
  }
  return part;
}
