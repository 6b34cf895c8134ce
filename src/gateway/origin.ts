import type { IncomingMessage } from 'node:http';

export type OriginRule = {
  /** Origins besides the relay's own, each as a browser writes it (`https://app.example`). Null: only its own. */
  readonly allowedOrigins: readonly string[] | null;
  /** Whether X-Forwarded-Proto and X-Forwarded-Host are a proxy's word. */
  readonly trustProxy: boolean;
};

/**
 * Whether a page may open a link. Browsers always send `Origin` and cannot forge it, so its absence means that no browser asks. Compared
 * as text, exactly: `null`, suffixes, other ports and other spellings are all foreign.
 */
export function originAllowed(request: IncomingMessage, rule: OriginRule): boolean {
  const { origin } = request.headers;
  if (origin === undefined) return true;
  return origin === ownOrigin(request, rule.trustProxy) || (rule.allowedOrigins?.includes(origin) ?? false);
}

function ownOrigin(request: IncomingMessage, trustProxy: boolean): string | null {
  const encrypted = 'encrypted' in request.socket && request.socket.encrypted === true;
  const scheme = (trustProxy ? first(request.headers['x-forwarded-proto']) : null) ?? (encrypted ? 'https' : 'http');
  const host = (trustProxy ? first(request.headers['x-forwarded-host']) : null) ?? request.headers.host;
  return host ? `${scheme}://${host}` : null;
}

/** Proxies append: the first value is what the browser asked for. */
function first(header: string | string[] | undefined): string | null {
  const text = Array.isArray(header) ? header[0] : header;
  return text?.split(',')[0]?.trim() || null;
}
