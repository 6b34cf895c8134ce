import { sendJson, type HttpReply } from '../web/reply.ts';
import type { CallboardError } from '../core/errors.ts';
import type { UnreadBytes } from './unread.ts';
import type { RequestInfo } from './request-info.ts';

export type ReplyParts = {
  readonly unread: UnreadBytes;
  /** Answers an error in the form of the request's path. */
  readonly refuse: (error: CallboardError) => void;
};

/** Default headers of every response. Handlers may override them. */
const HEADERS = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cache-control', 'no-store'],
  ['vary', 'origin'],
] as const;
const HEAD: readonly string[] = HEADERS.flat();

/**
 * Every response gets the default headers: `open` sets them one by one, `json` writes them together with the response.
 */
export function createReply(
  { id, request: { socket }, response }: RequestInfo,
  { unread, refuse }: ReplyParts,
): HttpReply {
  let opened = false;
  const reply: HttpReply = {
    open() {
      if (opened || response.headersSent) return;
      opened = true;
      response.setHeader('x-request-id', id);
      for (const [name, value] of HEADERS) response.setHeader(name, value);
    },
    json(type, text, nonAscii = true, inserts = []) {
      const known = inserts.reduce((sum, { length }) => sum + length, text.length);
      if (reply.refuses(known)) return;
      sendJson(response, { head: opened ? [] : ['x-request-id', id, ...HEAD], type, text, nonAscii, inserts });
      unread.wrote(socket, known);
    },
    refuses(bytes) {
      const error = response.destroyed ? null : unread.refusal(socket, bytes);
      if (error === null) return false;
      reply.open();
      refuse(error);
      return true;
    },
  };
  return reply;
}
