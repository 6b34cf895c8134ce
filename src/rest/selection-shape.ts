/** Derives the JSON Schema of an operation's data from its selection and the types of the schema. */
import {
  Kind,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql';
import type { ReportFault } from './directive.ts';
import { enumSchema, named, orNull, type JsonSchema } from './forms.ts';
import type { OperationSource } from './inputs.ts';

/**
 * An operation with its fragments, which are needed to resolve selections, and the function to which faults are
 * reported.
 */
export type SelectionScope = OperationSource & {
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly report: ReportFault;
};
/** A type together with the fields that select its members. */
type Selected<Type> = { readonly type: Type; readonly nodes: readonly FieldNode[] };

export function scopeOf(source: OperationSource, report: ReportFault): SelectionScope {
  const fragments = source.document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  return { ...source, report, fragments: new Map(fragments.map((fragment) => [fragment.name.value, fragment])) };
}

/** Returns the name of a field's value in the answer: its alias, or else the field's name. */
export function responseKey(field: FieldNode): string {
  return (field.alias ?? field.name).value;
}

/** Returns the fields that are selected of an object type: for each response name, all field nodes that select it. */
export function fieldsOf(
  scope: SelectionScope,
  type: GraphQLObjectType,
  sets: readonly (SelectionSetNode | undefined)[],
): ReadonlyMap<string, readonly FieldNode[]> {
  const found = new Map<string, FieldNode[]>();
  const collect = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) {
        const key = responseKey(selection);
        found.set(key, [...(found.get(key) ?? []), selection]);
        continue;
      }
      const part = selection.kind === Kind.INLINE_FRAGMENT ? selection : scope.fragments.get(selection.name.value);
      if (part && applies(scope.schema, part.typeCondition?.name.value, type)) collect(part.selectionSet);
    }
  };
  for (const set of sets) collect(set);
  return found;
}

/** Returns the object types that a value of this type may have. */
export function possibleTypes(schema: GraphQLSchema, type: unknown): readonly GraphQLObjectType[] {
  if (isObjectType(type)) return [type];
  return isAbstractType(type) ? schema.getPossibleTypes(type) : [];
}

function applies(schema: GraphQLSchema, condition: string | undefined, type: GraphQLObjectType): boolean {
  if (condition === undefined || condition === type.name) return true;
  const named = getNamedType(schema.getType(condition));
  return isAbstractType(named) && schema.isSubType(named, type);
}

const SCALARS: Readonly<Record<string, JsonSchema>> = {
  ID: { type: 'string' },
  String: { type: 'string' },
  Int: { type: 'integer' },
  Float: { type: 'number' },
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
  JSON: {},
};

/** Returns the JSON Schema of a value of this type with exactly the members that the operation selects. */
export function shapeOf(scope: SelectionScope, { type, nodes }: Selected<GraphQLOutputType>): JsonSchema {
  if (isNonNullType(type)) return shapeOf(scope, { type: type.ofType, nodes });
  if (isListType(type)) {
    const items = shapeOf(scope, { type: type.ofType, nodes });
    return { type: 'array', items: isNonNullType(type.ofType) ? items : orNull(items) };
  }
  if (isEnumType(type)) return named(type.name, enumSchema(type));
  if (isScalarType(type) && Object.hasOwn(SCALARS, type.name)) return SCALARS[type.name] ?? {};
  if (isCompositeType(type)) return compositeShape(scope, { type, nodes });
  scope.report(`the type ${String(type)} has no JSON form`);
  return {};
}

/** Like `shapeOf`, for one object type. Leaves out `__typename`, which only the relay itself reads. */
export function objectShape(scope: SelectionScope, selected: Selected<GraphQLObjectType>): JsonSchema {
  const sets = selected.nodes.map(({ selectionSet }) => selectionSet);
  const properties: Record<string, JsonSchema> = {};
  for (const [key, nodes] of fieldsOf(scope, selected.type, sets)) {
    const field = selected.type.getFields()[nodes[0]?.name.value ?? ''];
    if (field === undefined) continue;
    const shape = shapeOf(scope, { type: field.type, nodes });
    const whole = isNonNullType(field.type) ? shape : orNull(shape);
    properties[key] = field.description ? { ...whole, description: field.description } : whole;
  }
  const description = selected.type.description ? { description: selected.type.description } : {};
  const required = Object.keys(properties);
  return named(nameOf(selected.type), {
    type: 'object',
    ...description,
    properties,
    required,
    additionalProperties: false,
  });
}

function compositeShape(scope: SelectionScope, { type, nodes }: Selected<GraphQLCompositeType>): JsonSchema {
  const shapes = possibleTypes(scope.schema, type).map((one) => objectShape(scope, { type: one, nodes }));
  const [first] = shapes;
  return shapes.length === 1 && first !== undefined ? first : { anyOf: shapes };
}

/** Returns the schema name of a type. GraphQL calls pages `...Connection`; REST calls them `...Page`. */
function nameOf(type: GraphQLObjectType): string {
  return 'pageInfo' in type.getFields() ? type.name.replace(/Connection$/, 'Page') : type.name;
}
