/**
 * Serves files and pages: those of the console at `/console/`, the browser libraries, the page at `/`, and the
 * reference of the REST routes, which is built from the OpenAPI document.
 */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { BoundedMap } from '../core/collections.ts';
import { CallboardError } from '../core/errors.ts';
import { PackedText, sendPacked, type PackedFile } from '../web/packed-file.ts';
import { BRAND, PAGE_STYLE } from '../web/page-look.ts';
import type { BuiltinRoute, RequestInfo } from './request-info.ts';
import type { OpenApiDocument } from '../rest/openapi.ts';

export type ConsoleOptions = {
  /** The directory of the built console. */
  readonly folder: URL;
  readonly basePath: string;
  /** A name of the deployment for people, shown in the title; empty for none. */
  readonly label: string;
  /** Whether the relay serves agents, which a page of the console says. Default false. */
  readonly mcp?: boolean;
};

const PATH = '/console';
const ASSETS = `${PATH}/assets/`;

/** The policy of the page: no inline script or style, no generated code, and nothing from another origin. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // A worker checks the arguments of calls: invoke/drawer.tsx of the console creates its Trusted Types policy.
  "worker-src 'self'",
  "require-trusted-types-for 'script'",
  'trusted-types callboard-worker',
].join('; ');
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
/** Asset names contain a digest. The policy applies to the worker, which loads nothing and generates no code. */
const ASSET_HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'content-security-policy': "default-src 'none'",
  'cross-origin-resource-policy': 'same-origin',
};
/** The most files of one folder that are kept; builds that replaced each other have different names. */
const FILES_MAX = 200;
const ASSET_NAME = /^[\w-][\w.-]*$/;

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Returns a function that reads a file of the folder on first use, and again after the file changes. */
function createReader(folder: URL, edit?: (text: string) => string): (name: string) => Promise<PackedText> {
  const loaded = new BoundedMap<string, { readonly stamp: string; readonly text: PackedText }>({ most: FILES_MAX });
  return async (name) => {
    const file = new URL(name, folder);
    const { mtimeMs, size } = await stat(file);
    const stamp = `${mtimeMs}:${size}`;
    const known = loaded.get(name);
    if (known?.stamp === stamp) return known.text;
    const bytes = await readFile(file);
    const text = new PackedText(edit ? edit(bytes.toString()) : bytes);
    loaded.set(name, { stamp, text });
    return text;
  };
}

export function isConsole(path: string): boolean {
  return path === PATH || path.startsWith(`${PATH}/`);
}

/** What a page has if the relay serves agents. */
const MCP_META = '\n    <meta name="callboard-mcp" content="on" />';

