/**
 * Finds, when a route is compiled, which part of an operation's data is the response body, and which types it may have,
 * because the type decides the status.
 */
import {
  Kind,
  getNamedType,
  getNullableType,
  isAbstractType,
  isNonNullType,
  visit,
  type DocumentNode,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type SelectionSetNode,
} from 'graphql';
import type { JsonSchema } from './forms.ts';
import type { ReportFault } from './directive.ts';
import type { OperationSource } from './inputs.ts';
import {
  scopeOf,
  shapeOf,
  possibleTypes,
  fieldsOf,
  type SelectionScope,
  responseKey,
  objectShape,
} from './selection-shape.ts';

/** Where the data of an execution contains the response body, and what type the body has. */
export type Body = {
  /** The response names that lead from the root of the data to the body. */
  readonly path: readonly string[];
  readonly type: GraphQLOutputType;
  readonly nodes: readonly FieldNode[];
  /**
   * If the body's type is a union or interface, its possible object types, which `__typename` distinguishes; otherwise
   * empty.
   */
  readonly variants: readonly Variant[];
  /** Whether any field on the path, including the last one, can be null. If one is null, the answer is a 404. */
  readonly nullable: boolean;
  /** The JSON Schema of the body; empty if there are variants. */
  readonly schema: JsonSchema;
};

/**
 * One of the object types that the body may have. `kind` decides the response. `refusal`: a problem with the status of
 * its code. `invocation`: a status that depends on its outcome. `plain`: 200. `created`: 201.
 */
export type Variant = {
  readonly name: string;
  readonly kind: 'plain' | 'created' | 'invocation' | 'refusal';
  readonly schema: JsonSchema;
};

/** The members that an operation must select for each kind, because the response's status depends on them. */
export const VARIANT_MEMBERS: Readonly<Record<Variant['kind'], readonly string[]>> = {
  plain: [],
  created: [],
  invocation: ['outcome', 'error'],
  refusal: ['code', 'message'],
};

/** Finds the response body of an operation. Null if the path does not lead to a field; then the reason was reported. */
export function findBody(source: OperationSource, report: ReportFault): Body | null {
  const path = source.directive.body ?? rootField(source, report);
  const scope = scopeOf(source, report);
  const place = path.length === 0 ? null : findPlace(scope, path);
  if (place === null) {
    if (path.length > 0) report(`body: "${path.join('.')}" names nothing that is selected`);
    return null;
  }
  const variants = variantsOf(scope, place, source.directive.creates);
  return { path, ...place, variants, schema: variants.length > 0 ? {} : shapeOf(scope, place) };
}

type Place = Pick<Body, 'type' | 'nodes' | 'nullable'>;

/**
 * Follows response names from the root through objects, through the possible types of a union or interface, and through
 * list items if `inLists` is true. Null if the operation does not select one of the names.
 */
export function findPlace(scope: SelectionScope, path: readonly string[], inLists = false): Place | null {
  let type: unknown = scope.schema.getRootType(scope.operation.operation);
  let sets: readonly (SelectionSetNode | undefined)[] = [scope.operation.selectionSet];
  let place: Place | null = null;
  let nullable = false;
  for (const name of path) {
    const owner = possibleTypes(scope.schema, type).find((one) => fieldsOf(scope, one, sets).has(name));
    const nodes = owner && fieldsOf(scope, owner, sets).get(name);
    const field = owner?.getFields()[nodes?.[0]?.name.value ?? ''];
    if (nodes === undefined || field === undefined) return null;
    nullable ||= !isNonNullType(field.type);
    place = { type: field.type, nodes, nullable };
    type = inLists ? getNamedType(field.type) : getNullableType(field.type);
    sets = nodes.map(({ selectionSet }) => selectionSet);
  }
  return place;
}

/**
 * Returns the document to execute. If the type of the body decides the status, it also selects the body's `__typename`.
 */
export function withTypename(document: DocumentNode, body: Body): DocumentNode {
  if (body.variants.length === 0) return document;
  const typename: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: '__typename' } };
  return visit(document, {
    Field(node) {
      if (!body.nodes.includes(node) || node.selectionSet === undefined) return undefined;
      return {
        ...node,
        selectionSet: { ...node.selectionSet, selections: [typename, ...node.selectionSet.selections] },
      };
    },
  });
}

function rootField({ operation }: OperationSource, report: ReportFault): readonly string[] {
  const [field, ...more] = operation.selectionSet.selections;
  if (field?.kind === Kind.FIELD && more.length === 0) return [responseKey(field)];
  report('it selects several root fields, so @rest needs body: to name the value that is the answer');
  return [];
}

function variantsOf(scope: SelectionScope, { type, nodes }: Place, creates: boolean): readonly Variant[] {
  const named = getNullableType(type);
  if (!isAbstractType(named)) return [];
  const sets = nodes.map(({ selectionSet }) => selectionSet);
  return possibleTypes(scope.schema, named).map((one) => {
    const kind = creates && kindOf(one) === 'plain' ? 'created' : kindOf(one);
    const selected = fieldsOf(scope, one, sets);
    const missing = VARIANT_MEMBERS[kind].filter((name) => !selected.has(name));
    if (selected.size === 0) scope.report(`nothing is selected of ${one.name}`);
    else if (missing.length > 0) scope.report(`${one.name} must select ${missing.join(', ')}`);
    return { name: one.name, kind, schema: objectShape(scope, { type: one, nodes }) };
  });
}

function kindOf(type: GraphQLObjectType): Variant['kind'] {
  if (type.name === 'Refusal') return 'refusal';
  return type.getInterfaces().some(({ name }) => name === 'Invocation') ? 'invocation' : 'plain';
}
