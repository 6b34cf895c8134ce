/** Serves the events of a site session as a plain event stream (SSE), without depending on GraphQL. */
import type { Core } from '../core/core.ts';
import { CallboardError, fail, invalid, notFound } from '../core/errors.ts';
import { inOneLine } from '../core/json.ts';
import type { LiveEvent } from '../core/live.ts';
import type { Log } from '../core/ports.ts';
import type { RedeemedTicket } from '../core/sites/site-requests.ts';
import type { SiteEvent } from '../core/sites/site.ts';
import { decode } from '../rest/inputs.ts';
import { createGroups, type EventEncoder, type Groups } from '../web/sse-group.ts';
import { Chunk, eventFrame, type SseStream, type SseStreams } from '../web/sse.ts';
import type { AuthenticateRequest } from './authenticate-request.ts';
import type { TokenGuard } from './token-guard.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import type { RequestInfo } from './request-info.ts';
import type { Sockets } from './sockets.ts';
import { ACCESS_WORDS } from '../rest/compile.ts';
import type { Described } from '../rest/openapi.ts';

type SiteEventsOptions = {
  readonly core: Pick<Core, 'loop' | 'sites' | 'subscribed'>;
  readonly log: Log;
  readonly streams: SseStreams;
  readonly authenticate: AuthenticateRequest;
  readonly guard: TokenGuard;
  readonly sockets: Pick<Sockets, 'authenticated'>;
  /**
   * Whether viewers who receive the same events share one encoding of them; default true. Each viewer receives the same
   * bytes either way.
   */
  readonly fastPath?: boolean;
};

/** An empty envelope, because each encoded event is already a complete frame. */
const BARE = { head: '', tail: '' };
const DRAINING = new Chunk(closedFrame('draining'));
const REPLACED = new Chunk(closedFrame('unauthenticated'));
const PATH = /^\/site-sessions\/([^/]+)\/events$/;

/** Whether a path is `/site-sessions/{session_id}/events`. */
export function isSiteEvents(path: string): boolean {
  return path.endsWith('/events') && PATH.test(path);
}

/**
 * Creates the route `GET /site-sessions/{session_id}/events`, which answers with an event stream. It authenticates by
 * token or by ticket.
 */
export function createSiteEvents(options: SiteEventsOptions): BuiltinRoute {
  const groups = createGroups<SiteEvent>({ sharing: options.fastPath ?? true, loop: options.core.loop });
  return {
    authentication: 'by-route',
    methods: ['GET'],
    label: 'events',
    async handle(info, access) {
      const sessionId = sessionOf(info.path ?? '');
      const query = new URLSearchParams(info.query);
      const holder = await holderOf(options, info, { sessionId, ticket: query.get('ticket') });
      access.requester = holder.principal;
      await answer(options, info, { holder, sessionId, names: namesOf(query) }, groups);
    },
  };
}

type EventsRequest = { readonly holder: Holder; readonly sessionId: string; readonly names: readonly string[] | null };
/** The holder of a stream. `occupy` is present only for a ticket, which may have only one open stream at a time. */
type Holder = Pick<RedeemedTicket, 'principal'> & Partial<Pick<RedeemedTicket, 'occupy'>>;

/** Returns the session id in the path. Throws `not_found` if its percent-encoding is malformed. */
function sessionOf(path: string): string {
  return decode(PATH.exec(path)?.[1] ?? '') ?? notFound();
}

/**
 * Authenticates a request by its token, or by its ticket if it has no token. An invalid ticket counts like an invalid
 * token.
 */
async function holderOf(
  { core, authenticate, guard, sockets }: SiteEventsOptions,
  info: RequestInfo,
  { sessionId, ticket }: { readonly sessionId: string; readonly ticket: string | null },
): Promise<Holder> {
  const principal = await authenticate(info);
  if (principal) return { principal };
  if (ticket === null) fail('unauthenticated', 'A bearer token or a ticket is needed.');
  const redeemed = await guard.check(info.address, () => core.sites.redeem(sessionId, ticket));
  sockets.authenticated(info.request.socket, redeemed.principal);
  return redeemed;
}

/**
 * Reads the parameter `names` (`names=a,b`). Unknown parameters are refused, because a misspelt filter would deliver
 * more events than the requester wants.
 */
function namesOf(query: URLSearchParams): readonly string[] | null {
  for (const name of query.keys()) {
    if (name !== 'names' && name !== 'ticket') invalid(name, 'unknown parameter');
    if (query.getAll(name).length > 1) invalid(name, 'given twice');
  }
  const names = query.get('names');
  return names === null ? null : names.split(',');
}

