import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { acceptedTypes } from './request.ts';

/** The page contains everything it needs. The policy allows it to connect to this origin only. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'unsafe-inline' 'unsafe-eval' blob:",
  "style-src 'unsafe-inline'",
  'img-src data:',
  'font-src data:',
  'worker-src blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const DEFAULT_QUERY = `# Put your token into the "Headers" tab below, then
# press Ctrl-Enter to run this. The reload button at
# the left reads the schema.
{
  __typename
}
`;

/** Whether a browser navigates to the endpoint, as opposed to a client that sends a request. */
export function wantsPage(req: IncomingMessage): boolean {
  return req.method === 'GET' && acceptedTypes(req).includes('text/html');
}

/**
 * Serves the GraphiQL page. The page is one document of 9 MB, so it is loaded for the first request, compressed with
 * gzip, and sent only when the browser's copy has another ETag.
 */
export function createGraphiqlPage(endpoint: string): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  let page: Promise<Page> | null = null;
  return async (req, res) => {
    const { plain, packed, etag } = await (page ??= makePage(endpoint));
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
      vary: 'accept, accept-encoding',
      etag,
    };
    if (req.headers['if-none-match'] === etag) return void res.writeHead(304, headers).end();
    const takesGzip = /\bgzip\b/.test(String(req.headers['accept-encoding'] ?? ''));
    const body = takesGzip ? packed : plain;
    res.writeHead(200, { ...headers, 'content-length': body.length, ...(takesGzip && { 'content-encoding': 'gzip' }) });
    res.end(body);
  };
}

type Page = { readonly plain: Buffer; readonly packed: Buffer; readonly etag: string };

async function makePage(endpoint: string): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const html = renderGraphiQL({
    endpoint,
    title: 'Callboard GraphiQL',
    defaultQuery: DEFAULT_QUERY,
    headers: '{ "authorization": "Bearer " }',
    defaultEditorToolsVisibility: 'headers',
    // A token typed here is lost when the page is closed.
    shouldPersistHeaders: false,
    subscriptionsProtocol: 'GRAPHQL_SSE',
  });
  const plain = Buffer.from(html.trim());
  const digest = createHash('sha256').update(plain).digest('base64url');
  return { plain, packed: await promisify(gzip)(plain), etag: `W/"${digest}"` };
}
