/** Serves the files of the console at `/console/`. */
import { CallboardError } from '../core/errors.ts';
import { sendPacked } from '../web/packed-file.ts';
import { createReader, TYPES } from './built-files.ts';
import { escaped } from './html.ts';
import type { BuiltinRoute } from './builtin-route.ts';

export type ConsoleOptions = {
  /** The directory of the built console. */
  readonly folder: URL;
  readonly basePath: string;
  /** The name of the deployment, shown in the page's title; empty for none. */
  readonly label: string;
  /** Whether the relay serves agents, which the console tells its users. Default false. */
  readonly mcp?: boolean;
};

const PATH = '/console';
const ASSETS = `${PATH}/assets/`;

/**
 * The content security policy of the page: no inline script or style, no generated code, and nothing from another
 * origin.
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
  // A worker checks the arguments of calls. The console creates the Trusted Types policy of that worker in
  // invoke/drawer.tsx.
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
/**
 * Names of assets contain a digest of their content. The policy also applies to the worker, which loads nothing and
 * generates no code.
 */
const ASSET_HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'content-security-policy': "default-src 'none'",
  'cross-origin-resource-policy': 'same-origin',
};

const ASSET_NAME = /^[\w-][\w.-]*$/;

export function isConsole(path: string): boolean {
  return path === PATH || path.startsWith(`${PATH}/`);
}

/** The element in the page that tells the console that the relay serves agents. */
const MCP_META = '\n    <meta name="callboard-mcp" content="on" />';

/** Answers every path for which `isConsole` is true. If the console was not built, the answer says how to build it. */
export function createConsole({ folder, basePath, label, mcp = false }: ConsoleOptions): BuiltinRoute['handle'] {
  // The same page is served at paths of any depth, so the addresses in it must be absolute.
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
