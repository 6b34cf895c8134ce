import { spawnSync } from 'node:child_process';

/** Room for what a process has open besides the connections. */
const OTHERS = 500;

/** As many of the wanted connections as one process may hold here: Node raises its own limit as far as the system's hard one. */
export function connectionsWithin(wanted: number): number {
  const hard = Number(spawnSync('sh', ['-c', 'ulimit -Hn']).stdout?.toString().trim());
  return Number.isFinite(hard) ? Math.min(wanted, hard - OTHERS) : wanted;
}
