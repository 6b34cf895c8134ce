/**
 * A codegen plugin that writes a file which lists where the documents have enums, and the words that REST uses for
 * their values.
 */
import { schema } from '../../src/graphql/schema/schema.ts';

// Finds the word that REST uses for each value of each GraphQL enum.

/**
 * Returns a record for each enum, by the enum's name. The record contains the REST word for each value, by the value's
 * name. Enums are recognized by their structure, because codegen uses its own copy of the graphql module.
 */
export function wireWords(): Record<string, Record<string, string>> {
  const words: Record<string, Record<string, string>> = {};
  for (const type of Object.values(schema.getTypeMap())) {
    if (!('getValues' in type) || type.name.startsWith('__')) continue;
    words[type.name] = Object.fromEntries(type.getValues().map(({ name, value }) => [name, String(value)]));
  }
  return words;
}

/**
 * The structure of a type of the schema. graphql's own type is not imported, because codegen uses its own copy of the
 * graphql module.
 */
type Type = {
  readonly name?: string;
  readonly ofType?: Type;
  readonly getFields?: () => Readonly<Record<string, { readonly type: Type }>>;
  readonly getValues?: () => unknown;
};
type Schema = {
  readonly getType: (name: string) => Type | undefined;
  readonly getQueryType: () => Type;
  readonly getMutationType: () => Type;
  readonly getSubscriptionType: () => Type;
};
type TypeNode = { readonly kind: string; readonly name?: { readonly value: string }; readonly type?: TypeNode };
type Selection = {
  readonly kind: string;
  readonly name?: { readonly value: string };
  readonly alias?: { readonly value: string };
  readonly typeCondition?: { readonly name: { readonly value: string } };
  readonly selectionSet?: { readonly selections: readonly Selection[] };
};
type Operation = Selection & {
  readonly operation?: 'query' | 'mutation' | 'subscription';
  readonly variableDefinitions?: readonly {
    readonly variable: { readonly name: { readonly value: string } };
    readonly type: TypeNode;
  }[];
};
type DocumentFile = { readonly document: { readonly definitions: readonly Operation[] } };

/** Returns the text of the generated file. Codegen calls this function with the schema and the documents. */
export function plugin(schema: Schema, files: readonly DocumentFile[]): string {
  const definitions = files.flatMap(({ document }) => document.definitions);
  const fragments = new Map(
    definitions.flatMap((node) => (node.kind === 'FragmentDefinition' ? [[node.name?.value ?? '', node]] : [])),
  );
  const used = new Set<string>();
  const places = Object.fromEntries(
    definitions
      .filter(({ operation }) => operation !== undefined)
      .map((operation) => {
        const data: Record<string, string> = {};
        collect(operation, rootOf(schema, operation), '', { schema, fragments, data });
        const variables = variablesOf(schema, operation);
        for (const name of [...Object.values(data), ...Object.values(variables)]) used.add(name);
        return [operation.name?.value ?? '', { variables, data }];
      }),
  );
  const words = Object.fromEntries(Object.entries(wireWords()).filter(([name]) => used.has(name)));
  return `/**
 * Where the documents of the command line have enums, by operation: which variables, and which members of the data (as
 * names joined by dots), with the name of the enum.
 */
export const ENUM_PLACES: Readonly<
  Record<string, { readonly variables: Readonly<Record<string, string>>; readonly data: Readonly<Record<string, string>> }>
> = ${JSON.stringify(places, null, 2)};

/** The REST words for the values of each enum. */
export const ENUM_WORDS = ${JSON.stringify(words, null, 2)} as const;
`;
}

function rootOf(schema: Schema, { operation }: Operation): Type {
  if (operation === 'mutation') return schema.getMutationType();
  return operation === 'subscription' ? schema.getSubscriptionType() : schema.getQueryType();
}

function variablesOf(schema: Schema, { variableDefinitions = [] }: Operation): Record<string, string> {
  return Object.fromEntries(
    variableDefinitions.flatMap(({ variable, type }) => {
      const name = nameOf(type);
      return schema.getType(name)?.getValues ? [[variable.name.value, name]] : [];
    }),
  );
}

function nameOf(node: TypeNode): string {
  return node.type ? nameOf(node.type) : (node.name?.value ?? '');
}

type Collecting = {
  readonly schema: Schema;
  readonly fragments: ReadonlyMap<string, Operation>;
  readonly data: Record<string, string>;
};

function collect(node: Selection, type: Type, path: string, into: Collecting): void {
  for (const selection of node.selectionSet?.selections ?? []) {
    const name = selection.name?.value ?? '';
    if (selection.kind === 'Field') collectField(selection, type, path, into);
    else collectFragment(selection.kind === 'FragmentSpread' ? into.fragments.get(name) : selection, type, path, into);
  }
}

function collectField(selection: Selection, type: Type, path: string, into: Collecting): void {
  const name = selection.name?.value ?? '';
  const field = type.getFields?.()[name]?.type;
  if (!field) return;
  const inner = named(field);
  const place = `${path}${path && '.'}${selection.alias?.value ?? name}`;
  if (inner.getValues) into.data[place] = inner.name ?? '';
  else collect(selection, inner, place, into);
}

function collectFragment(fragment: Selection | undefined, type: Type, path: string, into: Collecting): void {
  if (!fragment) return;
  const condition = fragment.typeCondition?.name.value;
  collect(fragment, (condition === undefined ? undefined : into.schema.getType(condition)) ?? type, path, into);
}

function named(type: Type): Type {
  return type.ofType ? named(type.ofType) : type;
}
