/** The OpenAPI description of the site event stream. The route itself is in site-events.ts. */
import { ACCESS_WORDS } from '../rest/access.ts';
import type { Described } from '../rest/openapi/described.ts';

/**
 * The OpenAPI description of `GET /site-sessions/{session_id}/events`, written by hand because this stream has no REST
 * document from which it could be generated.
 */
export const SITE_EVENTS_DESCRIPTION: Described = {
  method: 'GET',
  path: '/site-sessions/{session_id}/events',
  operation: {
    operationId: 'ListenToSite',
    summary: 'The events of a session’s site as they happen, as plain server-sent events.',
    description: `${ACCESS_WORDS.GRANT} A ticket in the query replaces the token: it must be redeemed within 30 seconds and is then valid for reconnects, one stream at a time. The stream begins with \`callboard.ready\`, sends a ping every 20 seconds, and ends with \`callboard.closed\` and an error code. There is no replay, not even with \`Last-Event-ID\`: the first event after a gap has the number of missed events in \`missed\`.`,
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
