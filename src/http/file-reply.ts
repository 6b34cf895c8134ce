/** Serves files and pages: those of the console at `/console/`, and the browser libraries. */
import { createHash } from 'node:crypto';
import { readFile, readdir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { CallboardError } from '../core/errors.ts';
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

/**
 * The content security policy of the page: no inline script, no inline style, no generated code, and nothing from
 * another origin.
 */
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
  // A worker checks the arguments of calls: invoke/arguments.tsx of the console creates the one policy.
  "worker-src 'self'",
  "require-trusted-types-for 'script'",
  'trusted-types callboard-worker',
].join('; ');
/** The policy of the console's files. It applies to the worker, which loads nothing and generates no code. */
const FILE_POLICY = "default-src 'none'";

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

type File = { readonly plain: Buffer; readonly packed: Buffer; readonly etag: string; readonly type: string };
type Built = { readonly stamp: number; readonly page: File; readonly assets: ReadonlyMap<string, File> };

export function isConsole(path: string): boolean {
  return path === PATH || path.startsWith(`${PATH}/`);
}

/**
 * Creates the route of every path for which `isConsole` is true. The files are read at the first request, and again
 * after a new build. The page contains no token. Without a build, the answer says how to make one.
 */
export function createConsole({ folder, basePath, label }: ConsoleOptions): BuiltinRoute {
  const page = new URL('index.html', folder);
  let built: Promise<Built> | null = null;
  const load = async (): Promise<Built> => {
    const { mtimeMs } = await stat(page);
    const known = await built?.catch(() => null);
    if (known?.stamp === mtimeMs) return known;
    return (built = read(folder, { stamp: mtimeMs, basePath, label }));
  };
  return {
    authentication: 'open',
    methods: ['GET', 'HEAD'],
    label: 'builtin',
    async handle(info) {
      if (info.path === PATH) return redirect(info, `${basePath}${PATH}/${queryOf(info)}`);
      const { page: html, assets } = await load().catch((cause: unknown) => {
        const detail = `The console is not built: run "npm run build" on the relay's machine.`;
        throw new CallboardError('not_found', detail, { cause });
      });
      if (!info.path?.startsWith(ASSETS)) return sendPage(info, html);
      const asset = assets.get(info.path.slice(ASSETS.length));
      if (!asset) throw new CallboardError('not_found', 'The console has no such file. Load its page again.');
      // The name contains a digest of the content.
      info.response.setHeader('cache-control', 'public, max-age=31536000, immutable');
      info.response.setHeader('content-security-policy', FILE_POLICY);
      sendFile(info, asset);
    },
  };
}

type Reading = { readonly stamp: number; readonly basePath: string; readonly label: string };

async function read(folder: URL, { stamp, basePath, label }: Reading): Promise<Built> {
  const html = await readFile(new URL('index.html', folder), 'utf8');
  const names = await readdir(new URL('assets/', folder));
  const assets = await Promise.all(
    names.map(async (name) => {
      const bytes = await readFile(new URL(`assets/${encodeURIComponent(name)}`, folder));
      return [name, await fileOf(bytes, name)] as const;
    }),
  );
  // The page is at paths of any depth, so the addresses in it must be absolute.
  const placed = html
    .replaceAll('"./assets/', `"${basePath}${ASSETS}`)
    .replace('</title>', `</title>\n    <meta name="callboard-label" content="${escape(label)}" />`);
  return { stamp, page: await fileOf(Buffer.from(placed), 'index.html'), assets: new Map(assets) };
}

async function fileOf(plain: Buffer, name: string): Promise<File> {
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
  const etag = `"${createHash('sha256').update(plain).digest('base64url')}"`;
  return { plain, packed: await promisify(gzip)(plain, { level: 9 }), etag, type };
}

function sendPage(info: RequestInfo, page: File): void {
  const { response } = info;
  response.setHeader('content-security-policy', POLICY);
  response.setHeader('cache-control', 'no-cache');
  response.setHeader('cross-origin-opener-policy', 'same-origin');
  sendFile(info, page);
}

