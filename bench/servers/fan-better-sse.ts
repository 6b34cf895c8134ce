/**
 * Serves the streams of the fan-out suite with better-sse, a peer of the relay: one channel, with a session for each
 * reader.
 */
import { createChannel, createSession } from 'better-sse';
import type { Started } from '../lib/child.ts';
import type { FanEvent } from '../lib/fan-event.ts';
import { listen } from '../lib/listen.ts';
import { publishes } from './fan-publish.ts';

export async function start(): Promise<Started> {
  const channel = createChannel();
  const publish = (events: readonly FanEvent[]): void =>
    events.forEach((event) => channel.broadcast({ data: { siteEvents: event } }, 'next'));
  return {
    port: await listen((request, response) => {
      if (publishes(request, response, publish)) return;
      request.resume();
      void createSession(request, response).then((session) => {
        channel.register(session);
        session.push('ready');
      });
    }),
  };
}
