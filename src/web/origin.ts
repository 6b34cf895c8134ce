/** Decides whether pages of an origin may use the relay, and logs refusals. */
import type { Clock, Log } from '../core/ports.ts';
import { LineLimit } from '../core/rates.ts';
import { ownOrigins, type ProxyTrust } from './forwarded.ts';
import type { HttpRequest } from './request.ts';

export type OriginRule = {
  /**
   * The allowed origins besides the relay's own, as browsers send them (`https://app.example`). Null: only the relay's
   * own origin is allowed.
   */
  readonly allowedOrigins: readonly string[] | null;
  /** Which proxies' forwarding headers are trusted. */
  readonly trustProxy: ProxyTrust;
};

/** Why a request was refused before it was authenticated. */
export type RefusalReason =
  | 'foreign_origin'
  | 'proxy_not_trusted'
  | 'proxies_not_counted'
  | 'cross_site'
  | 'host'
  | 'subprotocol'
  | 'handshake'
  | 'draining'
  | 'too_many_sockets';

type OriginRefusal = { readonly reason: RefusalReason; readonly detail: string };

/** The maximum number of characters of an origin that an error message repeats. */
const ORIGIN_SHOWN = 200;

/**
 * Returns why requests from pages of this origin are refused, and which setting would allow them; null if they are
 * allowed. Pages cannot forge `Origin`. Browsers always send it with a WebSocket handshake, so a handshake without it
 * does not come from a browser. The request's origin is parsed before it is compared with the relay's own origin. It is
 * compared with `allowedOrigins` as exact text, so the origin `null`, suffixes, other ports and other spellings are
 * refused unless they are listed.
 */
export function originRefusal(request: HttpRequest, rule: OriginRule): OriginRefusal | null {
  const { origin } = request.headers;
  if (origin === undefined || rule.allowedOrigins?.includes(origin)) return null;
  if (isOwn(request, rule.trustProxy)) return null;
  const refused = `Pages of the origin ${JSON.stringify(shownOrigin(request))} are not allowed.`;
  if (!rule.trustProxy && isOwn(request, true)) {
    const detail = `${refused} A proxy forwarded the request: set TRUST_PROXY if the relay is reachable through it only.`;
    return { reason: 'proxy_not_trusted', detail };
  }
  if (typeof rule.trustProxy === 'number' && rule.trustProxy > 0 && isOwn(request, true)) {
    const detail = `${refused} More proxies forwarded the request than TRUST_PROXY counts.`;
    return { reason: 'proxies_not_counted', detail };
  }
  const detail = `${refused} ALLOWED_ORIGINS lists the origins besides the relay’s own.`;
  return { reason: 'foreign_origin', detail };
}

function isOwn(request: HttpRequest, trust: ProxyTrust): boolean {
  const origin = URL.parse(request.headers.origin ?? '')?.origin;
  return origin !== undefined && ownOrigins(request, trust).includes(origin);
}

/**
 * Returns the request's origin for a message, cut to ORIGIN_SHOWN characters; an empty text if the request has none.
 */
function shownOrigin({ headers: { origin = '' } }: HttpRequest): string {
  return origin.slice(0, ORIGIN_SHOWN);
}

/** The rate at which refusals for one reason are logged. The next line states how many lines were suppressed. */
const LINES = { perSecond: 1, burst: 5 };

/** Logs refused requests and upgrades. The rate is limited for each reason separately. */
export type RefusalLog = (request: HttpRequest, about: { reason: RefusalReason; address: string }) => void;

export function createRefusalLog({ clock, log }: { readonly clock: Clock; readonly log: Log }): RefusalLog {
  const limits = new Map<RefusalReason, LineLimit>();
  return (request, { reason, address }) => {
    const limit = limits.get(reason) ?? new LineLimit(clock, LINES);
    limits.set(reason, limit);
    const origin = request.headers.origin === undefined ? null : shownOrigin(request);
    limit.pass({ reason, origin, address }, (fields) => log.warn(fields, 'a request was refused'));
  };
}
