import { askRelay, textOf, type HttpAnswer } from '../link/ask.ts';
import type { Clock } from '../link/clock.ts';
import { randomId } from '../link/random.ts';
import { jsonOf } from '../link/raw.ts';
import { checkId } from '../runtime/options.ts';
import type { Runtime } from '../runtime/types.ts';
import { HostError } from './errors.ts';

/** What the publisher needs of the runtime, read anew for each event. */
export type HostRuntime = Pick<Runtime, 'url' | 'clientId' | 'instanceId' | 'status' | 'token'>;

export type PublisherOptions = {
  readonly runtime: HostRuntime;
  readonly siteId: string;
  /** The relay's base address. Left out: that of the runtime's link. */
  readonly url?: string;
  /** How often an event is sent again when its connection broke. Default 3. */
  readonly retries?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** 0 (included) to 1 (excluded). */
  readonly random?: () => number;
};

export type NewSiteEvent = {
  readonly name: string;
  /** Any JSON, or `rawJson(text)`; left out, null. */
  readonly data?: unknown;
  /** Made anew unless given. The relay retains and publishes the same id once. */
  readonly messageId?: string;
};

/** Retained is not published: `refusedBy` says by which rule viewers did not get it. */
export type PublishReceipt = {
  readonly messageId: string;
  readonly retained: boolean;
  /** This id was retained before, and what became of it then is not said again. */
  readonly duplicate: boolean;
  readonly published: boolean;
  /** `stream`, `owner`, `name` or `allowlist`; null when it was published, or is a duplicate. */
  readonly refusedBy: string | null;
};

export interface SiteEventPublisher {
  /**
   * Publishes one event to the site's viewers, as the runtime's client and with its credentials. A connection that breaks is tried again
   * with the same message id. Rejects with HostError, or with the signal's reason; with TypeError when `data` is no JSON.
   */
  publish(event: NewSiteEvent, options?: { readonly signal?: AbortSignal | undefined }): Promise<PublishReceipt>;
}

/** What the relay may take to answer, on top of the grace that each request has. */
const BUDGET_MS = 5_000;

/** Throws TypeError for an id that no site can have. */
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
      const answer = await askRelay(
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

/** The relay's base address, from that of its `/connect`. */
export function baseOf(linkUrl: string): string {
  const url = new URL(linkUrl);
  const scheme = url.protocol.replace(/^ws/, 'http');
  return `${scheme}//${url.host}${url.pathname.replace(/\/connect\/?$/, '').replace(/\/+$/, '')}`;
}

/** Throws HostError `runtime_disconnected`: without a link, nothing says that the ids are still those of the live instance. */
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
    throw new HostError('bad_answer', `HTTP ${status} is not a relay's answer.`, { messageId });
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
