/**
 * The lease of a process: while others see it, they claim nothing of what the process owns. Each renewal reads which
 * processes are alive and who owns the partitions. All processes read all leases, so their texts are short; what a
 * process reports of its node is a text of its own, which others read on demand.
 */
import { NODE_GONE_MS } from '../../core/limits.ts';
import type { Clock } from '../../core/ports.ts';
import type { Client } from '../redis/client.ts';
import type { Keys } from './keys.ts';
import { renewLease } from './scripts.ts';

type LeaseOptions = {
  readonly process: string;
  readonly client: Client;
  readonly keys: Keys;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The length of the lease, in milliseconds. */
  readonly leaseMs: number;
  /** The number of partitions with that of the audit. */
  readonly partitions: number;
  /** Whether this process may own partitions. */
  readonly claims: boolean;
};

/**
 * What the text of a lease says: whether its process may own partitions, the number of the renewal, the address of its
 * relay (null: it has none, or takes no links), and when the process made its last report (null: it has made none).
 */
type LeaseFields = {
  readonly claims: boolean;
  readonly number: number;
  readonly address: string | null;
  readonly reportedAt: number | null;
};

/** What a process reports of its node, and when. */
type LeaseReport = { readonly text: string; readonly at: number };

/**
 * Reads the text of a lease. A text of another form is that of a process which lives and may own nothing: it must not
 * keep the others from their leases.
 */
function readLease(text: string): LeaseFields {
  const [, sign, number, address = NONE, reportedAt = NONE] = /^([+-])(\d+) (\S+) (\d+|-)$/.exec(text) ?? [];
  return {
    claims: sign === '+',
    number: Number(number ?? 0),
    address: address === NONE ? null : address,
    reportedAt: reportedAt === NONE ? null : Number(reportedAt),
  };
}

function leaseText({ claims, number, address, reportedAt }: LeaseFields): string {
  return `${claims ? '+' : '-'}${number} ${address ?? NONE} ${reportedAt ?? NONE}`;
}

/** Stands in the text of a lease for an address, or for the time of a report. */
const NONE = '-';

/**
 * What a renewal has read. `alive`: the processes with a lease, and when they reported (null: they have not yet).
 * `claiming`: those that may own partitions. `addresses`: of those whose relays have one. `fences`: by partition. `validUntil`: see `accept`.
 */
export type Renewal = {
  readonly validUntil: Validity;
  readonly alive: ReadonlyMap<string, number | null>;
  readonly claiming: readonly string[];
  readonly addresses: ReadonlyMap<string, string>;
  readonly fences: readonly (string | null)[];
  /** Whether the lease had run out, or was lost: others may have counted this process as dead. */
  readonly hasLapsed: boolean;
};

/** The times until which a process has the lease by its elapsed time and by its wall clock. */
type Validity = { readonly elapsed: number; readonly wall: number };

export class Lease {
  readonly #options: LeaseOptions;
  #validUntil: Validity = { elapsed: -Infinity, wall: -Infinity };
  /** Since when the process has the lease without a break. */
  #heldSince: number | null = null;
  /** The number of the last renewal, and of the last one that Redis has answered. */
  #number = 0;
  #answered = 0;
  /** What this process reports of its node; null: nothing yet. */
  report: LeaseReport | null = null;
  /** The report that Redis has. */
  #written: LeaseReport | null = null;
  /** The address at which clients reach the relay of this process, without spaces; null: there is none. */
  address: string | null = null;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Whether the lease is valid for certain, whatever a clock of this machine did meanwhile. */
  get isValid(): boolean {
    const { clock } = this.#options;
    return clock.monotonic() < this.#validUntil.elapsed && clock.now() < this.#validUntil.wall;
  }

  /** For how long this process has had the lease without a break, in milliseconds; 0: it has none. */
  get heldMs(): number {
    return this.#heldSince === null || !this.isValid ? 0 : this.#options.clock.monotonic() - this.#heldSince;
  }

  /** Whether those without a lease are dead: each living process had the time to renew its own since Redis lost any. */
  get showsDeaths(): boolean {
    return this.heldMs >= this.#options.leaseMs;
  }

