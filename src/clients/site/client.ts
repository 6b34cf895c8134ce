/** Implements the viewer's client of one site session: subscriptions and invocations, over fetch only. */
import { readHttpOutcome, readHttpRefusal } from '../caller/outcome.ts';
import { requestRelay } from '../link/relay-request.ts';
import { randomId } from '../link/random.ts';
import { SiteError } from './errors.ts';
import { subscribe } from './subscription.ts';
import type {
  SiteClientOptions,
  SiteEvent,
  SiteGap,
  SiteInvocation,
  SiteInvokeOptions,
  SubscribeOptions,
} from './types.ts';

/** How long an invocation may take by default, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** A viewer of one session of a cooperative site, in a browser: receives the site's events and invokes its actions. */
export class CooperativeSiteBrowserClient {
  readonly #options: SiteClientOptions;

  /** Throws TypeError for an invalid URL. */
  constructor(options: SiteClientOptions) {
    new URL(options.url);
    this.#options = options;
  }

  /**
   * Subscribes to the site's events from now on. The connection opens at the first `next` and reconnects by itself with
   * jitter; each reconnect yields a gap. Each call is a separate subscription. The relay queues up to 100 unread
   * events; beyond that it drops the oldest and counts them in `missed`. The iteration ends without an error when
   * aborted. It throws SiteError when the session or the grant has ended or never existed.
   */
  subscribe(options: SubscribeOptions = {}): AsyncIterable<SiteEvent | SiteGap> {
    return { [Symbol.asyncIterator]: () => leavable(this.#options, options) };
  }

  /**
   * Invokes an action that the site allows and waits for its outcome. When the connection breaks, the request is sent
   * again under the same command id. Every end of an admitted action is returned. Rejects with SiteError when the relay
   * refused the request or could not be reached.
   */
  async invoke<T = unknown>(
    action: string,
    params: object = {},
    { timeoutMs = TIMEOUT_MS, signal, commandId = randomId('c-') }: SiteInvokeOptions = {},
  ): Promise<SiteInvocation<T>> {
    const answer = await requestRelay(this.#options, {
      method: 'POST',
      path: `/site-sessions/${encodeURIComponent(this.#options.sessionId)}/actions/${encodeURIComponent(action)}`,
      body: { params, command_id: commandId, respond_within_ms: timeoutMs },
      budgetMs: timeoutMs,
      signal,
      fault: (code, message, cause) => new SiteError(code, message, { commandId, cause }),
    });
    const read = readHttpOutcome<T>(answer);
    const refusal = read === 'refused' ? readHttpRefusal(answer) : null;
    if (refusal) {
      throw new SiteError(refusal.code, refusal.message, { commandId, retryAfterMs: answer.retryAfterMs });
    }
    if (read === null || read === 'refused') {
      throw new SiteError('bad_answer', `HTTP ${answer.status} without a relay's answer.`, { commandId });
    }
    const { outcome, ...evidence } = read;
    return { commandId, ...evidence, ...outcome };
  }
}

/**
 * Returns an iterator whose `return` ends it even while a `next` is pending. A plain generator would return only after
 * the next event.
 */
function leavable(
  options: SiteClientOptions,
  { signal, ...more }: SubscribeOptions,
): AsyncIterator<SiteEvent | SiteGap> {
  const left = new AbortController();
  const either = signal ? AbortSignal.any([signal, left.signal]) : left.signal;
  const events = subscribe(options, { ...more, signal: either });
  return {
    next: () => events.next(),
    return() {
      left.abort();
      return events.return();
    },
  };
}
