/** Decides which of two links of a client is newer, even if the store learns of them in the wrong order. */
import { fail } from '../errors.ts';
import type { Connection } from './connection.ts';

type HelloOrder = Pick<Connection, 'instanceId' | 'linkAttempt' | 'helloAt'>;

/** The longest time that a hello waits until the owner of its user answers, plus a margin, in milliseconds. */
const HELLO_WAIT_MS = 30_000;

/**
 * Whether a hello is older than the link in the client's row. If both are of the same instance, the one with the higher
 * attempt is newer. If they are of two instances, the one whose hello a relay read later is newer: the hello of an
 * ended program may have waited for the store while the next instance connected.
 */
export function isOlderHello(
  { instanceId, linkAttempt = Infinity, helloAt = Infinity }: HelloOrder,
  previous: HelloOrder | null,
): boolean {
  if (previous === null) return false;
  if (previous.instanceId === instanceId) return linkAttempt < (previous.linkAttempt ?? 0);
  const ms = (previous.helloAt ?? -Infinity) - helloAt;
  // No hello waits longer than HELLO_WAIT_MS. A greater difference comes from clocks that differ.
  return ms > 0 && ms <= HELLO_WAIT_MS;
}

/** Throws the error for a hello that is older than the client's present link. */
export function refuseOlderHello(): never {
  return fail('stale_instance', 'A later link of this client is open, or was.');
}
