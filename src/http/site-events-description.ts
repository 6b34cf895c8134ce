import { ACCESS_WORDS } from '../rest/access.ts';
import type { Described } from '../rest/openapi.ts';

/** `GET /site-sessions/{session_id}/events`, for readers of `/openapi.json`: a stream has no document that it could be made of. */
export const SITE_EVENTS_DESCRIPTION: Described = {
  method: 'GET',
  path: '/site-sessions/{session_id}/events',
  operation: {
    operationId: 'ListenToSite',
    summary: 'The events of a session’s site as they happen, as plain server-sent events.',
    description: `${ACCESS_WORDS.GRANT} A ticket in the query replaces a token: it is redeemed within 30 seconds and then good for reconnects, one stream at a time. The stream begins with \`callboard.ready\`, pings every 20 seconds, and ends with \`callboard.closed\` and its code. There is no replay, \`Last-Event-ID\` included: the first event after a gap says how many were missed.`,
    security: [{ bearer: [] }, { ticket: [] }],
    parameters: [
      { name: 'session_id', in: 'path', required: true, description: 'The session.', schema: { type: 'string' } },
      {
        name: 'names',
        in: 'query',
        required: false,
        description: 'Only events of these names. All that the grant allows when absent.',
        style: 'form',
        explode: false,
        schema: { type: 'array', items: { type: 'string' } },
      },
    ],
    responses: {
      '200': {
        description:
          'Frames: `event` is the name, `id` the retained message, `data` the JSON `{ "name", "data", "message_id", "published_at", "missed" }`.',
        content: { 'text/event-stream': { schema: { type: 'string' } } },
      },
      '204': { description: 'The session is over: an `EventSource` does not come again.' },
    },
  },
  problems: ['400', '401', '403', '404', '429', 'default'],
  securitySchemes: {
    ticket: {
      type: 'apiKey',
      in: 'query',
      name: 'ticket',
      description: 'Redeemed within 30 seconds, then good for reconnects.',
    },
  },
};
