import {
  Kind,
  TypeInfo,
  getNamedType,
  isInputObjectType,
  isInputType,
  isNonNullType,
  isUnionType,
  typeFromAST,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';

/**
 * Why graphql-jit may not run this operation, or null when its answers are proven equal to graphql-js's (test/graphql/plan.test.ts). It differs in
 * meaning where input values are built at execution: variables inside literals, input objects through variables, defaults written as
 * literals, nullable variables in non-null places. It also calls the type resolver of a union without naming the union.
 */
export function jitRefusal(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): string | null {
  if (operation.operation !== 'query') return operation.operation;
  return variableRefusal(schema, operation) ?? bodyRefusal(schema, document, operation);
}

function variableRefusal(schema: GraphQLSchema, operation: OperationDefinitionNode): string | null {
  for (const { type } of operation.variableDefinitions ?? []) {
    const known = typeFromAST(schema, type);
    if (known && isInputObjectType(getNamedType(known))) return 'input object variable';
  }
  return null;
}

function bodyRefusal(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): string | null {
  const info = new TypeInfo(schema);
  const nullable = nullableVariables(operation);
  let reason: string | null = null;
  let literals = 0;
  const inLiteral = { enter: () => void literals++, leave: () => void literals-- };
  visit(
    document,
    visitWithTypeInfo(info, {
      VariableDefinition: () => false,
      ObjectValue: inLiteral,
      ListValue: inLiteral,
      Variable(node) {
        if (literals > 0) reason ??= 'variable inside a literal';
        const expected = info.getInputType();
        if (isNonNullType(expected) && nullable.has(node.name.value))
          reason ??= 'nullable variable in a non-null place';
      },
      Field(node) {
        reason ??= fieldRefusal(node, info);
      },
    }),
  );
  return reason;
}

function nullableVariables(operation: OperationDefinitionNode): ReadonlySet<string> {
  const definitions = operation.variableDefinitions ?? [];
  return new Set(
    definitions.filter(({ type }) => type.kind !== Kind.NON_NULL_TYPE).map(({ variable }) => variable.name.value),
  );
}

function fieldRefusal(node: FieldNode, info: TypeInfo): string | null {
  if (node.name.value === '__schema' || node.name.value === '__type') return 'introspection';
  if (isUnionType(getNamedType(info.getType()))) return 'union';
  const literalDefault = info.getFieldDef()?.args.some((arg) => isInputType(arg.type) && arg.default?.literal);
  return literalDefault ? 'argument default written as a literal' : null;
}
