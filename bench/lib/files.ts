/** Computes how many connections one process may open on this machine. */
import { spawnSync } from 'node:child_process';

/** The number of file descriptors that a process needs besides its connections. */
const OTHERS = 500;

/**
 * Returns how many of the wanted connections one process can hold. Node raises its own limit to the system's hard
 * limit.
 */
export function connectionsWithin(wanted: number): number {
  const hard = Number(spawnSync('sh', ['-c', 'ulimit -Hn']).stdout?.toString().trim());
  return Number.isFinite(hard) ? Math.min(wanted, hard - OTHERS) : wanted;
}
