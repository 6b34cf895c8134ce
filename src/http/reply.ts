import { sendJson, type Reply } from '../graphql/reply.ts';
import type { Visit } from './visit.ts';

/** Doors may set stricter or milder ones of their own. */
const HEADERS = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cache-control', 'no-store'],
  ['vary', 'origin'],
] as const;
const HEAD: readonly string[] = HEADERS.flat();

/** Every answer carries the front's headers: set one by one by `open`, or written at once where the answer goes out whole. */
export function createReply({ id, response }: Visit): Reply {
  let opened = false;
  return {
    open() {
      if (opened || response.headersSent) return;
      opened = true;
      response.setHeader('x-request-id', id);
      for (const [name, value] of HEADERS) response.setHeader(name, value);
    },
    json: (type, text, wide = true) =>
      sendJson(response, { head: opened ? [] : ['x-request-id', id, ...HEAD], type, text, wide }),
  };
}