function sendFile({ request, response }: RequestInfo, { plain, packed, etag, type }: File): void {
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('cross-origin-resource-policy', 'same-origin');
  response.setHeader('vary', 'accept-encoding');
  response.setHeader('etag', etag);
  if (request.headers['if-none-match'] === etag) return void response.writeHead(304).end();
  const takesGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
  const body = takesGzip ? packed : plain;
  if (takesGzip) response.setHeader('content-encoding', 'gzip');
  response.writeHead(200, { 'content-type': type, 'content-length': body.length });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Returns the query of the address with its question mark; empty if it has none. */
function queryOf({ request }: RequestInfo): string {
  return /\?.*$/.exec(request.url ?? '')?.[0] ?? '';
}

function redirect({ response }: RequestInfo, location: string): void {
  response.writeHead(308, { location, 'content-length': 0 }).end();
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}

// Serves the browser builds of the client libraries, and no other file.

/** The browser builds that are served. No other file of the directory can be requested. */
export const CLIENT_FILES: readonly string[] = ['runtime.js', 'caller.js', 'site.js'];

type Loaded = { readonly stamp: string; readonly bytes: Buffer; readonly etag: string };

/**
 * Serves the browser builds of the client libraries from `folder`. A file is read on first use, and again after it
 * changes.
 */
export function createClientFiles(folder: URL): (info: RequestInfo, name: string) => Promise<void> {
  const loaded = new Map<string, Loaded>();
  const load = async (name: string): Promise<Loaded> => {
    const file = new URL(name, folder);
    const { mtimeMs, size } = await stat(file);
    const stamp = `${mtimeMs}:${size}`;
    const known = loaded.get(name);
    if (known?.stamp === stamp) return known;
    const bytes = await readFile(file);
    const fresh = { stamp, bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
    loaded.set(name, fresh);
    return fresh;
  };
  return async ({ request, response }, name) => {
    const file = await load(name).catch((cause: unknown) => {
      const detail = `${name} is not built: run "npm run build" on the relay's machine.`;
      throw new CallboardError('not_found', detail, { cause });
    });
    // Pages of any origin may load the libraries.
    if (!response.hasHeader('access-control-allow-origin')) response.setHeader('access-control-allow-origin', '*');
    response.setHeader('cross-origin-resource-policy', 'cross-origin');
    // Browsers revalidate on each load, which the ETag makes cheap.
    response.setHeader('cache-control', 'no-cache');
    response.setHeader('etag', file.etag);
    if (request.headers['if-none-match'] === file.etag) return void response.writeHead(304).end();
    response.setHeader('content-type', 'text/javascript; charset=utf-8');
    response.setHeader('content-length', file.bytes.length);
    response.writeHead(200).end(file.bytes);
  };
}

// Builds the welcome page at `/`. The page must not need scripts, or load anything from another origin.

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

/** Builds the page at `/`, which lists the relay's paths. It needs no script and loads nothing from other origins. */
export function welcomePage(basePath: string, hasConsole: boolean): { readonly html: string; readonly policy: string } {
  const rows = [...(hasConsole ? [CONSOLE] : []), ...ENTRIES].map((entry) => row(entry, basePath)).join('\n');
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>callboard</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${STYLE}</style></head>
<body><h1>callboard</h1>
<p>Relays commands between callers and connected clients, keeps the evidence, and shows operators the current state.</p>
<dl>
${rows}
</dl></body></html>
`;
  const hash = createHash('sha256').update(STYLE).digest('base64');
  return { html, policy: `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; frame-ancestors 'none'` };
}

function row({ path, says, open }: Entry, basePath: string): string {
  const name = `<code>${basePath}${path}</code>`;
  return `<dt>${open ? `<a href="${basePath}${path}">${name}</a>` : name}</dt><dd>${says}</dd>`;
}
