/** Serves the built console at `/console/`: its page for every path below, and its files by their names. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { CallboardError } from '../core/errors.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import type { RequestInfo } from './request-info.ts';

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
  // A worker checks the arguments of calls: invoke/use-check.ts of the console creates the one policy.
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
