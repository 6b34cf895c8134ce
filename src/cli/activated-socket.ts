/** Finds the listening socket that a service manager such as systemd passes to the process. */
import { UsageError } from './io.ts';

/** The first file descriptor that a service manager passes (sd_listen_fds). */
const FIRST_FD = 3;

/**
 * The listening socket that a service manager such as systemd passed to this process, by LISTEN_PID and LISTEN_FDS; null
 * if it passed none. Throws UsageError if it passed several, because a relay listens on one.
 */
export function activatedSocket(env: Readonly<Record<string, string | undefined>>, pid: number): number | null {
  const { LISTEN_PID, LISTEN_FDS } = env;
  if (LISTEN_FDS === undefined || LISTEN_PID !== String(pid)) return null;
  if (LISTEN_FDS !== '1') throw new UsageError(`LISTEN_FDS: expected 1 socket, got ${LISTEN_FDS}`);
  return FIRST_FD;
}
