/** Reads the errors in the relays' own logs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logged } from './events.ts';

/**
 * The message of a node that lost its data or its lease, and that of a start on a data directory with missing records.
 */
const [LOSS, START_LOSS] = ['this node lost what it held', 'records are missing'];
/** The messages of a relay that lost its lease or a partition. */
const FENCED = [
  { text: 'the lease of this relay ended before it was renewed', what: 'lease' },
  { text: 'another relay owns a partition that was of this one', what: 'partition' },
] as const;

/**
 * Returns those errors in the relays' logs that the judge needs. Their times are converted to the clock of the other
 * logs, with an accuracy of some milliseconds.
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
        const { wallMs, ...event } = loss;
        const at = wallMs * 1e6 + wallToMonotonic;
        return [{ proc, boot, seq: index + 1, at, of: proc, ...event } as const];
      });
    });
}

type Complaint =
  | { readonly event: 'lost'; readonly cause: string }
  | { readonly event: 'fenced'; readonly what: 'lease' | 'partition' };

function lossOf(line: string): (Complaint & { readonly wallMs: number }) | null {
  const fenced = FENCED.find(({ text }) => line.includes(text));
  if (!fenced && !line.includes(LOSS) && !line.includes(START_LOSS)) return null;
  try {
    const { time, cause = 'store_lost' } = JSON.parse(line);
    const wallMs = Date.parse(time);
    return fenced ? { event: 'fenced', wallMs, what: fenced.what } : { event: 'lost', wallMs, cause: String(cause) };
  } catch {
    // The relay was killed while it was writing this line.
    return null;
  }
}
