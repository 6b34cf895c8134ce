/** Builds the welcome page at `/`. The page must not need scripts, or load anything from another origin. */
import { createHash } from 'node:crypto';

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
