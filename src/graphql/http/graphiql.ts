/** Serves the GraphiQL page. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PackedText, sendPacked } from '../../web/packed-text.ts';
import { EXAMPLE_OPERATIONS } from './graphiql-operations.ts';
import { START_SCRIPT } from './graphiql-start.ts';
import { acceptedTypes } from './request.ts';

/**
 * Returns the content security policy of the page. The page contains everything it needs, and may connect to this origin
 * only. It runs the script with this hash and the editor's workers, which that script makes from texts in it, and
 * generates no code. Styles are allowed inline, because the editor lays out each line of text with them.
 */
function policyOf(script: string): string {
  const hash = createHash('sha256').update(script).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    'worker-src blob:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const EDITOR = { defaultEditorToolsVisibility: 'variables', subscriptionsProtocol: 'GRAPHQL_SSE' };

/**
 * The text in the page of renderGraphiQL that starts the editor. It is replaced, because START_SCRIPT starts the
 * editor.
 */
const START = 'YogaGraphiQL.renderYogaGraphiQL(\n';
/** The text in that page where its only script begins. */
const SCRIPT = '<div id="root"></div>';

/** Whether a browser navigates to the endpoint, as opposed to a client that sends a request. */
export function wantsPage(req: IncomingMessage): boolean {
  return req.method === 'GET' && acceptedTypes(req).includes('text/html');
}

/**
 * Serves the GraphiQL page, which never contains a token. The page is one document of 9 MB, so it is loaded for the
 * first request, compressed, and sent only when the browser's copy has another ETag.
 */
export function createGraphiqlPage(paths: EditorPaths): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  let page: ReturnType<typeof makePage> | null = null;
  return async (req, res) => sendPacked(req, res, await (page ??= makePage(paths)));
}

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  vary: 'accept',
};

/** The paths that the page sends requests to, with the base path. */
export type EditorPaths = { readonly endpoint: string; readonly signInPath: string };

type EditorPage = { readonly text: PackedText; readonly headers: Readonly<Record<string, string>> };

async function makePage({ endpoint, signInPath }: EditorPaths): Promise<EditorPage> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  // A browser hashes a script with its line ends as single line feeds.
  const html = renderGraphiQL({ title: 'Callboard GraphiQL' }).replaceAll(/\r\n?/g, '\n');
  const end = html.lastIndexOf(START);
  const begin = html.indexOf('<script>', html.indexOf(SCRIPT)) + '<script>'.length;
  if (end < begin || !html.includes(SCRIPT))
    throw new Error('The page of GraphiQL starts in another way than expected.');
  const options = { endpoint, signInPath, tabs: EXAMPLE_OPERATIONS, title: 'Callboard GraphiQL', ...EDITOR };
  const start = `${START_SCRIPT}\nvoid startEditor(${JSON.stringify(options).replaceAll('<', '\\u003c')});`;
  const script = `${html.slice(begin, end)}\n${start}\n`;
  const text = new PackedText(`${html.slice(0, begin).trim()}${script}</script></body></html>`);
  return { text, headers: { ...HEADERS, 'content-security-policy': policyOf(script) } };
}
