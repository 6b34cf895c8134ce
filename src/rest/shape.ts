/** Derives the JSON Schema of a response body from what the document selects. */
import {
  isCompositeType,
  isEnumType,
  isListType,
  isNonNullType,
  isScalarType,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLOutputType,
} from 'graphql';
import type { ReportFault } from './directive.ts';
import { enumSchema } from './leaf.ts';
import { named, orNull, type JsonSchema } from './named.ts';
import { fieldsOf, possibleTypes, type SelectionScope } from './selection.ts';

const SCALARS: Readonly<Record<string, JsonSchema>> = {
  ID: { type: 'string' },
  String: { type: 'string' },
  Int: { type: 'integer' },
  Float: { type: 'number' },
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
  JSON: {},
};

/** Returns the JSON Schema of the fields that a document selects of a type, exactly as the response contains them. */
export function shapeOf(
  scope: SelectionScope,
  selected: { readonly type: GraphQLOutputType; readonly nodes: readonly FieldNode[] },
  report: ReportFault,
): JsonSchema {
  const { type, nodes } = selected;
  if (isNonNullType(type)) return shapeOf(scope, { type: type.ofType, nodes }, report);
  if (isListType(type)) {
    const items = shapeOf(scope, { type: type.ofType, nodes }, report);
    return { type: 'array', items: isNonNullType(type.ofType) ? items : orNull(items) };
  }
  if (isEnumType(type)) return named(type.name, enumSchema(type));
  if (isScalarType(type) && Object.hasOwn(SCALARS, type.name)) return SCALARS[type.name] ?? {};
  if (isCompositeType(type)) return compositeShape(scope, { type, nodes }, report);
  report(`the type ${String(type)} has no JSON form`);
  return {};
}

/**
 * Does the same as `shapeOf`, for one object type that the value may have. Omits `__typename`, which only the relay
 * reads.
 */
export function objectShape(
  scope: SelectionScope,
  selected: { readonly type: GraphQLObjectType; readonly nodes: readonly FieldNode[] },
  report: ReportFault,
): JsonSchema {
  const sets = selected.nodes.map(({ selectionSet }) => selectionSet);
  const properties: Record<string, JsonSchema> = {};
  for (const [key, nodes] of fieldsOf(scope, selected.type, sets)) {
    const field = selected.type.getFields()[nodes[0]?.name.value ?? ''];
    if (field === undefined) continue;
    const shape = shapeOf(scope, { type: field.type, nodes }, report);
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

function compositeShape(
  scope: SelectionScope,
  { type, nodes }: { readonly type: GraphQLCompositeType; readonly nodes: readonly FieldNode[] },
  report: ReportFault,
): JsonSchema {
  const shapes = possibleTypes(scope.schema, type).map((one) => objectShape(scope, { type: one, nodes }, report));
  const [first] = shapes;
  return shapes.length === 1 && first !== undefined ? first : { anyOf: shapes };
}

/** Returns the name of a type's schema. GraphQL names its pages `...Connection`; REST does not use that word. */
function nameOf(type: GraphQLObjectType): string {
  return 'pageInfo' in type.getFields() ? type.name.replace(/Connection$/, 'Page') : type.name;
}
