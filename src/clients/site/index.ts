/**
 * Exports `callboard/site`, with which a browser receives the events of a cooperative site and invokes its actions.
 * Needs only `fetch`.
 */
import { parseObject } from '../../protocol/json.ts';
import { readHttpOutcome, type Ended } from '../caller/outcomes.ts';
import {
  FUNCTION,
  ID,
  LIST,
  NAME,
  OBJECT,
  RESPOND_MS,
  SIGNAL,
  USER,
  checkMembers,
  checkValue,
} from '../link/options.ts';
import { sleepUnlessWoken, watchStream } from '../link/page.ts';
import { unreachable, warn } from '../link/advice.ts';
import { randomId } from '../link/ids.ts';
import { STABLE_MS, reconnectMs, takeTokenInTime } from '../link/reconnect.ts';
import { elapsed, systemClock, type Clock } from '../link/platform.ts';
import { LibraryError, refusalIn, textOf, type LibraryErrorDetails } from '../link/library-error.ts';
import {
  REQUEST_MEMBERS,
  bodyWith,
  payloadText,
  requestRelay,
  retryAfterOf,
  trimUrl,
  type RelayRequestOptions,
} from '../link/request-with-retries.ts';
import { createSseParser, type SseFrame } from './sse.ts';

export type { Failure, Outcome } from '../caller/caller.ts';
export type { Clock } from '../link/platform.ts';
export type { TokenSource } from '../link/reconnect.ts';
export type { ErrorCode } from '../link/library-error.ts';

/** `token`: the token of the grant, or a function that returns it. */
export type SiteClientOptions = Omit<RelayRequestOptions, 'retries'> & {
  /** The session that the owner of the site opened. */
  readonly sessionId: string;
};

/** An event of the site. It is a notification and carries no state: read the state again to which it refers. */
export type SiteEvent = {
  readonly type: 'event';
  readonly name: string;
  /** The data of the event: any JSON value. What a site publishes is not checked. */
  readonly data: unknown;
  /** The id of the event's message in the relay's history. */
  readonly messageId: string;
  /** When the event was published, in epoch milliseconds by the relay's clock. */
  readonly publishedAt: number;
  /**
   * The least number of events that were lost since the previous one: events that were not read fast enough, and one
   * for each interruption between relays.
   */
  readonly missed: number;
};

/**
 * The stream broke and is live again. Events that were published in between are lost, because the relay replays
 * nothing: read all state again. A gap is yielded when the new stream is already live, so no later change is missed.
 */
export type SiteGap = {
  readonly type: 'gap';
  /** When the stream was last known to be live, in epoch milliseconds of the local clock. */
  readonly since: number;
};

export type StreamStatus = 'connecting' | 'live' | 'waiting';

export type SubscribeOptions = {
  /** The names of the events to receive. Absent: all events that the grant permits. */
  readonly names?: readonly string[];
  /** A signal that ends the subscription without an error. */
  readonly signal?: AbortSignal;
  /**
   * Receives the status of the stream. `live`: events that are published from now on will be received. If it throws, so
   * does the subscription. Without this callback, the library warns on the console about a failed attempt, once until
   * the stream is live.
   */
  readonly onStatus?: (status: StreamStatus) => void;
};

export type SiteInvokeOptions = {
  /** The time limit of the action, in milliseconds: 1000 to 300000, default 30000. */
  readonly timeoutMs?: number;
  /** A signal that ends the wait, but not the action. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * The id of the command; if absent, one is made. A second invocation with the same id, action and params does not run
   * the action again.
   */
  readonly commandId?: string;
};

/** The result of an action, discriminated by `outcome` as in callboard/caller. */
export type SiteInvocation<T = unknown> = Ended<T> & { readonly commandId: string };

/**
 * The error that ends a subscription or rejects an invocation. `code` is one of callboard's codes (`session_inactive`,
 * `unauthenticated`, `not_found`, `site_action_denied`, ...), or one of two others:
 *
 * - `unreachable`: the relay did not respond. The action may have run: invoke it again with the same command id.
 * - `bad_answer`: the response does not come from a relay.
 *
 * `message` is meant for people, not for programs.
 */
export class SiteError extends LibraryError {
  /** The command that the error is about; null for a subscription. */
  readonly commandId: string | null;

