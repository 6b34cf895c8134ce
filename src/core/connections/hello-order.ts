/** Decides which of two links of a client is the later one, in whatever order the store learns of them. */
import { fail } from '../errors.ts';
import type { Connection } from './connection.ts';

type HelloOrder = Pick<Connection, 'instanceId' | 'linkAttempt' | 'helloAt'>;

/** The longest time that a hello waits for the owner of its user, with a margin, in milliseconds. */
const HELLO_WAIT_MS = 30_000;

/**
 * Whether a hello is older than the link in the client's row. Of two links of an instance, the one with the later attempt
 * is newer. Of two instances, it is the one whose hello a relay read later: the hello of a program that has ended may
 * have waited for the store, while the next instance connected.
 */
export function isOlderHello(
  { instanceId, linkAttempt = Infinity, helloAt = Infinity }: HelloOrder,
  previous: HelloOrder | null,
): boolean {
  if (previous === null) return false;
  if (previous.instanceId === instanceId) return linkAttempt < (previous.linkAttempt ?? 0);
  const ms = (previous.helloAt ?? -Infinity) - helloAt;
  // No hello waits for longer. A greater difference is one of clocks.
  return ms > 0 && ms <= HELLO_WAIT_MS;
}

/** Throws the refusal of a hello that is older than the present link of its client. */
export function refuseOlderHello(): never {
  return fail('stale_instance', 'A later link of this client is open, or was.');
}
