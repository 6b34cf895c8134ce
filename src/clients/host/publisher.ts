/** Publishes the events of one cooperative site over HTTP, with the runtime's token. */
import { RawJson, writeJson } from '../../protocol/json-write.ts';
import { isRecord } from '../../protocol/json.ts';
import { ANY, BASE_URL, ID, SIGNAL, STRING, checkMembers, wrong, type MembersOf } from '../link/options.ts';
import { randomId } from '../link/ids.ts';
import {
  LibraryError,
  badAnswer,
  refusalIn,
  textOf,
  type LibraryErrorDetails,
  type HttpAnswer,
} from '../link/library-error.ts';
import { REQUEST_MEMBERS, payloadText, requestRelay, type RelayRequestOptions } from '../link/request-with-retries.ts';
import type { Runtime } from '../runtime/types.ts';

/** The members of the runtime that the publisher uses. They are read again for each event. */
export type HostRuntime = Pick<Runtime, 'url' | 'clientId' | 'instanceId' | 'status' | 'token'>;

export type PublisherOptions = Omit<RelayRequestOptions, 'url' | 'token'> & {
  /** The connected runtime whose token and ids are used. */
  readonly runtime: HostRuntime;
  /** The site whose events are published. */
  readonly siteId: string;
  /** The relay's base address. Default: the address of the runtime's link without `/connect`. */
  readonly url?: string;
};

export type NewSiteEvent = {
  /** The name of the event. The site's definition may allow only certain names. */
  readonly name: string;
  /** The data of the event: any JSON value, or `rawJson(text)`. Default null. */
  readonly data?: unknown;
  /**
   * The id of the event's message; if absent, the publisher makes one. If several events have the same id, only the
   * first is stored and published.
   */
  readonly messageId?: string;
};

/** The relay's answer to an event that it has stored. A stored event is not always published. */
export type PublishReceipt = {
  readonly messageId: string;
  readonly retained: boolean;
  /**
   * Whether a message with this id was stored before. If so, `published` and `refusedBy` say nothing about that
   * message.
   */
  readonly duplicate: boolean;
  readonly published: boolean;
  /**
   * The rule by which the event was not published: `stream`, `owner`, `name` or `allowlist`. Null if it was published
   * or is a duplicate.
   */
  readonly refusedBy: string | null;
};

export interface SiteEventPublisher {
  /**
   * Publishes one event to the site's viewers, as the runtime's client and with the runtime's token. If the connection
   * breaks, the event is sent again with the same message id. Rejects with HostError, with the signal's reason, or with
   * TypeError if `data` is not JSON.
   */
  publish(event: NewSiteEvent, options?: { readonly signal?: AbortSignal | undefined }): Promise<PublishReceipt>;
}

/** The time limit for publishing an event, in milliseconds. */
const BUDGET_MS = 5_000;

/**
 * The optional members of all senders of HTTP requests. The required ones, `url` and `token`, come from the runtime.
 */
const [, SENDING] = REQUEST_MEMBERS;
const PUBLISHER_MEMBERS: MembersOf<PublisherOptions> = [
  { runtime: ANY, siteId: ID },
  { ...SENDING, url: BASE_URL },
];

/** Throws TypeError if the value has not the members of a runtime that the publisher uses. */
export function checkRuntime(runtime: HostRuntime): void {
  const isRuntime = typeof runtime === 'object' && runtime !== null && typeof runtime.token === 'function';
  if (!isRuntime) throw wrong('runtime', runtime, 'what createRuntime returns');
}

/** Creates a publisher of one site's events. Throws TypeError for invalid options. */
export function createSiteEventPublisher(given: PublisherOptions): SiteEventPublisher {
  checkMembers('', given, PUBLISHER_MEMBERS);
  checkRuntime(given.runtime);
  return publisherOf(given);
}

/** Creates a publisher from options that were already checked. */
export function publisherOf({ runtime, siteId, url, ...options }: PublisherOptions): SiteEventPublisher {
  const base = url ?? baseOf(runtime.url);
  return {
    async publish(event, given = {}) {
      checkMembers('event.', event, [{ name: STRING }, { data: ANY, messageId: ID }]);
      checkMembers('options.', given, [{}, { signal: SIGNAL }]);
      const { name, data = null, messageId = randomId('m-') } = event;
      const { signal } = given;
      const refused = (code: string, text: string): HostError => new HostError(code, text, { messageId });
      const json = payloadText('data', data, refused);
      requireLink(runtime, messageId);
      const { clientId, instanceId } = runtime;
      const body = writeJson({
        message_id: messageId,
        kind: 'event',
        stream_suffix: `sites/${siteId}/events`,
        client_id: clientId,
        instance_id: instanceId,
        payload: { name, data: new RawJson(json) },
      });
      const answer = await requestRelay(
        { ...options, url: base, token: () => runtime.token() },
        {
          method: 'POST',
          path: '/ingest',
          // `writeJson` returns undefined only for a value that is not JSON. An object is always JSON.
          body: body ?? '',
          budgetMs: BUDGET_MS,
          signal,
          fault: (code, message, details) => new HostError(code, message, { messageId, ...details }),
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
 * Throws HostError `runtime_disconnected` if there is no link. Without one, another instance of the client may have
 * replaced this one.
 */
function requireLink({ status }: HostRuntime, messageId: string): void {
  if (status.state === 'connected') return;
  const why = 'reason' in status ? ` (${status.reason}). ${status.message}` : '.';
  const message = `The runtime is not connected to the relay: ${status.state}${why} Nothing was sent.`;
  throw new HostError('runtime_disconnected', message, { messageId });
}

function receiptOf(messageId: string, answer: HttpAnswer): PublishReceipt {
  const { status, body } = answer;
  const first: unknown = Array.isArray(body['items']) ? body['items'][0] : null;
  const row = isRecord(first) ? first : null;
  const kept = textOf(row?.['message_id']);
  if (status >= 300 || !row || kept === null) {
    const { code, message, details } = status >= 300 ? refusalIn(answer) : badAnswer(status);
    throw new HostError(code, message, { messageId, ...details });
  }
  return {
    messageId: kept,
    retained: row['retained'] === true,
    duplicate: row['duplicate'] === true,
    published: row['published'] === true,
    refusedBy: textOf(row['refused_by']),
  };
}

/**
 * The error of a request that did not reach the relay, or that the relay refused. `code` is one of callboard's codes
 * (`stale_instance`, `forbidden`, ...), or:
 *
 * - `runtime_disconnected`: the runtime has no link and nothing was sent, or the relay did not answer a registration in
 * time (`startCooperativeSiteControlServer`).
 * - `unreachable`: the relay could not be reached, or its answer did not arrive. The event may have been stored:
 * publish it again with the same `messageId`, so that the relay stores it only once.
 * - `bad_answer`: the response does not come from a relay.
 */
export class HostError extends LibraryError {
  /** The event that the error is about; null if it is about none. */
  readonly messageId: string | null;

  constructor(code: string, message: string, details: HostErrorDetails = {}) {
    super('HostError', code, message, details);
    this.messageId = details.messageId ?? null;
  }
}

export type HostErrorDetails = LibraryErrorDetails & { readonly messageId?: string };