  constructor(code: string, message: string, details: SiteErrorDetails = {}) {
    super('SiteError', code, message, details);
    this.commandId = details.commandId ?? null;
  }
}

export type SiteErrorDetails = LibraryErrorDetails & { readonly commandId?: string };

/** The default time limit of an invocation, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** A viewer of one session of a cooperative site. It receives the site's events and invokes its actions. */
export class CooperativeSiteBrowserClient {
  readonly #options: SiteClientOptions;

  /** Throws TypeError for an invalid URL, token or session id. */
  constructor(options: SiteClientOptions) {
    const [required, { retries: _, ...optional }] = REQUEST_MEMBERS;
    checkMembers('', options, [{ ...required, sessionId: USER }, optional]);
    this.#options = options;
  }

  /**
   * Subscribes to the site's events from now on. The connection opens at the first `next` and, if it breaks, opens
   * again after a random delay; each reconnect yields a gap. Each call is a separate subscription. The relay queues up
   * to 100 unread events; beyond this it drops the oldest ones and counts them in `missed`. If the signal is aborted,
   * the iteration ends without an error. If the session or the grant has ended or never existed, it throws SiteError.
   */
  subscribe(options: SubscribeOptions = {}): AsyncIterable<SiteEvent | SiteGap> {
    checkMembers('options.', options, [{}, { names: LIST, signal: SIGNAL, onStatus: FUNCTION }]);
    options.names?.forEach((name, i) => checkValue(`options.names[${i}]`, name, NAME));
    return { [Symbol.asyncIterator]: () => leavable(this.#options, options) };
  }

  /**
   * Invokes an action that the site permits, and waits for its end. If the connection breaks, the request is sent again
   * with the same command id. If the action was admitted, its end is always returned. Rejects with SiteError if the
   * relay refuses the request or cannot be reached.
   */
  async invoke<T = unknown>(
    action: string,
    params: object = {},
    options: SiteInvokeOptions = {},
  ): Promise<SiteInvocation<T>> {
    checkValue('action', action, NAME);
    checkValue('params', params, OBJECT);
    checkMembers('options.', options, [{}, { timeoutMs: RESPOND_MS, signal: SIGNAL, commandId: ID }]);
    const { timeoutMs = TIMEOUT_MS, signal, commandId = randomId('c-') } = options;
    const errorOf = (code: string, message: string): SiteError => new SiteError(code, message, { commandId });
    const json = payloadText('params', params, errorOf);
    const answer = await requestRelay(this.#options, {
      method: 'POST',
      path: `/site-sessions/${encodeURIComponent(this.#options.sessionId)}/actions/${encodeURIComponent(action)}`,
      body: bodyWith('params', json, { command_id: commandId, respond_within_ms: timeoutMs }),
      budgetMs: timeoutMs,
      signal,
      fault: (code, message, details) => new SiteError(code, message, { commandId, ...details }),
    });
    const ended = readHttpOutcome<T>(
      answer,
      ({ code, message, details }) => new SiteError(code, message, { commandId, ...details }),
    );
    return { commandId, ...ended };
  }
}

/**
 * Returns an iterator whose `return` ends it even if a `next` is pending. A generator's own `return` would wait for the
 * next event.
 */
function leavable(options: SiteClientOptions, given: SubscribeOptions): AsyncIterator<SiteEvent | SiteGap> {
  const left = new AbortController();
  const signal = given.signal ? AbortSignal.any([given.signal, left.signal]) : left.signal;
  const events = new Subscription(options, { ...given, signal }).events();
  return {
    next: () => events.next(),
    return() {
      left.abort();
      return events.return();
    },
  };
}

// Reads a site's event stream, opens it again if it breaks, and yields a gap after each reconnect.

/** The most characters of one event. An event has at most 1 MiB of JSON; the rest is for the SSE fields around it. */
const MAX_EVENT_CHARS = 2 * 1024 * 1024;

/**
 * The error of a connection that ended and may be opened again. `afterMs`: the shortest delay before that, in
 * milliseconds.
 */
class Interrupted extends Error {
  readonly afterMs: number;

