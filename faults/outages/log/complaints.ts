/** Reads the errors that the relays wrote to their logs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logged } from './events.ts';

const LOSS = 'this node lost what it held';

/**
 * Returns the errors in the relays' logs that the judge considers. Their times are converted to the clock of the other
 * logs, exact to some milliseconds.
 */
export function readComplaints(folder: string): readonly Logged[] {
  const wallToMonotonic = Number(process.hrtime.bigint()) - Date.now() * 1e6;
  return readdirSync(folder)
    .filter((name) => name.endsWith('.err'))
    .flatMap((name) => {
      const [proc = '', boot = ''] = name.split('.');
      const lines = readFileSync(join(folder, name), 'utf8').split('\n');
      return lines.flatMap((line, index) => {
        const loss = lossOf(line);
        if (loss === null) return [];
        const at = loss.wallMs * 1e6 + wallToMonotonic;
        return [{ proc, boot, seq: index + 1, at, event: 'lost', of: proc, cause: loss.cause } as const];
      });
    });
}

function lossOf(line: string): { readonly wallMs: number; readonly cause: string } | null {
  if (!line.includes(LOSS)) return null;
  try {
    const { time, cause } = JSON.parse(line);
    return { wallMs: Date.parse(time), cause: String(cause) };
  } catch {
    // The relay was killed while it wrote this line.
    return null;
  }
}
