/** Handles the requests that publish events at a peer of the fan-out suite: POST of a JSON array, as at the relay. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FAN_EVENTS, type FanEvent } from '../lib/fan-event.ts';

/** Handles `POST /publish`. Returns false for any other request. */
export function publishes(
  request: IncomingMessage,
  response: ServerResponse,
  publish: (events: readonly FanEvent[]) => void,
): boolean {
  if (request.method !== 'POST' || request.url !== '/publish') return false;
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    publish(FAN_EVENTS.parse(JSON.parse(Buffer.concat(parts).toString())));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 }).end('{}');
  });
  return true;
}