  constructor(message: string, afterMs: number, cause?: unknown) {
    super(message, { cause });
    this.name = 'Interrupted';
    this.afterMs = afterMs;
  }
}

/** The codes with which the relay ends a stream that may be opened again. */
const TEMPORARY_CODES: ReadonlySet<string> = new Set([
  'draining',
  'store_unavailable',
  'node_lost',
  'rate_limited',
  'internal',
]);

const MESSAGES: Readonly<Record<string, string | undefined>> = {
  session_inactive: 'The session is over.',
  unauthenticated: 'The grant is over.',
};

/** One subscription. It has one connection at a time, until its signal is aborted. */
class Subscription {
  readonly #options: SiteClientOptions;
  readonly #given: SubscribeOptions;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  /**
   * When the previous live connection last received anything; null if no live connection has ended yet. Epoch
   * milliseconds.
   */
  #lastLive: number | null = null;
  /**
   * When the current connection became live, and when it last received anything, in epoch milliseconds; null if it is
   * not live.
   */
  #live: { readonly since: number; heardAt: number } | null = null;
  #attempt = 0;
  /** How many times the next address was tried. */
  #moves = 0;
  #token = '';
  /** The last token that the relay refused. It is not used again. */
  #refused: string | null = null;
  /** Whether a failed attempt was printed since the stream was last live. */
  #warned = false;

  constructor(options: SiteClientOptions, given: SubscribeOptions & { readonly signal: AbortSignal }) {
    this.#options = options;
    this.#given = given;
    this.#signal = given.signal;
    this.#clock = options.clock ?? systemClock;
  }

