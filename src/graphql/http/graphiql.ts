/** Serves the GraphiQL page. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PackedText, sendPacked } from '../../web/packed-text.ts';
import { EXAMPLE_OPERATIONS } from './graphiql-operations.ts';
import { START_SCRIPT } from './graphiql-start.ts';
import { acceptedTypes } from './request.ts';

/**
 * The content security policy of the page. The page contains everything it needs, and may connect to this origin only.
 */
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

const EDITOR = { defaultEditorToolsVisibility: 'variables', subscriptionsProtocol: 'GRAPHQL_SSE' };

/**
 * The text in the page of renderGraphiQL that starts the editor. It is replaced, because START_SCRIPT starts the
 * editor.
 */
const START = 'YogaGraphiQL.renderYogaGraphiQL(\n';

/** Whether a browser navigates to the endpoint, as opposed to a client that sends a request. */
export function wantsPage(req: IncomingMessage): boolean {
  return req.method === 'GET' && acceptedTypes(req).includes('text/html');
}

/**
 * Serves the GraphiQL page, which never contains a token. The page is one document of 9 MB, so it is loaded for the
 * first request, compressed, and sent only when the browser's copy has another ETag.
 */
export function createGraphiqlPage(paths: EditorPaths): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  let page: Promise<PackedText> | null = null;
  return async (req, res) => sendPacked(req, res, { text: await (page ??= makePage(paths)), headers: HEADERS });
}

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  vary: 'accept',
};

/** The paths that the page sends requests to, with the base path. */
export type EditorPaths = { readonly endpoint: string; readonly signInPath: string };

async function makePage({ endpoint, signInPath }: EditorPaths): Promise<PackedText> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const html = renderGraphiQL({ title: 'Callboard GraphiQL' });
  const end = html.lastIndexOf(START);
  if (end < 0) throw new Error('The page of GraphiQL starts in another way than expected.');
  const options = { endpoint, signInPath, tabs: EXAMPLE_OPERATIONS, title: 'Callboard GraphiQL', ...EDITOR };
  const start = `${START_SCRIPT}\nvoid startEditor(${JSON.stringify(options).replaceAll('<', '\\u003c')});`;
  return new PackedText(`${html.slice(0, end).trim()}\n${start}\n</script></body></html>`);
}
