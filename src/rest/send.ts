import type { ServerResponse } from 'node:http';
import { PROBLEM_TYPE, type Answer } from './problem.ts';

/** Writes an answer, unless its asker has gone. A HEAD gets the headers of the GET that it stands for. */
export function send(res: ServerResponse, { status, body, text: written, headers }: Answer): void {
  if (res.destroyed) return;
  const text = Buffer.from(written ?? JSON.stringify(body));
  res.writeHead(status, {
    'content-type': status < 400 ? 'application/json; charset=utf-8' : PROBLEM_TYPE,
    'content-length': text.length,
    'cache-control': 'no-store',
    ...headers,
  });
  if (res.req.method === 'HEAD') res.end();
  else res.end(text);
}
