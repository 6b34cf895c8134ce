import type { ServerResponse } from 'node:http';
import { writeJson } from '../core/json.ts';
import type { Reply } from '../web/reply.ts';
import { PROBLEM_TYPE, type Answer } from './problem.ts';

/** Sends an answer, unless the client has disconnected. A HEAD request gets the headers of the corresponding GET. */
export function send(
  res: ServerResponse,
  { status, body, text: written, nonAscii, headers }: Answer,
  reply?: Reply,
): void {
  if (res.destroyed) return;
  if (reply && written !== undefined && status === 200 && res.req.method !== 'HEAD')
    return reply.json('application/json; charset=utf-8', written, nonAscii);
  const text = Buffer.from(written ?? writeJson(body) ?? 'null');
  if (reply?.refuses(text.length)) return;
  reply?.open();
  res.writeHead(status, {
    'content-type': status < 400 ? 'application/json; charset=utf-8' : PROBLEM_TYPE,
    'content-length': text.length,
    'cache-control': 'no-store',
    ...headers,
  });
  if (res.req.method === 'HEAD') res.end();
  else res.end(text);
}
