/** Compares the compiled readers of variables and arguments with graphql-js, over random values and documents. */
import {
  Kind,
  buildSchema,
  getArgumentValues,
  getNullableType,
  getVariableValues,
  isEnumType,
  isInputObjectType,
  isListType,
  isRequiredArgument,
  isRequiredInputField,
  parse,
  parseConstValue,
  parseType,
  typeFromAST,
  valueFromASTUntyped,
  type FieldNode,
  type GraphQLField,
  type GraphQLInputType,
  type OperationDefinitionNode,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { createArguments } from '../../src/graphql/variables-arguments.ts';
import { createVariablesReader } from '../../src/graphql/variables.ts';
import { Draw } from '../../faults/lib/random.ts';

const schema = buildSchema(`
  enum Color { RED BLUE }
  scalar Any
  input Inner { depth: Int! = 7, color: Color, more: [Inner!] }
  input Filter { text: String = "any", color: Color! = RED, n: Int!, tags: [String!], inner: Inner, any: Any }
  input Either @oneOf { id: ID, n: Int }
  type Query {
    find(
      rate: Float, int: Int, size: Int! = 3, name: String!, ids: [ID!], grid: [[Int]] = [[1], null], color: Color = BLUE
      filter: Filter, filters: [Filter!], either: Either, any: Any, on: Boolean! = true
    ): String
  }
`);
const field = schema.getQueryType()?.getFields()['find'] as GraphQLField<unknown, unknown>;
const TYPES = [
  ...['Int', 'Int!', 'String', 'ID!', 'Boolean', 'Color', 'Color!', '[Int]', '[Int!]!', '[[Int!]]', 'Float'],
  ...['Filter', 'Filter!', '[Filter!]', 'Inner', 'Either', 'Any'],
].map((text) => typeFromAST(schema, parseType(text)) as GraphQLInputType);
const ODD = ['null', '"text"', '7', '4294967296', '1.5', 'true', 'GREEN', '[1]', '{ odd: 1 }'];

/** Draws a literal, in which variables may occur. Most literals fit the type. */
function drawLiteral(draw: Draw, given: GraphQLInputType, variables: readonly string[], depth = 0): string {
  if (variables.length > 0 && draw.chance(0.2)) return `$${draw.pick(variables)}`;
  if (draw.chance(0.03)) return draw.pick(ODD);
  const type = getNullableType(given);
  if (type === given && draw.chance(0.1)) return 'null';
  if (isListType(type)) {
    const item = (): string => drawLiteral(draw, type.ofType, variables, depth + 1);
    return draw.chance(0.2) ? item() : `[${Array.from({ length: draw.int(0, 3) }, item).join(' ')}]`;
  }
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).filter(
      (one) => isRequiredInputField(one) || draw.chance(depth > 2 ? 0 : 0.4),
    );
    return `{ ${fields.map((one) => `${one.name}: ${drawLiteral(draw, one.type, variables, depth + 1)}`).join(' ')} }`;
  }
  if (isEnumType(type)) return draw.pick(['RED', 'BLUE']);
  if (type.name === 'Int' || type.name === 'Float') return String(draw.int(-5, 5));
  return type.name === 'Boolean' ? 'true' : '"text"';
}

function drawOperation(draw: Draw): { readonly text: string; readonly types: readonly GraphQLInputType[] } {
  const types = Array.from({ length: draw.int(1, 4) }, () => draw.pick(TYPES));
  const declared = types.map(
    (type, i) => `$v${i}: ${type}${draw.chance(0.3) ? ` = ${drawLiteral(draw, type, [])}` : ''}`,
  );
  const names = types.map((_, i) => `v${i}`);
  const given = field.args
    .filter((one) => isRequiredArgument(one) || draw.chance(0.4))
    .map(({ name, type }) => `${name}: ${drawLiteral(draw, type, names)}`);
  return { text: `query (${declared.join(', ')}) { find(${given.join(', ')}) }`, types };
}

/** Draws the variables of a request, as JSON.parse returns them. */
function drawVariables(draw: Draw, types: readonly GraphQLInputType[]): Record<string, unknown> {
  const given = types.flatMap((type, i) =>
    draw.chance(0.85) ? [[`v${i}`, valueFromASTUntyped(parseConstValue(drawLiteral(draw, type, [])))]] : [],
  );
  return Object.fromEntries(given);
}

function parsed(text: string): { readonly operation: OperationDefinitionNode; readonly node: FieldNode } {
  const [operation] = parse(text).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error('There is no operation.');
  const [node] = operation.selectionSet.selections;
  if (node?.kind !== Kind.FIELD) throw new Error('There is no field.');
  return { operation, node };
}

/** Returns what graphql-js makes of the arguments; null if it refuses them. */
function expectedArguments(node: FieldNode, variables: NonNullable<Values>): unknown {
  try {
    return getArgumentValues(field, node, variables);
  } catch {
    return null;
  }
}

type Values = ReturnType<typeof getVariableValues>['variableValues'];

describe('compiled variables and arguments', () => {
  test('are those of graphql-js, and are refused where it refuses them', () => {
    const counts = { fit: 0, misfit: 0, made: 0, refused: 0 };
    for (let index = 0; index < 1_500; index++) {
      const draw = new Draw(1, 'arguments', index);
      const { text, types } = drawOperation(draw);
      const { operation, node } = parsed(text);
      const reader = createVariablesReader(schema, operation);
      const make = createArguments(field, node);
      for (let time = 0; time < 4; time++) {
        const given = { ...drawVariables(draw, types), other: 1 };
        const says = `${text} ${JSON.stringify(given)}`;
        const { variableValues, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], given, {
          hideSuggestions: true,
        });
        const own = reader.read(given);
        expect(own.errors?.[0]?.message, says).toBe(errors?.[0]?.message);
        counts[variableValues ? 'fit' : 'misfit']++;
        if (!variableValues || !own.values) continue;
        expect(own.values.coerced, says).toEqual(variableValues.coerced);
        const expected = expectedArguments(node, variableValues);
        expect(make(own.values.coerced), says).toEqual(expected);
        counts[expected ? 'made' : 'refused']++;
      }
    }
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(500);
  });

  test('are new objects and lists each time', () => {
    const { node } = parsed('{ find(name: "a", filter: { n: 1, tags: ["a"] }, ids: ["b"]) }');
    const make = createArguments(field, node);
    const [one, other] = [make({}), make({})];
    expect(one).toEqual(other);
    for (const name of ['filter', 'ids']) expect(one?.[name]).not.toBe(other?.[name]);
  });
});
