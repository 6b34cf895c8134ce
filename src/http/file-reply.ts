/** Serves files and pages: those of the console at `/console/`, the browser libraries, and the page at `/`. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { BoundedMap } from '../core/collections.ts';
import { CallboardError } from '../core/errors.ts';
import { PackedText, sendPacked, type PackedFile } from '../web/reply.ts';
import type { BuiltinRoute, RequestInfo } from './request-info.ts';

export type ConsoleOptions = {
  /** The directory of the built console. */
  readonly folder: URL;
  readonly basePath: string;
  /** A name of the deployment for people, shown in the title; empty for none. */
  readonly label: string;
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

/** Answers every path for which `isConsole` is true. Without a build, the answer says how to make one. */
export function createConsole({ folder, basePath, label }: ConsoleOptions): BuiltinRoute['handle'] {
  // The page is at paths of any depth, so the addresses in it must be absolute.
  const readPage = createReader(folder, (html) =>
    html
      .replaceAll('"./assets/', `"${basePath}${ASSETS}`)
      .replace('</title>', `</title>\n    <meta name="callboard-label" content="${escaped(label)}" />`),
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

/** Builds a page. `style`: the only style that its content security policy allows. `body`: HTML. */
export function htmlPage({ title, style, body }: Readonly<Record<'title' | 'style' | 'body', string>>): PackedFile {
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${style}</style></head>
<body>${body}</body></html>
`;
  const hash = createHash('sha256').update(style).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; frame-ancestors 'none'`;
  return {
    text: new PackedText(html),
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy },
  };
}

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}
code{font-size:.95em}dt{margin-top:.75rem}dd{margin-left:1.5rem;opacity:.8}`;

type Entry = { readonly path: string; readonly says: string; readonly open: boolean };
const CONSOLE: Entry = { path: '/console/', says: 'the console: clients, calls and nodes, live', open: true };
const ENTRIES: readonly Entry[] = [
  { path: '/graphql', says: 'GraphQL endpoint; shows an editor in a browser', open: true },
  { path: '/graphql/stream', says: 'GraphQL subscriptions, in both modes of graphql-sse', open: false },
  { path: '/reference', says: 'REST reference, made from the OpenAPI description', open: true },
  { path: '/openapi.json', says: 'OpenAPI description of the REST routes', open: true },
  { path: '/connect', says: 'WebSocket for clients and callers, subprotocol callboard.v1', open: false },
  { path: '/clients/runtime.js', says: 'the client library for browsers', open: true },
  { path: '/clients/site.js', says: 'the library for viewers of a cooperative site', open: true },
  { path: '/site-sessions/{session_id}/events', says: 'server-sent events of a cooperative site', open: false },
  { path: '/healthz', says: 'liveness: whether the process runs', open: true },
  { path: '/readyz', says: 'readiness: whether the node accepts work', open: true },
  { path: '/metrics', says: 'Prometheus metrics (administrators)', open: false },
];

/** Builds the page at `/`, which lists the relay's paths. */
export function welcomePage(basePath: string, hasConsole: boolean): PackedFile {
  const rows = [...(hasConsole ? [CONSOLE] : []), ...ENTRIES].map((entry) => row(entry, basePath)).join('\n');
  const body = `<h1>callboard</h1>
<p>Relays commands between callers and connected clients, keeps the evidence, and shows operators the current state.</p>
<dl>
${rows}
</dl>`;
  return htmlPage({ title: 'callboard', style: STYLE, body });
}

function row({ path, says, open }: Entry, basePath: string): string {
  const name = `<code>${basePath}${path}</code>`;
  return `<dt>${open ? `<a href="${basePath}${path}">${name}</a>` : name}</dt><dd>${says}</dd>`;
}
