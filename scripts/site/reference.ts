/** Writes the reference pages of the site: all routes of the OpenAPI document, and all types of the GraphQL schema. */
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  isUnionType,
} from 'graphql';
import { z } from 'zod';

const PARAMETER = z.looseObject({
  name: z.string(),
  in: z.string(),
  required: z.boolean().optional(),
  description: z.string().optional(),
});
const OPERATION = z.looseObject({
  operationId: z.string().optional(),
  summary: z.string().optional(),
  description: z.string().optional(),
  tags: z.array(z.string()).optional(),
  parameters: z.array(z.union([z.strictObject({ $ref: z.string() }), PARAMETER])).optional(),
  requestBody: z.looseObject({ content: z.record(z.string(), z.unknown()).optional() }).optional(),
  responses: z.record(z.string(), z.looseObject({ description: z.string().optional() })),
});
const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
const DOCUMENT = z.looseObject({
  paths: z.record(z.string(), z.partialRecord(z.enum([...METHODS, 'parameters']), z.unknown())),
  components: z.looseObject({ parameters: z.record(z.string(), PARAMETER).optional() }).optional(),
});

function isReference(one: object): one is { readonly $ref: string } {
  return '$ref' in one && typeof one.$ref === 'string';
}

/** Escapes a text for a table cell, including characters that VitePress would interpret as markup. */
function cell(text = ''): string {
  return text
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('|', String.raw`\|`)
    .replaceAll('<', '&lt;')
    .replaceAll('{{', '{&#8203;{');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
  return `\n${[line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')}\n`;
}

/** Returns the page with all routes, in the groups of the OpenAPI document. */
export function restReference(openapi: unknown): string {
  const { paths, components } = DOCUMENT.parse(openapi);
  const shared = components?.parameters ?? {};
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    METHODS.flatMap((method) =>
      methods[method] === undefined ? [] : [{ path, method, ...OPERATION.parse(methods[method]) }],
    ),
  );
  const groups = [...Map.groupBy(routes, ({ tags }) => tags?.[0] ?? 'Other')];
  const sections = groups.map(([tag, own]) => {
    const entries = own.map(({ path, method, summary, description, parameters = [], responses }) => {
      const rows = parameters
        .flatMap((one) => (isReference(one) ? (shared[one.$ref.split('/').at(-1) ?? ''] ?? []) : one))
        .map((one) => [`\`${one.name}\``, one.in, one.required ? 'yes' : '', cell(one.description)]);
      const answers = Object.entries(responses).filter(([, { description: text }]) => text !== undefined);
      const others = Object.keys(responses).filter((status) => !answers.some(([one]) => one === status));
      return [
        `### \`${method.toUpperCase()} ${path}\``,
        ...[summary, description].flatMap((text) => (text === undefined ? [] : [cell(text)])),
        table(['parameter', 'in', 'required', 'what'], rows),
        table(
          ['status', 'answer'],
          answers.map(([status, answer]) => [status, cell(answer.description)]),
        ),
        others.length === 0 ? '' : `Refusals, as problem details: ${others.join(', ')}.`,
      ].join('\n\n');
    });
    return `## ${tag}\n\n${entries.join('\n\n')}`;
  });
  return `# REST: every route\n\nMade from \`/openapi.json\`, which each relay serves with the schemas of bodies and with examples; \`/reference\` shows it. [REST](../rest.md) is the guide.\n\n${sections.join('\n\n')}\n`;
}

/** Returns the page of queries, mutations and subscriptions. */
export function operationsReference(schema: GraphQLSchema): string {
  const roots = {
    Queries: schema.getQueryType(),
    Mutations: schema.getMutationType(),
    Subscriptions: schema.getSubscriptionType(),
  };
  const sections = Object.entries(roots).map(([title, type]) => {
    const fields = Object.values(type?.getFields() ?? {});
    const entries = fields.map(
      (field) =>
        `### ${field.name}\n\nReturns ${linked(String(field.type))}.\n\n${cell(field.description ?? '')}\n${argumentsOf(field.args)}`,
    );
    return `## ${title}\n\n${entries.join('\n')}`;
  });
  return `# GraphQL: operations\n\nMade from \`schema.graphql\`. [GraphQL](../graphql.md) is the guide, and [types](types.md) are on a page of their own.\n\n${sections.join('\n\n')}`;
}

function argumentsOf(args: readonly GraphQLArgument[]): string {
  const rows = args.map((arg) => [`\`${arg.name}\``, linked(String(arg.type)), cell(arg.description ?? '')]);
  return table(['argument', 'type', 'what'], rows);
}

/** Returns the page of all other types, sorted by name. */
export function typesReference(schema: GraphQLSchema): string {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const types = Object.values(schema.getTypeMap())
    .filter((type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type) && !roots.some((one) => one === type))
    .toSorted((one, other) => one.name.localeCompare(other.name));
  return `# GraphQL: types\n\nMade from \`schema.graphql\`.\n\n${types.map(typeEntry).join('\n')}`;
}

function typeEntry(type: GraphQLNamedType): string {
  return `## ${type.name}\n\n${cell(type.description ?? '')}\n${membersOf(type)}`;
}

function membersOf(type: GraphQLNamedType): string {
  if (isEnumType(type))
    return table(
      ['value', 'what'],
      type.getValues().map(({ name, description }) => [`\`${name}\``, cell(description ?? '')]),
    );
  if (isUnionType(type))
    return `\nOne of ${type
      .getTypes()
      .map(({ name }) => linked(name))
      .join(', ')}.\n`;
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields());
    return table(
      ['field', 'type', 'what'],
      fields.map((one) => [`\`${one.name}\``, linked(String(one.type)), cell(one.description ?? '')]),
    );
  }
  if (!isObjectType(type) && !isInterfaceType(type)) return '';
  return table(['field', 'type', 'what'], Object.values(type.getFields()).map(fieldRow));
}

function fieldRow({ name, type, args, description }: GraphQLField<unknown, unknown>): readonly string[] {
  const shown =
    args.length === 0 ? name : `${name}(${args.map((arg) => `${arg.name}: ${String(arg.type)}`).join(', ')})`;
  return [`\`${shown}\``, linked(String(type)), cell(description ?? '')];
}

/** Turns the name of a type into a link, in a type reference such as `[Node!]!`. */
function linked(text: string): string {
  const [, before = '', name = '', after = ''] = /^(\[*)(\w+)([\]!]*)$/.exec(text) ?? [];
  const plain = ['ID', 'String', 'Int', 'Float', 'Boolean'].includes(name);
  return plain
    ? `\`${text}\``
    : `${before.replaceAll('[', String.raw`\[`)}[${name}](types.md#${name.toLowerCase()})${after.replaceAll(']', String.raw`\]`)}`;
}
