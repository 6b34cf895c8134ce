/** Sends the demo's events to the relay over HTTP. */
import { z } from 'zod';
import type { Relay } from './relay.ts';

/** An event from a device or from an application's server. */
export type DemoEvent = {
  /** The id of the event. A second event with this id is a duplicate. */
  readonly messageId: string;
  readonly streamSuffix: string;
  readonly clientId: string;
  readonly instanceId: string;
  /** The payload of the event: any JSON. */
  readonly payload: unknown;
};

const ANSWER = z.object({
  items: z.array(z.object({ retained: z.boolean(), duplicate: z.boolean(), error: z.unknown() })),
});

/**
 * Returns a function that sends a user's events over HTTP until the signal is aborted. It rejects unless each event was
 * retained, now or earlier.
 */
export function createIngest({ url, token }: Relay, signal: AbortSignal) {
  return async (userId: string, events: readonly DemoEvent[]): Promise<void> => {
    const headers = { authorization: `Bearer ${await token(userId, ['host'])}`, 'content-type': 'application/json' };
    const body = JSON.stringify(events.map(messageOf));
    const answer = await fetch(`${url}/ingest`, { method: 'POST', headers, body, signal });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`The events were refused with ${answer.status}: ${text}`);
    const bad = ANSWER.parse(JSON.parse(text)).items.find(({ retained, duplicate }) => !retained && !duplicate);
    if (bad) throw new Error(`An event was refused: ${JSON.stringify(bad.error)}`);
  };
}

function messageOf({ messageId, streamSuffix, clientId, instanceId, payload }: DemoEvent) {
  const from = { client_id: clientId, instance_id: instanceId };
  return { message_id: messageId, kind: 'event', stream_suffix: streamSuffix, ...from, payload };
}
