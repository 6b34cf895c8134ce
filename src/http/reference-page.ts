/** Builds the page at `/reference`, which documents the REST routes, from the OpenAPI document. */
import type { OpenApiDocument } from '../rest/openapi.ts';
import type { PackedFile } from '../web/packed-file.ts';
import { BRAND } from '../web/page-look.ts';
import { escaped, htmlPage } from './html.ts';

const REFERENCE_STYLE = `pre{overflow:auto;margin:0 0 .75rem;padding:.75rem;background:var(--sunken);border:1px solid var(--line);border-radius:.25rem}
.cells{overflow-x:auto;margin:0 0 .75rem}table{border-collapse:collapse;width:100%}td,th{min-width:5rem;text-align:left;vertical-align:top;padding:.375rem .75rem .375rem 0;border-bottom:1px solid var(--line)}th{color:var(--ink-3);font-size:.75rem;font-weight:400}td:last-child{min-width:12rem}
details{border-bottom:1px solid var(--line)}summary{padding:.5rem 0;cursor:pointer;overflow-wrap:anywhere}details[open]>summary{font-weight:600}.method{display:inline-block;min-width:3.5rem;font-weight:600}.says{color:var(--ink-2);font-weight:400}nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem;line-height:1.5rem}`;

/** The members of a JSON Schema that the page shows. */
type Schema = {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly [Schema, ...Schema[]];
  readonly type?: string | readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
};
type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
type Reference = { readonly $ref: string };
type Parameter = Pick<Schema, 'description'> & {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
};
type Response = { readonly description: string; readonly content?: Content };
type Operation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response | Reference>>;
};
type Components = {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly responses: Readonly<Record<string, Response>>;
};
type Description = {
  readonly info: { readonly description: string; readonly version: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Components;
};

/** Builds the page. `base`: the prefix of all paths in the document. */
export function referencePage(document: OpenApiDocument, base: string): PackedFile {
  const { info, tags: listed, paths, components }: Description = JSON.parse(JSON.stringify(document));
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const tags = listed.map(({ name }) => name);
  const sections = tags.map((tag) => {
    const rows = operations.filter(({ operation }) => operation.tags.includes(tag));
    return `<h2 id="${escaped(tag)}">${escaped(tag)}</h2>\n${rows.map((row) => operationHtml(row, components)).join('\n')}`;
  });
  const body = `${BRAND}<h1>REST reference</h1>
<p>${escaped(info.description)} Version ${escaped(info.version)}. This page is made from <a href="${escaped(base)}/openapi.json"><code>${escaped(base)}/openapi.json</code></a>.</p>
<nav aria-label="Parts">${[...tags, 'schemas'].map((tag) => `<a href="#${escaped(tag)}">${escaped(tag)}</a>`).join(' ')}</nav>
${sections.join('\n')}
<h2 id="schemas">schemas</h2>
${Object.entries(components.schemas)
  .map(([name, schema]) => schemaHtml(name, schema))
  .join('\n')}
`;
  return htmlPage({ title: 'REST reference · Callboard', rules: REFERENCE_STYLE, body });
}

type Row = { readonly path: string; readonly method: string; readonly operation: Operation };

function operationHtml({ path, method, operation }: Row, components: Components): string {
  const { operationId, summary, description, requestBody } = operation;
  const parameters = (operation.parameters ?? []).map((one) => resolved(one, components.parameters));
  const body = requestBody?.content['application/json'];
  const responses = Object.entries(operation.responses).map(
    ([status, one]) => [status, resolved(one, components.responses)] as const,
  );
  return `<details id="${escaped(operationId)}"><summary><span class="method">${method}</span> <code>${escaped(path)}</code> <span class="says">${escaped(summary)}</span></summary>
<p>${prose(description)}</p>
${parameters.length > 0 ? table(['parameter', 'in', 'type', 'meaning'], parameters.map(parameterCells)) : ''}
${body ? `<p>Body: ${typeHtml(body.schema)}</p>${exampleHtml(body.example)}` : ''}
${table(['status', 'type', 'meaning'], responses.map(responseCells))}
${responses.map(statusExample).join('')}
</details>`;
}

function parameterCells({ name, in: place, required = false, schema, description }: Parameter): readonly string[] {
  return [
    `<code>${escaped(name)}</code>${required ? ' (required)' : ''}`,
    escaped(place),
    typeHtml(schema),
    prose(description),
  ];
}

type Answer = readonly [status: string, response: Response];

function responseCells([status, { description, content = {} }]: Answer): readonly string[] {
  const types = Object.entries(content).map(([type, { schema }]) => `${escaped(type)} ${typeHtml(schema)}`);
  return [escaped(status), types.join('<br>'), prose(description)];
}

function statusExample([status, { content = {} }]: Answer): string {
  const [media] = Object.values(content);
  if (media?.example === undefined) return '';
  return `<p>An answer with ${escaped(status)}:</p>${exampleHtml(media.example)}`;
}

function exampleHtml(example: unknown): string {
  return example === undefined ? '' : `<pre tabindex="0">${escaped(JSON.stringify(example, null, 2))}</pre>`;
}

function schemaHtml(name: string, schema: Schema): string {
  const { required = [], properties = {} } = schema;
  const isOptional = (member: string): boolean => !required.includes(member);
  const hasMembers = Object.keys(properties).length > 0;
  const shape = hasMembers ? membersHtml(properties, isOptional) : `<p>${typeHtml(schema)}</p>`;
  return `<details id="schema-${escaped(name)}"><summary><code>${escaped(name)}</code> <span class="says">${escaped(schema.description)}</span></summary>${shape}</details>`;
}

/**
 * Describes a schema as HTML: as a link to its component, its alternatives, its allowed values, the items of a list, or
 * a table of members. Any other schema is described by its type and bounds.
 */
function typeHtml(schema: Schema): string {
  const { $ref, anyOf, allOf, type, items, enum: words, properties } = schema;
  if ($ref) {
    const name = escaped($ref.split('/').at(-1));
    return `<a href="#schema-${name}">${name}</a>`;
  }
  if (anyOf) return anyOf.map(typeHtml).join(' or ');
  if (allOf) return typeHtml(allOf[0]);
  if (words) return words.map((word) => `<code>${escaped(word)}</code>`).join(', ');
  if (items) return `list of ${typeHtml(items)}`;
  if (properties) return membersHtml(properties);
  return [escaped([type ?? 'any JSON'].flat().join(' or ')), ...bounds(schema)].join(', ');
}

function membersHtml(members: Readonly<Record<string, Schema>>, isOptional = (_name: string) => false): string {
  const rows = Object.entries(members).map(([name, schema]) => [
    `<code>${escaped(name)}</code>${isOptional(name) ? ' (optional)' : ''}`,
    typeHtml(schema),
    prose(schema.description),
  ]);
  return table(['member', 'type', 'meaning'], rows);
}

const BOUNDS = new Set(['format', 'const', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'default']);

function bounds(schema: Schema): readonly string[] {
  const stated = Object.entries(schema).filter(([name]) => BOUNDS.has(name));
  return stated.map(([name, value]) => `${name} <code>${escaped(value)}</code>`);
}

function resolved<T>(value: T | Reference, components: Readonly<Record<string, T>>): T {
  if (!isReference(value)) return value;
  const found = components[value.$ref.split('/').at(-1) ?? ''];
  if (found === undefined) throw new Error(`The document has no ${value.$ref}.`);
  return found;
}

function isReference(value: unknown): value is Reference {
  return typeof value === 'object' && value !== null && '$ref' in value;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  const lines = `${line(head, 'th')}${rows.map((cells) => line(cells, 'td')).join('')}`;
  return `<div class="cells" tabindex="0" role="region" aria-label="${escaped(head.join(', '))}"><table>${lines}</table></div>`;
}

/** Writes text as HTML, in which text between backquotes becomes code. */
function prose(text: unknown): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
