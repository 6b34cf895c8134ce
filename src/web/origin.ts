/** Decides whether pages of an origin may use the relay, and logs refusals. */
import type { Clock, Log } from '../core/ports.ts';
import { LineLimit } from '../core/rates.ts';
import { ownOrigins, type ProxyTrust } from './forwarded.ts';
import type { HttpRequest } from './request.ts';

export type OriginRule = {
  /** The allowed origins besides the relay's own, as browsers send them (`https://app.example`). Null: none. */
  readonly allowedOrigins: readonly string[] | null;
  /** The proxies in front whose forwarding headers are trusted. */
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

/** The most characters of an origin that a message repeats. */
const ORIGIN_SHOWN = 200;

/**
 * Returns why a page of the request's origin is refused, and which setting would allow it; null if it is allowed. Pages
 * cannot forge `Origin`. Browsers always send it with a WebSocket handshake, so a handshake without it does not come
 * from a browser. The relay's own origin is compared as parsed, those of `allowedOrigins` as exact texts. So `null` is
 * foreign unless it is named, and so are suffixes, other ports and other spellings.
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

/** Returns the origin of a request for messages: cut, and empty if it has none. */
function shownOrigin({ headers: { origin = '' } }: HttpRequest): string {
  return origin.slice(0, ORIGIN_SHOWN);
}

/** The rate of log lines of each reason; the next line has the number of suppressed ones. */
const LINES = { perSecond: 1, burst: 5 };

/** Logs refused requests and upgrades, each reason at a rate of its own. */
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
