import type { IncomingMessage } from 'node:http';
import type { Principal } from '../core/auth/principal.ts';
import { fail } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ByteRate, ByteRates } from '../core/shares/byte-rate.ts';

/** Whose bodies are charged to which rate: a grant's to the owner of its session; an administrator's to none. */
export function rateOf(rates: ByteRates, who: Principal | null): ByteRate | null {
  if (who === null || who.kind === 'admin') return null;
  return rates.of(who.kind === 'user' ? who.userId : who.ownerId);
}

/**
 * Charges the announced length of a body before it is read. Throws `share_exceeded` (share `inbound`) while the rate is used up; nothing is
 * charged or read then. A length above `maxBytes` is refused by its reader, and charged to nobody.
 */
export function admitBody(rate: ByteRate, { headers }: IncomingMessage, { maxBytes, metrics }: AdmitOptions): void {
  const announced = Number(headers['content-length'] ?? 0);
  const retryAfterMs = rate.admit(announced <= maxBytes ? announced : 0);
  if (retryAfterMs === 0) return;
  metrics.count('inbound_limited', 'http');
  fail('share_exceeded', 'This user sends more bytes a second than the relay takes.', {
    share: 'inbound',
    retryAfterMs,
  });
}

export type AdmitOptions = { readonly maxBytes: number; readonly metrics: Metrics };