async function answer(
  options: SiteEventsOptions,
  info: RequestInfo,
  { holder, sessionId, names }: EventsRequest,
  groups: Groups<SiteEvent>,
): Promise<void> {
  const { streams, core } = options;
  const place = new Place();
  try {
    // `occupy` comes before `reserve`: it closes the ticket's previous stream and so frees a reservation, which an
    // EventSource that reconnects may need.
    place.leave = holder.occupy?.(() => place.replaced());
    place.release = streams.reserve(holder.principal);
    const shared = (await core.sites.listen(holder.principal, sessionId, names)) ?? notFound();
    // A viewer reads all state again when it is told that its stream is ready, so other nodes must know of it by then. The
    // listener stays until the stream has its own: otherwise other nodes would be told that nobody listens.
    const stop = shared.listen(nothing);
    try {
      await core.subscribed();
      const stream = streams.open(info.response, { onClose: () => place.free(), expiresAt: null, lastChunk: DRAINING });
      stream.send(eventFrame({ event: 'callboard.ready', data: JSON.stringify({ session_id: sessionId }) }));
      groups.join({ shared, encoder: () => encoderOf(options.log) }, { stream, id: null, onEnd: nothing });
      place.opened(stream);
    } finally {
      stop();
    }
  } catch (error) {
    place.free();
    if (!(error instanceof CallboardError) || error.code !== 'session_inactive') throw error;
    // A 204 tells an EventSource not to reconnect.
    info.response.writeHead(204).end();
  }
}

/** What an open stream occupies: a stream reservation of its holder, and the ticket if it was opened with one. */
class Place {
  release: (() => void) | undefined;
  leave: (() => void) | undefined;
  #stream: SseStream | null = null;
  #replaced = false;

  opened(stream: SseStream): void {
    this.#stream = stream;
    if (this.#replaced) this.replaced();
  }

  /** Ends this stream after another one was opened with the same ticket. */
  replaced(): void {
    this.#replaced = true;
    this.#stream?.write(REPLACED);
    this.#stream?.end();
  }

  free(): void {
    this.release?.();
    this.leave?.();
  }
}

/** An `onEnd` that does nothing. One function serves all streams, so that no stream allocates its own. */
function nothing(): void {}

function encoderOf(log: Log): EventEncoder<SiteEvent> {
  return {
    encode: siteFrame,
    envelope: () => BARE,
    last(_, error) {
      const known = error instanceof CallboardError;
      if (!known) log.error({ err: error }, 'a site’s event stream failed');
      return closedFrame(known ? error.code : 'internal');
    },
  };
}

function siteFrame({ event, missed }: LiveEvent<SiteEvent>): string {
  const { name, data, messageId, publishedAt } = event;
  const rest = { message_id: messageId, published_at: new Date(publishedAt).toISOString(), missed };
  const json = `{"name":${JSON.stringify(name)},"data":${data ?? 'null'},${JSON.stringify(rest).slice(1)}`;
  return eventFrame({ event: name, id: messageId, data: inOneLine(json) });
}

function closedFrame(code: string): string {
  return eventFrame({ event: 'callboard.closed', data: JSON.stringify({ code }) });
}

/**
 * Describes the event stream of a session for OpenAPI. It is written by hand, because the other descriptions are
 * derived from REST documents and this route has none.
 */
export const SITE_EVENTS_DESCRIPTION: Described = {
  method: 'GET',
  path: '/site-sessions/{session_id}/events',
  operationId: 'ListenToSite',
  summary: 'The events of a session’s site as they happen, as plain server-sent events.',
  description: `${ACCESS_WORDS.GRANT} A ticket in the query replaces the token: it must be redeemed within 30 seconds and is then valid for reconnects, one stream at a time. The stream begins with \`callboard.ready\`, sends a ping every 20 seconds by default, and ends with \`callboard.closed\` and an error code. There is no replay, not even with \`Last-Event-ID\`: the first event after a gap has the number of missed events in \`missed\`.`,
  security: [{ bearer: [] }, { ticket: [] }],
  parameters: [
    { name: 'session_id', in: 'path', required: true, description: 'The session.', schema: { type: 'string' } },
    {
      name: 'names',
      in: 'query',
      required: false,
      description: 'Send only events with these names. When absent, send all events that the grant allows.',
      style: 'form',
      explode: false,
      schema: { type: 'array', items: { type: 'string' } },
    },
  ],
  responses: {
    '200': {
      description:
        'Frames: `event` is the name of the event, `id` the id of the retained message, `data` the JSON `{ "name", "data", "message_id", "published_at", "missed" }`.',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    },
    '204': { description: 'The session has ended; an `EventSource` does not reconnect.' },
  },
  problems: ['400', '401', '403', '404', '429', '500', '503'],
  securitySchemes: {
    ticket: {
      type: 'apiKey',
      in: 'query',
      name: 'ticket',
      description: 'Must be redeemed within 30 seconds; then valid for reconnects.',
    },
  },
};