  /**
   * Renews the lease, and reads who owns the partitions. Rejects if Redis does not answer; then the lease ends as it would
   * have.
   */
  async renew(): Promise<Renewal> {
    const { client, keys, clock, leaseMs, process, claims } = this.#options;
    const number = ++this.#number;
    const { address, report } = this;
    const text = leaseText({ claims, number, address, reportedAt: report?.at ?? null });
    const wasValid = this.isValid;
    const [elapsed, wall] = [clock.monotonic(), clock.now()];
    // A dead process stays listed for a while, as it last reported.
    const kept = report === this.#written ? null : report && { text: report.text, ms: NODE_GONE_MS + 2 * leaseMs };
    const renewals = Array.from({ length: keys.division.groups }, (_, group) => {
      const { live, processes, report: key } = keys.ofGroup(group);
      const lease = { live, text, leaseMs, process };
      if (group > 0) return renewLease(client, lease);
      return renewLease(client, { ...lease, processes, report: kept && { ...kept, key: key(process) } });
    });
    const renewed = await Promise.all(renewals);
    this.#written = report;
    // Redis has lost a lease that should be there and is not, or is an older one, and may have lost those of others.
    const isLost = renewed.some(({ before }) => before === null || readLease(before).number < this.#answered);
    const hasLapsed = this.#heldSince !== null && (!wasValid || isLost);
    if (hasLapsed || this.#heldSince === null) this.#heldSince = elapsed;
    this.#answered = number;
    const leases = new Map((renewed[0]?.leases ?? []).map(([name, found]) => [name, readLease(found)]));
    const alive = new Map([...leases].map(([name, { reportedAt }]) => [name, reportedAt]));
    const claiming = [...leases].flatMap(([name, lease]) => (lease.claims ? [name] : []));
    const addresses = new Map(
      [...leases].flatMap(([name, { address }]) => (address === null ? [] : [[name, address] as const])),
    );
    // The lease began when it was requested, at the latest.
    const validUntil = { elapsed: elapsed + leaseMs, wall: wall + leaseMs };
    return { validUntil, hasLapsed, alive, claiming, addresses, fences: await this.#readFences() };
  }

  /** Counts a renewal: called once this process has noted what it does not own any more. */
  accept({ validUntil }: Renewal): void {
    this.#validUntil = validUntil;
  }

  /** Returns the processes that are alive. */
  async living(): Promise<readonly string[]> {
    const { client, keys } = this.#options;
    const { processes, live } = keys.ofGroup(0);
    const named = await client.smembers(processes);
    const leases = named.length === 0 ? [] : await client.mget(named.map(live));
    return named.filter((_, i) => typeof leases[i] === 'string');
  }

  /** Returns what these processes reported last; null: nothing is kept of a process. Rejects if Redis does not answer. */
  async reportsOf(processes: readonly string[]): Promise<readonly (string | null)[]> {
    if (processes.length === 0) return [];
    const { report } = this.#options.keys.ofGroup(0);
    return this.#options.client.mget(processes.map(report));
  }

  /** Ends the lease, so that others need not wait for it. */
  async end(): Promise<void> {
    const { client, keys, process } = this.#options;
    this.#validUntil = { elapsed: -Infinity, wall: -Infinity };
    const groups = Array.from({ length: keys.division.groups }, (_, group) => keys.ofGroup(group));
    await Promise.all(groups.map(({ live }) => client.del(live(process))));
    const { processes, report } = keys.ofGroup(0);
    await client.srem(processes, process);
    await client.del(report(process));
  }

  async #readFences(): Promise<readonly (string | null)[]> {
    const { client, keys, partitions } = this.#options;
    const numbers = Array.from({ length: partitions }, (_, partition) => partition);
    const fences: (string | null)[] = numbers.map(() => null);
    const groups = Map.groupBy(numbers, (partition) => keys.groupOf(partition));
    const read = async (group: readonly number[]): Promise<void> => {
      const found = await client.mget(group.map((partition) => keys.of(partition).fence));
      group.forEach((partition, i) => (fences[partition] = found[i] ?? null));
    };
    await Promise.all([...groups.values()].map(read));
    return fences;
  }
}
