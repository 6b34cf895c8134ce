/** Keeps the open event streams of one node: their number per requester, their pings and their ends. */
import type { ServerResponse } from 'node:http';
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import { fail } from '../core/errors.ts';
import { SSE_PER_ADMIN, SSE_PER_PRINCIPAL, SSE_PING_MS } from '../core/limits.ts';
import { createExpiries } from './expiries.ts';
import { SseStream, type SseStreamHost, type SseStreamOptions } from './sse-stream.ts';

export type SseStreams = {
  /**
   * Reserves one of the event streams that the requester may have open, and returns a function that frees the
   * reservation. Throws `rate_limited` or `draining`.
   */
  reserve(requester: Principal): () => void;
  /**
   * Opens a response as a stream. The caller must have called `reserve` before. It writes to the stream and ends it.
   */
  open(res: ServerResponse, options: SseStreamOptions): SseStream;
  /** Ends every stream with its last chunk, if it has one, and refuses new streams as `draining`. */
  close(): void;
};

export type SseStreamsOptions = {
  readonly clock: Clock;
  /** Whether frames may be written directly to sockets. The bytes are the same either way. */
  readonly direct: boolean;
};

export function createSseStreams({ clock, direct }: SseStreamsOptions): SseStreams {
  const streams = new Set<SseStream>();
  const expiries = createExpiries(clock);
  const held = new Map<string, number>();
  let closing = false;
  const stopPings = clock.every(SSE_PING_MS, () => streams.forEach((stream) => stream.ping()));
  const host: SseStreamHost = {
    clock,
    direct,
    onClose(stream) {
      streams.delete(stream);
      expiries.cancel(stream);
    },
  };
  return {
    reserve(requester) {
      if (closing)
        fail('draining', 'This node is shutting down; open the stream on another node.', { retryAfterMs: 1000 });
      return takePlace(held, requester);
    },
    open(res, options) {
      const stream = new SseStream(res, { host, options });
      streams.add(stream);
      expiries.add(stream);
      return stream;
    },
    close() {
      closing = true;
      stopPings();
      for (const stream of [...streams]) {
        if (stream.options.lastChunk) stream.write(stream.options.lastChunk);
        stream.end();
      }
    },
  };
}

function takePlace(held: Map<string, number>, requester: Principal): () => void {
  const subject = subjectOf(requester);
  const most = requester.kind === 'admin' ? SSE_PER_ADMIN : SSE_PER_PRINCIPAL;
  const now = held.get(subject) ?? 0;
  if (now >= most) fail('rate_limited', `At most ${most} event streams at once.`, { retryAfterMs: 5000 });
  held.set(subject, now + 1);
  let given = false;
  return () => {
    if (given) return;
    given = true;
    const left = (held.get(subject) ?? 1) - 1;
    if (left > 0) held.set(subject, left);
    else held.delete(subject);
  };
}
