/** Charges request bodies to the inbound byte rate of a user, before they are read. */
import type { IncomingMessage } from 'node:http';
import type { Principal } from '../core/auth/principal.ts';
import { fail } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ByteRate, ByteRates } from '../core/shares/byte-rate.ts';

/**
 * Returns the byte rate to which a request body is charged. A user has a rate of their own. A grant is charged to the
 * owner of its session. Null for an administrator, who is not limited, and for a request without a token.
 */
export function rateOf(rates: ByteRates, requester: Principal | null): ByteRate | null {
  if (requester === null || requester.kind === 'admin') return null;
  return rates.of(requester.kind === 'user' ? requester.userId : requester.ownerId);
}

/**
 * Charges the Content-Length of a body before the body is read. Throws `share_exceeded` (share `inbound`) while the
 * rate is used up, and then charges nothing. A length above `maxBytes` is not charged, because `readBody` refuses it.
 */
export function admitBody(rate: ByteRate, { headers }: IncomingMessage, { maxBytes, metrics }: AdmitOptions): void {
  const announced = Number(headers['content-length'] ?? 0);
  const retryAfterMs = rate.admit(announced <= maxBytes ? announced : 0);
  if (retryAfterMs === 0) return;
  metrics.count('inbound_limited', 'http');
  fail('share_exceeded', 'This user sends more bytes per second than the relay accepts.', {
    share: 'inbound',
    retryAfterMs,
  });
}

export type AdmitOptions = { readonly maxBytes: number; readonly metrics: Metrics };
