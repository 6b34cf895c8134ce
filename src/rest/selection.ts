/** Resolves the selections of a document, through fragments, to fields of the schema. */
import {
  Kind,
  getNamedType,
  isAbstractType,
  isObjectType,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql';

/** A schema and the fragments of one document, needed to resolve selections. */
export type SelectionScope = {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
};

export function scopeOf(schema: GraphQLSchema, document: DocumentNode): SelectionScope {
  const fragments = document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
  return { schema, fragments: new Map(fragments.map((fragment) => [fragment.name.value, fragment])) };
}

/** Returns the name of a field's value in the answer: its alias, else its name. */
export function responseKey(field: FieldNode): string {
  return (field.alias ?? field.name).value;
}

/** Returns the fields selected of an object type: for each response name, every field node that selects it. */
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

/** Returns the object types that a value of this type can have. */
export function possibleTypes(schema: GraphQLSchema, type: unknown): readonly GraphQLObjectType[] {
  if (isObjectType(type)) return [type];
  return isAbstractType(type) ? schema.getPossibleTypes(type) : [];
}

function applies(schema: GraphQLSchema, condition: string | undefined, type: GraphQLObjectType): boolean {
  if (condition === undefined || condition === type.name) return true;
  const named = getNamedType(schema.getType(condition));
  return isAbstractType(named) && schema.isSubType(named, type);
}
