/** Builds the page at `/`, which lists the relay's paths. */
import type { PackedFile } from '../web/packed-file.ts';
import { BRAND } from '../web/page-look.ts';
import { htmlPage } from './html.ts';

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
  { path: '/clients/enrol.js', says: 'the library that enrols a device', open: true },
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
