import { readHttpOutcome, readHttpRefusal } from '../caller/outcome.ts';
import { askRelay } from '../link/ask.ts';
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

const TIMEOUT_MS = 30_000;

/** A viewer's side of one session of a cooperative site, in a browser: hears its events, invokes its actions. */
export class CooperativeSiteBrowserClient {
  readonly #options: SiteClientOptions;

  /** Throws TypeError for what is no URL. */
  constructor(options: SiteClientOptions) {
    new URL(options.url);
    this.#options = options;
  }

  /**
   * The site's events from now on, and a gap for each time that the connection was away: it comes back by itself, with jitter. Connects at
   * the first `next`; each call is a subscription of its own. Events wait at the relay while they are not read (100, then the oldest are
   * dropped and counted in `missed`). Ends without an error when aborted; throws SiteError when the session or the grant is over, or never
   * was.
   */
  subscribe(options: SubscribeOptions = {}): AsyncIterable<SiteEvent | SiteGap> {
    return { [Symbol.asyncIterator]: () => leavable(this.#options, options) };
  }

  /**
   * Invokes an action that the site allows and waits for what becomes of it. Sent again, under the same id, when the connection breaks.
   * Whatever an admitted action comes to is an answer; rejects with SiteError where it was refused or nobody could be asked.
   */
  async invoke<T = unknown>(
    action: string,
    params: object = {},
    { timeoutMs = TIMEOUT_MS, signal, commandId = randomId('c-') }: SiteInvokeOptions = {},
  ): Promise<SiteInvocation<T>> {
    const answer = await askRelay(this.#options, {
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
      throw new SiteError('bad_answer', `HTTP ${answer.status} is not a relay's answer.`, { commandId });
    }
    const { outcome, ...evidence } = read;
    return { commandId, ...evidence, ...outcome };
  }
}

/** One that can be left while a `next` waits, which a generator alone would only do after the next event. */
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
