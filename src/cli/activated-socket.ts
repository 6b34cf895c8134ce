/** Finds the listening socket that a service manager such as systemd passes to the process. */
import { UsageError } from './io.ts';

/** The number of the first file descriptor that a service manager passes. systemd's sd_listen_fds defines it. */
const FIRST_FD = 3;

/**
 * Returns the file descriptor of the listening socket that a service manager such as systemd passed to this process.
 * LISTEN_PID and LISTEN_FDS describe it. Returns null if none was passed. Throws UsageError if several were passed,
 * because a relay listens on one socket.
 */
export function activatedSocket(env: Readonly<Record<string, string | undefined>>, pid: number): number | null {
  const { LISTEN_PID, LISTEN_FDS } = env;
  if (LISTEN_FDS === undefined || LISTEN_PID !== String(pid)) return null;
  if (LISTEN_FDS !== '1') throw new UsageError(`LISTEN_FDS: expected 1 socket, got ${LISTEN_FDS}`);
  return FIRST_FD;
}
