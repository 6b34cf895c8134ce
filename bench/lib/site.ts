/**
 * Registers a site on a measured relay, opens sessions for its viewers, and builds the texts of the HTTP requests with
 * which viewers open event streams. It does not send these requests.
 */
import { z } from 'zod';
import { askJson, userToken, type Relay } from './callboard.ts';
import { EVENT_NAME, FAN_QUERY } from './fan-event.ts';
import { startChild } from './processes.ts';

export type Viewer = { readonly sessionId: string; readonly token: string };
export type Site = { readonly ownerToken: string; readonly viewers: readonly Viewer[] };

/** The maximum number of sessions that a relay allows for one site. */
const SESSIONS = 1000;
/** The maximum number of streams that a relay allows for one grant. */
const STREAMS_PER_GRANT = 10;
/** The number of sessions that are opened at the same time. */
const AT_ONCE = 25;

/**
 * Connects a host, registers its site, and opens enough sessions for this many streams, if possible one for each
 * stream.
 */
export async function openSite(relay: Relay, streams: number, stack: AsyncDisposableStack): Promise<Site> {
  if (streams > SESSIONS * STREAMS_PER_GRANT)
    throw new Error(`A site has at most ${SESSIONS * STREAMS_PER_GRANT} streams.`);
  const ownerToken = await userToken('owner', 'connect', 'host', 'invoke');
  const host = { token: ownerToken, clientId: 'host', instanceId: 'host-1', payload: '{}' };
  const holder = stack.use(await startChild('loads/clients.ts'));
  await holder.ask('connect', { link: relay.link, clients: [host] }, z.number());
  const ask = (method: string, path: string, body: object): Promise<unknown> =>
    askJson(relay.url + path, { token: ownerToken, method, body });
  await ask('PUT', '/sites/board', { client_id: 'host', event_names: [EVENT_NAME] });
  const viewers: Viewer[] = [];
  const open = async (): Promise<Viewer> => {
    const { session_id: sessionId, token } = OPENED.parse(await ask('POST', '/sites/board/sessions', {}));
    return { sessionId, token };
  };
  while (viewers.length < Math.min(streams, SESSIONS)) {
    const left = Math.min(streams, SESSIONS) - viewers.length;
    viewers.push(...(await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, open))));
  }
  return { ownerToken, viewers };
}

const OPENED = z.object({ session_id: z.string(), token: z.string() });

/** Returns a viewer's request for the GraphQL subscription over SSE. */
export function graphqlStream({ sessionId, token }: Viewer): string {
  return streamRequest(sessionId, token);
}

/** Returns a viewer's request for the plain stream that a browser's EventSource reads. */
export function eventSourceStream({ sessionId, token }: Viewer): string {
  return `GET /site-sessions/${sessionId}/events HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`;
}

/** Returns the request for the same subscription to a peer. */
export function streamRequest(sessionId: string, token: string | null, path = '/graphql'): string {
  const body = JSON.stringify({ query: FAN_QUERY, variables: { id: sessionId } });
  const bearer = token === null ? '' : `Authorization: Bearer ${token}\r\n`;
  const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  return `POST ${path} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n${bearer}${type}\r\n${body}`;
}
