import { z } from 'zod';
import type { Relay } from './relay.ts';

/** An event as a device or an application's own server sends it. */
export type DemoEvent = {
  /** The same again is the same event. */
  readonly messageId: string;
  readonly streamSuffix: string;
  readonly clientId: string;
  readonly instanceId: string;
  /** Any JSON. */
  readonly payload: unknown;
};

const ANSWER = z.object({
  items: z.array(z.object({ retained: z.boolean(), duplicate: z.boolean(), error: z.unknown() })),
});

/** Sends events of a user over HTTP until the signal is aborted. Rejects unless each was retained, now or before. */
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
