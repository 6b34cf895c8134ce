/**
 * The WebSocket close codes of a link, 4400 to 4499. `reconnect` tells the client what to do:
 * `yes`: reconnect with jitter. `renew`: reconnect only with a token other than the one that the relay refused.
 * `no`: do not reconnect. `bye` says `reconnect: true` only for `yes`, because in the other two cases an unchanged
 * reconnect would fail in the same way.
 */
export const CLOSE = {
  protocol_error: { code: 4400, reconnect: 'no' },
  unauthenticated: { code: 4401, reconnect: 'renew' },
  forbidden: { code: 4403, reconnect: 'no' },
  hello_timeout: { code: 4408, reconnect: 'yes' },
  replaced: { code: 4409, reconnect: 'no' },
  node_lost: { code: 4410, reconnect: 'yes' },
  frame_too_large: { code: 4413, reconnect: 'yes' },
  rate_limited: { code: 4429, reconnect: 'yes' },
  back_pressure: { code: 4430, reconnect: 'yes' },
  share_exceeded: { code: 4431, reconnect: 'yes' },
  store_full: { code: 4432, reconnect: 'yes' },
  heartbeat_lost: { code: 4440, reconnect: 'yes' },
  draining: { code: 4450, reconnect: 'yes' },
  operator: { code: 4451, reconnect: 'yes' },
  internal: { code: 4490, reconnect: 'yes' },
} as const satisfies Record<string, { readonly code: number; readonly reconnect: 'yes' | 'renew' | 'no' }>;

export type CloseReason = keyof typeof CLOSE;

const BY_CODE = new Map<number, CloseReason>(
  Object.entries(CLOSE).map(([reason, row]) => [row.code, reason as CloseReason]),
);

/**
 * Returns the reason that a close code stands for. Undefined for a code that is not in the table; a client then
 * reconnects, as after any lost socket.
 */
export function closeReasonOf(code: number): CloseReason | undefined {
  return BY_CODE.get(code);
}