  get #url(): string {
    const urls = [this.#options.url].flat();
    return urls[this.#moves % urls.length] ?? '';
  }

  /** Yields events until the session or the grant ends, and a gap after each reconnect. */
  async *events(): AsyncGenerator<SiteEvent | SiteGap, void> {
    const { onStatus } = this.#given;
    try {
      for (;;) {
        onStatus?.('connecting');
        const afterMs = yield* this.#untilBroken();
        onStatus?.('waiting');
        this.#moves++;
        const ms = reconnectMs(this.#attempt++, afterMs, this.#options.random);
        await sleepUnlessWoken(this.#clock, ms, this.#signal);
      }
    } catch (error) {
      // If the signal is aborted, the iteration ends without an error.
      if (!this.#signal.aborted) throw error;
    }
  }

  /**
   * Yields what one connection receives until it ends. Returns the shortest delay before reconnecting, in milliseconds.
   * Throws SiteError if reconnecting would be useless.
   */
  async *#untilBroken(): AsyncGenerator<SiteEvent | SiteGap, number> {
    const { onStatus } = this.#given;
    try {
      for await (const frame of this.#frames()) {
        if (frame.event === 'callboard.ready') {
          this.#live = { since: elapsed(this.#clock), heardAt: this.#clock.now() };
          this.#refused = null;
          this.#warned = false;
          onStatus?.('live');
          if (this.#lastLive !== null) yield { type: 'gap', since: this.#lastLive };
        } else if (frame.event === 'callboard.closed') throw endOf(frame);
        else {
          const event = eventOf(frame);
          if (event) yield event;
        }
      }
      return 0;
    } catch (error) {
      if (error instanceof Interrupted) {
        if (!onStatus && !this.#live && !this.#warned) {
          this.#warned = true;
          warn(`viewer of ${this.#options.sessionId}`, `${error.message} It tries again.`);
        }
        return error.afterMs;
      }
      const refused = error instanceof SiteError && error.code === 'unauthenticated' && this.#token !== this.#refused;
      if (!refused || typeof this.#options.token === 'string') throw error;
      // Another token may be accepted, so the next connection calls the token function again.
      this.#refused = this.#token;
      return 0;
    } finally {
      if (this.#live) {
        if (elapsed(this.#clock) - this.#live.since >= STABLE_MS) this.#attempt = 0;
        this.#lastLive = this.#live.heardAt;
        this.#live = null;
      }
    }
  }

  /**
   * Yields the frames of one connection. It never returns. It throws Interrupted if the connection may be opened again,
   * SiteError if that would be useless, and the signal's reason if the signal is aborted.
   */
  async *#frames(): AsyncGenerator<SseFrame, never> {
    const own = new AbortController();
    const watch = watchStream(this.#clock, (reason) => own.abort(new Interrupted(reason, 0)));
    let retryMs = 0;
    try {
      const response = await this.#request(AbortSignal.any([this.#signal, own.signal]));
      const parser = createSseParser(MAX_EVENT_CHARS);
      const reader = response.body?.getReader();
      for (;;) {
        // The watch runs only while a read is pending, so that a slow consumer is not taken for a silent relay.
        watch.heard();
        const chunk = await reader?.read();
        watch.rest();
        if (!chunk || chunk.done) throw new Interrupted('The stream ended.', retryMs);
        // Every chunk is a sign of life, even a ping.
        if (this.#live) this.#live.heardAt = this.#clock.now();
        const frames = parser.push(chunk.value);
        retryMs = parser.retryMs ?? 0;
        yield* frames;
      }
    } catch (error) {
      this.#signal.throwIfAborted();
      if (error instanceof SiteError || error instanceof Interrupted) throw error;
      throw new Interrupted(unreachable(this.#url), retryMs, error);
    } finally {
      watch.stop();
      own.abort();
    }
  }

  async #request(signal: AbortSignal): Promise<Response> {
    const { sessionId, fetch = globalThis.fetch } = this.#options;
    const { names } = this.#given;
    const query = names ? `?names=${names.map(encodeURIComponent).join(',')}` : '';
    const path = `/site-sessions/${encodeURIComponent(sessionId)}/events${query}`;
    const authorization = `Bearer ${await this.#freshToken()}`;
    const headers = { authorization, accept: 'text/event-stream' };
    const response = await fetch(trimUrl(this.#url) + path, { headers, cache: 'no-store', signal });
    const type = response.headers.get('content-type') ?? '';
    // For a session that is over, the relay answers 204, because an EventSource does not reconnect after 204.
    if (response.status === 204) throw new SiteError('session_inactive', 'The session is over.');
    if (response.status === 200 && type.startsWith('text/event-stream')) return response;
    throw await refusalOf(response);
  }

  /**
   * Gets a token from the source. Throws SiteError `unauthenticated` if the source returns the refused token again, and
   * Interrupted if it returns none.
   */
  async #freshToken(): Promise<string> {
    this.#token = await takeTokenInTime(this.#options.token, this.#clock).catch((cause: unknown) => {
      throw new Interrupted(`The token function gave no token (${String(cause)}).`, 0, cause);
    });
    if (this.#token === this.#refused) throw new SiteError('unauthenticated', 'The relay refused the token.');
    return this.#token;
  }
}

/** Returns SiteError for a permanent refusal, and Interrupted for a status of the relay or of a proxy that may pass. */
async function refusalOf(response: Response): Promise<SiteError | Interrupted> {
  const { status, headers } = response;
  const body = parseObject(await response.text()) ?? {};
  const passing = status >= 500 || status === 408 || status === 425 || status === 429;
  if (passing) return new Interrupted(`HTTP ${status}`, retryAfterOf(headers) ?? 0);
  const { code, message } = refusalIn({ status, body, retryAfterMs: null });
  return new SiteError(code, message);
}

function endOf({ data }: SseFrame): Error {
  const members = parseObject(data);
  const code = textOf(members?.['code']) ?? 'session_inactive';
  const message =
    textOf(members?.['detail']) ?? textOf(members?.['message']) ?? MESSAGES[code] ?? 'The relay ended the stream.';
  return TEMPORARY_CODES.has(code) ? new Interrupted(message, 0) : new SiteError(code, message);
}

/** Parses an event; null if the frame is not an event of a relay. */
function eventOf({ data }: SseFrame): SiteEvent | null {
  const members = parseObject(data);
  const name = textOf(members?.['name']);
  const messageId = textOf(members?.['message_id']);
  if (!members || name === null || messageId === null) return null;
  const missed = Number(members['missed']);
  return {
    type: 'event',
    name,
    data: members['data'] ?? null,
    messageId,
    publishedAt: timeOf(members['published_at']),
    missed: Number.isSafeInteger(missed) && missed > 0 ? missed : 0,
  };
}

/** Returns a time in epoch milliseconds. `value`: an RFC 3339 text, or epoch milliseconds. */
function timeOf(value: unknown): number {
  return typeof value === 'number' ? value : Date.parse(String(value));
}
