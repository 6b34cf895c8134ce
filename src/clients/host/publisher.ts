/** Publishes events of one cooperative site over HTTP, with the runtime's token. */
import { requestRelay, textOf, type HttpAnswer } from '../link/relay-request.ts';
import type { Clock } from '../link/clock.ts';
import { randomId } from '../link/random.ts';
import { jsonOf } from '../link/raw.ts';
import { checkId } from '../runtime/options.ts';
import type { Runtime } from '../runtime/types.ts';
import { HostError } from './errors.ts';

/** The part of the runtime that the publisher needs. The publisher reads it again for each event. */
export type HostRuntime = Pick<Runtime, 'url' | 'clientId' | 'instanceId' | 'status' | 'token'>;

export type PublisherOptions = {
  readonly runtime: HostRuntime;
  readonly siteId: string;
  /** The relay's base address. Defaults to that of the runtime's link. */
  readonly url?: string;
  /** How many times an event is sent again when its connection breaks. Default 3. */
  readonly retries?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** A source of random numbers from 0 (included) to 1 (excluded), for jitter. Default `Math.random`. */
  readonly random?: () => number;
};

export type NewSiteEvent = {
  readonly name: string;
  /** The data of the event: any JSON, or `rawJson(text)`. Default null. */
  readonly data?: unknown;
  /**
   * The id of the event's message; generated when absent. The relay retains and publishes events with the same id only
   * once.
   */
  readonly messageId?: string;
};

/**
 * The relay's answer to an event that it has retained. Such an event is not necessarily published: `refusedBy` names
 * the rule that kept it from viewers.
 */
export type PublishReceipt = {
  readonly messageId: string;
  readonly retained: boolean;
  /**
   * Whether a message with this id was retained before. `published` and `refusedBy` then do not repeat the earlier
   * result.
   */
  readonly duplicate: boolean;
  readonly published: boolean;
  /**
   * The rule that kept the event from viewers: `stream`, `owner`, `name` or `allowlist`. Null when the event was
   * published or is a duplicate.
   */
  readonly refusedBy: string | null;
};

export interface SiteEventPublisher {
  /**
   * Publishes one event to the site's viewers, as the runtime's client and with its credentials. When the connection
   * breaks, the event is sent again with the same message id. Rejects with HostError, with the signal's reason, or with
   * TypeError when `data` is not JSON.
   */
  publish(event: NewSiteEvent, options?: { readonly signal?: AbortSignal | undefined }): Promise<PublishReceipt>;
}

/** How long the relay may take to answer, in milliseconds. The request fails only GRACE_MS later. */
const BUDGET_MS = 5_000;

/** Creates a publisher of one site's events. Throws TypeError for an invalid site id. */
export function createSiteEventPublisher({ runtime, siteId, url, ...options }: PublisherOptions): SiteEventPublisher {
  checkId('siteId', siteId);
  const base = url ?? baseOf(runtime.url);
  return {
    async publish({ name, data = null, messageId = randomId('m-') }, { signal } = {}) {
      if (jsonOf(data) === undefined) throw new TypeError('data: JSON expected');
      requireLink(runtime, messageId);
      const { clientId, instanceId } = runtime;
      const body = {
        message_id: messageId,
        kind: 'event',
        stream_suffix: `sites/${siteId}/events`,
        client_id: clientId,
        instance_id: instanceId,
        payload: { name, data },
      };
      const answer = await requestRelay(
        { ...options, url: base, token: () => runtime.token() },
        {
          method: 'POST',
          path: '/ingest',
          body,
          budgetMs: BUDGET_MS,
          signal,
          fault: (code, message, cause) => new HostError(code, message, { messageId, cause }),
        },
      );
      return receiptOf(messageId, answer);
    },
  };
}

/** Returns the relay's base address, derived from the URL of its `/connect`. */
function baseOf(linkUrl: string): string {
  const url = new URL(linkUrl);
  const scheme = url.protocol.replace(/^ws/, 'http');
  return `${scheme}//${url.host}${url.pathname.replace(/\/connect\/?$/, '').replace(/\/+$/, '')}`;
}

/**
 * Throws HostError `runtime_disconnected` if there is no link. Another instance of the client may have replaced the
 * runtime's instance since the link was lost.
 */
export function requireLink({ status }: Pick<HostRuntime, 'status'>, messageId?: string): void {
  if (status.state === 'connected') return;
  const why = 'reason' in status ? ` (${status.reason})` : '';
  const message = `The runtime is not connected to the relay: ${status.state}${why}. Nothing was sent.`;
  throw new HostError('runtime_disconnected', message, messageId === undefined ? {} : { messageId });
}

function receiptOf(messageId: string, { status, body, retryAfterMs }: HttpAnswer): PublishReceipt {
  const code = textOf(body['code']);
  if (status >= 300 && code !== null) {
    throw new HostError(code, textOf(body['detail']) ?? code, { messageId, retryAfterMs });
  }
  const row = firstOf(body['items']);
  const kept = textOf(row?.['message_id']);
  if (status >= 300 || !row || kept === null) {
    throw new HostError('bad_answer', `HTTP ${status} without a relay's answer.`, { messageId });
  }
  return {
    messageId: kept,
    retained: row['retained'] === true,
    duplicate: row['duplicate'] === true,
    published: row['published'] === true,
    refusedBy: textOf(row['refused_by']),
  };
}

function firstOf(items: unknown): Readonly<Record<string, unknown>> | null {
  const first: unknown = Array.isArray(items) ? items[0] : null;
  return typeof first === 'object' && first !== null ? { ...first } : null;
}
