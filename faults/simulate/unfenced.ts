/** Judges that simulated relays keep their leases and partitions unless a fault takes them away. */
import type { Log } from '../../src/core/ports.ts';

/** What a relay logs that could not keep its lease or a partition. */
const FENCED: readonly string[] = [
  'the lease of this relay ended before it was renewed',
  'another relay owns a partition that was of this one',
];
/** The faults that stop one relay, keep it from the log service, or step its clock. */
const OF_ONE: ReadonlySet<string> = new Set(['pause', 'closed', 'silent', 'clock']);
/** The faults of the log service. */
const OF_ALL: ReadonlySet<string> = new Set(['stop', 'failover', 'loss']);
/** How long after a fault a relay may notice what it has lost, in milliseconds: 1.5 leases, and a look. */
const NOTICED_MS = 6_000;

export class FenceJudge {
  readonly #now: () => number;
  readonly #faults: { readonly relay: string | null; readonly from: number; readonly to: number }[] = [];
  readonly #found: string[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes a fault that begins now. `relay`: the one that it hits. */
  noteFault(kind: string, relay: string, forMs: number): void {
    if (!OF_ONE.has(kind) && !OF_ALL.has(kind)) return;
    const from = this.#now();
    this.#faults.push({ relay: OF_ALL.has(kind) ? null : relay, from, to: from + forMs + NOTICED_MS });
  }

  /** The log of a relay, of which this notes what it lost without a fault. */
  watching(log: Log, relay: string): Log {
    return {
      ...log,
      warn: (fields, text) => {
        log.warn(fields, text);
        const now = this.#now();
        const isExplained = this.#faults.some(
          (fault) => (fault.relay === null || fault.relay === relay) && fault.from <= now && now <= fault.to,
        );
        if (FENCED.includes(text) && !isExplained) this.#found.push(`${relay} at ${now}, without a fault: ${text}`);
      },
    };
  }

  judge(): readonly string[] {
    return this.#found;
  }
}