/** Answers every path for which `isConsole` is true. Without a build, the answer says how to make one. */
export function createConsole({ folder, basePath, label, mcp = false }: ConsoleOptions): BuiltinRoute['handle'] {
  // The page is at paths of any depth, so the addresses in it must be absolute.
  const readPage = createReader(folder, (html) =>
    html
      .replaceAll('"./assets/', `"${basePath}${ASSETS}`)
      .replace(
        '</title>',
        `</title>\n    <meta name="callboard-label" content="${escaped(label)}" />${mcp ? MCP_META : ''}`,
      ),
  );
  const readAsset = createReader(new URL('assets/', folder));
  return async (info) => {
    const { request, response, path, query } = info;
    if (path === PATH) {
      const location = `${basePath}${PATH}/${query === '' ? '' : `?${query}`}`;
      return void response.writeHead(308, { location, 'content-length': 0 }).end();
    }
    const page = await readPage('index.html').catch((cause: unknown) => {
      const detail = `The console is not built: run "npm run build" on the relay's machine.`;
      throw new CallboardError('not_found', detail, { cause });
    });
    if (!path?.startsWith(ASSETS)) return sendPacked(request, response, { text: page, headers: PAGE_HEADERS });
    const name = path.slice(ASSETS.length);
    const text = ASSET_NAME.test(name) ? await readAsset(name).catch(() => null) : null;
    if (!text) throw new CallboardError('not_found', 'The console has no such file. Load its page again.');
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
    return sendPacked(request, response, { text, headers: { ...ASSET_HEADERS, 'content-type': type } });
  };
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a value for HTML text and for quoted attributes. Null and undefined give an empty text. */
export function escaped(value: unknown): string {
  return String(value ?? '').replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** The browser builds that are served. No other file of the directory can be requested. */
export const CLIENT_FILES: readonly string[] = ['runtime.js', 'caller.js', 'site.js'];

/** Serves the browser builds of the client libraries from `folder`. */
export function createClientFiles(folder: URL): (info: RequestInfo, name: string) => Promise<void> {
  const read = createReader(folder);
  const headers = { 'content-type': TYPES['js'] ?? '', 'cross-origin-resource-policy': 'cross-origin' };
  return async ({ request, response }, name) => {
    const text = await read(name).catch((cause: unknown) => {
      const detail = `${name} is not built: run "npm run build" on the relay's machine.`;
      throw new CallboardError('not_found', detail, { cause });
    });
    // Pages of any origin may load the libraries.
    if (!response.hasHeader('access-control-allow-origin')) response.setHeader('access-control-allow-origin', '*');
    return sendPacked(request, response, { text, headers });
  };
}

/** Builds a page in the look of the relay's pages. `rules`: CSS of this page alone. `body`: HTML. */
function htmlPage({ title, rules, body }: Readonly<Record<'title' | 'rules' | 'body', string>>): PackedFile {
  const style = `${PAGE_STYLE}\n${rules}`;
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${style}</style></head>
<body><main class="relay-page">${body}</main></body></html>
`;
  const hash = createHash('sha256').update(style).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; frame-ancestors 'none'`;
  return {
    text: new PackedText(html),
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy },
  };
}

const STYLE = `dl{margin:1rem 0 0;border-top:1px solid var(--line)}dt{margin-top:.5rem;overflow-wrap:anywhere}dd{margin:0;padding-bottom:.5rem;border-bottom:1px solid var(--line);color:var(--ink-2)}`;

type Entry = { readonly path: string; readonly says: string; readonly open: boolean };
const CONSOLE: Entry = { path: '/console/', says: 'the console: clients, calls and nodes, live', open: true };
const ENTRIES: readonly Entry[] = [
  { path: '/graphql', says: 'GraphQL endpoint; shows an editor in a browser', open: true },
  { path: '/graphql/stream', says: 'GraphQL subscriptions, in both modes of graphql-sse', open: false },
  { path: '/reference', says: 'REST reference, made from the OpenAPI description', open: true },
  { path: '/openapi.json', says: 'OpenAPI description of the REST routes', open: true },
  { path: '/connect', says: 'WebSocket for clients and callers, subprotocol callboard.v1', open: false },
  { path: '/mcp', says: 'actions as tools of agents (MCP), if CALLBOARD_MCP is on', open: false },
  { path: '/clients/runtime.js', says: 'the client library for browsers', open: true },
  { path: '/clients/caller.js', says: 'the library that invokes actions, for browsers', open: true },
  { path: '/clients/site.js', says: 'the library for viewers of a cooperative site', open: true },
  { path: '/site-sessions/{session_id}/events', says: 'server-sent events of a cooperative site', open: false },
  { path: '/healthz', says: 'liveness: whether the process runs', open: true },
  { path: '/readyz', says: 'readiness: whether the node accepts work', open: true },
  { path: '/metrics', says: 'Prometheus metrics (administrators)', open: false },
];

/** Builds the page at `/`, which lists the relay's paths. */
export function welcomePage(basePath: string, hasConsole: boolean): PackedFile {
  const rows = [...(hasConsole ? [CONSOLE] : []), ...ENTRIES].map((entry) => row(entry, basePath)).join('\n');
  const body = `${BRAND}<h1>Callboard</h1>
<p>Relays commands between callers and connected clients, keeps the evidence, and shows operators the current state.</p>
<dl>
${rows}
</dl>`;
  return htmlPage({ title: 'Callboard', rules: STYLE, body });
}

function row({ path, says, open }: Entry, basePath: string): string {
  const name = `<code>${basePath}${path}</code>`;
  return `<dt>${open ? `<a href="${basePath}${path}">${name}</a>` : name}</dt><dd>${says}</dd>`;
}

const REFERENCE_STYLE = `pre{overflow:auto;margin:0 0 .75rem;padding:.75rem;background:var(--sunken);border:1px solid var(--line);border-radius:.25rem}
.cells{overflow-x:auto;margin:0 0 .75rem}table{border-collapse:collapse;width:100%}td,th{min-width:5rem;text-align:left;vertical-align:top;padding:.375rem .75rem .375rem 0;border-bottom:1px solid var(--line)}th{color:var(--ink-3);font-size:.75rem;font-weight:400}td:last-child{min-width:12rem}
details{border-bottom:1px solid var(--line)}summary{padding:.5rem 0;cursor:pointer;overflow-wrap:anywhere}details[open]>summary{font-weight:600}.method{display:inline-block;min-width:3.5rem;font-weight:600}.says{color:var(--ink-2);font-weight:400}nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem;line-height:1.5rem}`;

/** The members of a schema that the page shows. */
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

/** Builds the page. `base`: the path that precedes the paths of the document. */
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
 * Describes a schema as HTML: a link to its component, its alternatives, its allowed values, the items of a list, or a
 * table of members. Any other schema: its type and bounds.
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

/** Writes text as HTML, with code where the text has backquotes. */
function prose(text: unknown): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
