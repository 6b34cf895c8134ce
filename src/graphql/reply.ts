import type { ServerResponse } from 'node:http';

/** How a door answers. The front's own headers go with every answer, whichever way it takes. */
export type Reply = {
  /**
   * Sends a whole answer of status 200 at once, unless its asker has gone. `type`: its content type. `text`: JSON. `wide` false: each of its
   * characters is ASCII; the length need not be counted then.
   */
  json(type: string, text: string, wide?: boolean): void;
  /** Gets the response ready for being written in any other way. */
  open(): void;
  /** Whether an answer of so many bytes is refused, for what its requester has left unread: then the refusal was answered. */
  refuses(bytes: number): boolean;
};

/** Of a response that has no headers but those of its answer. */
export function plainReply(response: ServerResponse): Reply {
  return {
    json: (type, text, wide = true) => sendJson(response, { head: [], type, text, wide }),
    open() {},
    refuses: () => false,
  };
}

export type JsonAnswer = {
  /** Further headers: names and values in turn. */
  readonly head: readonly string[];
  readonly type: string;
  readonly text: string;
  readonly wide: boolean;
};

/** From here on Node writes bytes with less work than text that must be encoded: it would put head and text together, and encode both once more. */
const LARGE = 8 * 1024;

/** Writes head and text as one. */
export function sendJson(response: ServerResponse, { head, type, text, wide }: JsonAnswer): void {
  if (response.destroyed) return;
  const bytes = wide ? Buffer.byteLength(text) : text.length;
  response.writeHead(200, [...head, 'Content-Type', type, 'content-length', String(bytes)]);
  // Where each character is one byte, there is nothing to encode.
  if (bytes === text.length) response.end(text, 'latin1');
  else response.end(bytes < LARGE ? text : Buffer.from(text));
}
