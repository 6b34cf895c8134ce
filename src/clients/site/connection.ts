/** Reads a site's event stream over one connection. Reconnecting is the job of subscription.ts. */
import { parseObject, retryAfterOf, textOf, trimUrl } from '../link/relay-request.ts';
import type { Clock } from '../link/clock.ts';
import { takeToken } from '../link/token.ts';
import { SiteError } from './errors.ts';
import { createSseParser, type SseFrame } from './sse.ts';
import type { SiteClientOptions, SubscribeOptions } from './types.ts';

/** The silence, in milliseconds, after which a connection counts as dead: three ping intervals of the relay. */
const SILENCE_MS = 60_000;
/** The most characters of one event. An event is at most 1 MiB of JSON; the rest is for the SSE fields around it. */
const MAX_EVENT_CHARS = 2 * 1024 * 1024;

/** The error of a connection that ended and may be opened again, at the earliest after `afterMs` milliseconds. */
export class Interrupted extends Error {
  readonly afterMs: number;

  constructor(message: string, afterMs: number, cause?: unknown) {
    super(message, { cause });
    this.name = 'Interrupted';
    this.afterMs = afterMs;
  }
}

export type ConnectionOptions = Pick<SiteClientOptions, 'url' | 'sessionId' | 'token' | 'fetch'> & {
  readonly clock: Clock;
  readonly names: SubscribeOptions['names'];
  readonly signal: AbortSignal;
  /** Called for each received chunk, including pings. */
  heard(): void;
};

/**
 * Yields the frames of one connection. It never returns. It throws Interrupted if the connection may be opened again,
 * SiteError if that is of no use, and the reason of `signal` if it is aborted.
 */
export async function* openConnection(options: ConnectionOptions): AsyncGenerator<SseFrame, never> {
  const { clock, signal, heard } = options;
  const own = new AbortController();
  const both = AbortSignal.any([signal, own.signal]);
  let cancelWatch = watch(clock, own);
  let retryMs = 0;
  try {
    const response = await ask(options, both);
    const parser = createSseParser(MAX_EVENT_CHARS);
    const reader = response.body?.getReader();
    for (;;) {
      // The timer runs only while a read is pending, so a slow consumer does not count as silence of the relay.
      cancelWatch();
      cancelWatch = watch(clock, own);
      const chunk = await reader?.read();
      cancelWatch();
      if (!chunk || chunk.done) throw new Interrupted('The stream ended.', retryMs);
      heard();
      const frames = parser.push(chunk.value);
      retryMs = parser.retryMs ?? 0;
      yield* frames;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SiteError || error instanceof Interrupted) throw error;
    throw new Interrupted('The connection broke.', retryMs, error);
  } finally {
    cancelWatch();
    own.abort();
  }
}

function watch(clock: Clock, own: AbortController): () => void {
  return clock.after(SILENCE_MS, () => own.abort(new Interrupted('The relay fell silent.', 0)));
}

async function ask(options: ConnectionOptions, signal: AbortSignal): Promise<Response> {
  const { url, sessionId, names } = options;
  const query = names ? `?names=${names.map(encodeURIComponent).join(',')}` : '';
  const response = await (options.fetch ?? globalThis.fetch)(
    `${trimUrl(url)}/site-sessions/${encodeURIComponent(sessionId)}/events${query}`,
    {
      headers: { authorization: `Bearer ${await takeToken(options.token)}`, accept: 'text/event-stream' },
      cache: 'no-store',
      signal,
    },
  );
  const type = response.headers.get('content-type') ?? '';
  // The relay answers 204 for a session that is over, because 204 tells an EventSource not to reconnect.
  if (response.status === 204) throw new SiteError('session_inactive', 'The session is over.');
  if (response.status === 200 && type.startsWith('text/event-stream')) return response;
  throw await refusalOf(response);
}

/**
 * Returns SiteError for a permanent refusal, and Interrupted for a status that may pass, whether it comes from the
 * relay or from a proxy.
 */
async function refusalOf(response: Response): Promise<SiteError | Interrupted> {
  const { status, headers } = response;
  const body = parseObject(await response.text());
  const code = textOf(body?.['code']);
  const passing = status >= 500 || status === 408 || status === 425 || status === 429;
  if (passing) return new Interrupted(`HTTP ${status}`, retryAfterOf(headers) ?? 0);
  if (code === null) return new SiteError('bad_answer', `HTTP ${status} without a relay's answer.`);
  return new SiteError(code, textOf(body?.['detail']) ?? code);
}
