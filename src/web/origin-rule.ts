/** Decides whether pages of an origin may use the relay. */
import type { IncomingMessage } from 'node:http';

export type OriginRule = {
  /**
   * The allowed origins besides the relay's own, each as a browser sends it (`https://app.example`). Null: only the
   * relay's own.
   */
  readonly allowedOrigins: readonly string[] | null;
  /** Whether to trust the forwarding headers of a proxy (X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host). */
  readonly trustProxy: boolean;
};

/** The most characters of an origin that a message repeats. */
const ORIGIN_SHOWN = 200;

/**
 * Whether the request's origin is allowed. Pages cannot forge `Origin`. Browsers always send it with a WebSocket
 * handshake, so a handshake without it does not come from a browser. The comparison is an exact text match: `null`,
 * suffixes, other ports and other spellings are all foreign.
 */
export function originAllowed(request: IncomingMessage, rule: OriginRule): boolean {
  const { origin } = request.headers;
  if (origin === undefined) return true;
  return origin === ownOrigin(request, rule.trustProxy) || (rule.allowedOrigins?.includes(origin) ?? false);
}

/**
 * Returns why an origin is refused, and the setting that would allow it: TRUST_PROXY where a proxy's headers name the
 * relay's own origin, ALLOWED_ORIGINS otherwise.
 */
export function foreignOrigin(request: IncomingMessage, rule: OriginRule): string {
  const { origin = '' } = request.headers;
  const refused = `Pages of the origin ${JSON.stringify(origin.slice(0, ORIGIN_SHOWN))} are not allowed.`;
  if (!rule.trustProxy && origin === ownOrigin(request, true))
    return `${refused} A proxy forwarded the request: set TRUST_PROXY if the relay is reachable through it only.`;
  return `${refused} ALLOWED_ORIGINS lists the origins besides the relay’s own.`;
}

function ownOrigin(request: IncomingMessage, trustProxy: boolean): string | null {
  const encrypted = 'encrypted' in request.socket && request.socket.encrypted === true;
  const scheme = (trustProxy ? first(request.headers['x-forwarded-proto']) : null) ?? (encrypted ? 'https' : 'http');
  const host = (trustProxy ? first(request.headers['x-forwarded-host']) : null) ?? request.headers.host;
  return host ? `${scheme}://${host}` : null;
}

/**
 * Returns the first value of a header to which each proxy appends one. The first value is that of the browser's
 * request.
 */
function first(header: string | string[] | undefined): string | null {
  const text = Array.isArray(header) ? header[0] : header;
  return text?.split(',')[0]?.trim() || null;
}
