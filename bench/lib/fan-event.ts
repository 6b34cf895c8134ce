/**
 * Defines the event that the fan-out suites publish, and the GraphQL subscription that reads it. The relay and its
 * peers use the same ones.
 */
import { z } from 'zod';

/** The form of the event. The peers use the field names of the relay's `SiteEvent` too. */
const FAN_EVENT = z.object({
  messageId: z.string(),
  name: z.string(),
  publishedAt: z.string(),
  data: z.string(),
});
export type FanEvent = z.infer<typeof FAN_EVENT>;
export const FAN_EVENTS = z.array(FAN_EVENT);

export const EVENT_NAME = 'site_changed';
/** A character that occurs exactly once in each event, so that a reader can count events in any kind of frame. */
export const MARKER = '`';

/** Returns an event. `n` makes the event unique without changing its length. */
export function fanEvent(n: number, chars: number): FanEvent {
  const data = MARKER.padEnd(Math.max(1, chars), 'x');
  return { messageId: `event-${1e9 + n}`, name: EVENT_NAME, publishedAt: '2026-01-01T00:00:00.000Z', data };
}

/** The subscription. The peers' subscriptions have the same field names. */
export const FAN_QUERY = `subscription Events($id: ID!) { siteEvents(sessionId: $id) { messageId name publishedAt data } }`;

/** Returns the message with which the host of the benchmark's site sends an event to `POST /ingest`. */
export function ingested({ messageId, name, data }: FanEvent): object {
  const from = { client_id: 'host', instance_id: 'host-1', stream_suffix: 'sites/board/events' };
  return { ...from, kind: 'event', message_id: messageId, payload: { name, data } };
}
