/**
 * The lease of a process, which keeps other processes from claiming its partitions. Each renewal reads which processes
 * are alive and which process owns each partition.
 *
 * All processes read all leases, so the text of a lease is short. The report of a process about its node is a separate
 * key, which others read on demand.
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
  /** The number of partitions, including the audit's. */
  readonly partitions: number;
  /** Whether this process may own partitions. */
  readonly claims: boolean;
};

/**
 * The content of a lease: whether its process may own partitions, the number of the renewal, the address of its relay
 * (null if it has none or accepts no links), and the time of the process's last report (null if it has made none).
 */
type LeaseFields = {
  readonly claims: boolean;
  readonly number: number;
  readonly address: string | null;
  readonly reportedAt: number | null;
};

/** The report of a process about its node, with its time in epoch milliseconds. */
type LeaseReport = { readonly text: string; readonly at: number };

/**
 * Reads the text of a lease. A text of another format belongs to a living process that may not own partitions, so that
 * a process of another version does not make reading fail.
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

/** Stands for a missing address, or for the time of a missing report, in the text of a lease. */
const NONE = '-';

/**
 * The result of a renewal. `alive`: the processes with a lease, and the time of their last report (null if they have
 * made none). `claiming`: the processes that may own partitions. `addresses`: the addresses of the relays that have
 * one, by process. `fences`: by partition number. `validUntil`: the argument of `accept`.
 */
export type Renewal = {
  readonly validUntil: Validity;
  readonly alive: ReadonlyMap<string, number | null>;
  readonly claiming: readonly string[];
  readonly addresses: ReadonlyMap<string, string>;
  readonly fences: readonly (string | null)[];
  /**
   * Whether the lease had expired or was lost before this renewal, so that other processes may have treated this one as
   * dead.
   */
  readonly hasLapsed: boolean;
};

/** The end of a lease, by elapsed time and by the wall clock of this machine. */
type Validity = { readonly elapsed: number; readonly wall: number };

export class Lease {
  readonly #options: LeaseOptions;
  #validUntil: Validity = { elapsed: -Infinity, wall: -Infinity };
  /** Since when the process has held the lease without interruption, by elapsed time; null if it never held it. */
  #heldSince: number | null = null;
  /**
   * The number of the last renewal that was sent (`#number`), and of the last one that Redis has answered
   * (`#answered`).
   */
  #number = 0;
  #answered = 0;
  /** The last report of this process about its node; null if it has made none. */
  report: LeaseReport | null = null;
  /** The last report that was written to Redis. */
  #written: LeaseReport | null = null;
  /** The address at which clients reach the relay of this process, without spaces; null if there is none. */
  address: string | null = null;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /**
   * Whether the lease is certainly valid. Both clocks must say so, because one of them may have stopped or been
   * changed.
   */
  get isValid(): boolean {
    const { clock } = this.#options;
    return clock.monotonic() < this.#validUntil.elapsed && clock.now() < this.#validUntil.wall;
  }

  /** How long this process has held the lease without interruption, in milliseconds; 0 if it does not hold it. */
  get heldMs(): number {
    return this.#heldSince === null || !this.isValid ? 0 : this.#options.clock.monotonic() - this.#heldSince;
  }

  /**
   * Whether a process without a lease is certainly dead. After Redis has lost leases, every living process needs one
   * lease period to renew its own.
   */
  get showsDeaths(): boolean {
    return this.heldMs >= this.#options.leaseMs;
  }

  /**
   * Renews the lease, and reads who owns the partitions. Rejects if Redis does not answer; the present lease is not
   * affected by that.
   */
  async renew(): Promise<Renewal> {
    const { client, keys, clock, leaseMs, process, claims } = this.#options;
    const number = ++this.#number;
    const { address, report } = this;
    const text = leaseText({ claims, number, address, reportedAt: report?.at ?? null });
    const wasValid = this.isValid;
    const [elapsed, wall] = [clock.monotonic(), clock.now()];
    // The report outlives the lease, so that a dead process stays listed for a while with its last report.
    const kept = report === this.#written ? null : report && { text: report.text, ms: NODE_GONE_MS + 2 * leaseMs };
    const renewals = Array.from({ length: keys.division.groups }, (_, group) => {
      const { live, processes, report: key } = keys.ofGroup(group);
      const lease = { live, text, leaseMs, process };
      if (group > 0) return renewLease(client, lease);
      return renewLease(client, { ...lease, processes, report: kept && { ...kept, key: key(process) } });
    });
    const renewed = await Promise.all(renewals);
    this.#written = report;
    // If Redis has no lease of this process, or an older one, Redis has lost data, perhaps leases of other processes
    // too.
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
    // Redis may have set the expiry as early as the request was sent, so the lease is counted from then.
    const validUntil = { elapsed: elapsed + leaseMs, wall: wall + leaseMs };
    return { validUntil, hasLapsed, alive, claiming, addresses, fences: await this.#readFences() };
  }

  /** Makes a renewal count. Call it after this process has noted which partitions it no longer owns. */
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

  /**
   * Returns the last report of each of these processes; null for a process without a report. Rejects if Redis does not
   * answer.
   */
  async reportsOf(processes: readonly string[]): Promise<readonly (string | null)[]> {
    if (processes.length === 0) return [];
    const { report } = this.#options.keys.ofGroup(0);
    return this.#options.client.mget(processes.map(report));
  }

  /** Ends the lease at once, so that other processes need not wait until it expires. */
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
