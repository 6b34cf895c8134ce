/**
 * Relays of a test that own partitions of memory: each has a routed backend, and a partition can move from one relay to
 * another with all that it holds.
 */
import type { Backend } from '../../../src/core/backend.ts';
import type { MailboxRow } from '../../../src/core/commands/node-store.ts';
import { RETENTION_MS, TERMINAL_MS } from '../../../src/core/limits.ts';
import { silentLog, type Cancel, type Clock } from '../../../src/core/ports.ts';
import { createShares } from '../../../src/core/shares/shares.ts';
import { createMemoryBus } from '../../../src/backends/memory/bus.ts';
import { createMemoryState, type MemoryOptions } from '../../../src/backends/memory/backend.ts';
import { Mailboxes } from '../../../src/backends/memory/commands.ts';
import { decode, encode } from '../../../src/backends/owned/encoding.ts';
import type { Owner, OwnerTable } from '../../../src/backends/owned/owners.ts';
import { createPlacement } from '../../../src/backends/owned/placement.ts';
import { createRoutedBackend } from '../../../src/backends/owned/routed.ts';
import type { OwnStores, PartitionStores } from '../../../src/backends/owned/routes.ts';
import type { Transport } from '../../../src/backends/owned/transport.ts';
import { createCrypto } from '../../../src/platform/system.ts';

/** The mailboxes of a partition: what is posted to a node goes to its process, as text. */
export class SentMailboxes extends Mailboxes {
  readonly #send: (nodeId: string, text: string) => boolean;

  constructor(send: (nodeId: string, text: string) => boolean) {
    super();
    this.#send = send;
  }

  override post(nodeId: string, row: MailboxRow): boolean {
    return this.#send(nodeId, encode(row));
  }
}

export type RelaysOptions = {
  /** The clock of the stores, and that of the requests. */
  readonly clock: Clock;
  readonly requestClock: Clock;
  readonly partitions: number;
  readonly join: (process: string) => Transport;
  /** Delivers the text of a row to a node's process, late, in the order posted. */
  readonly mail: (nodeId: string, deliver: () => void) => void;
  readonly memory?: Partial<MemoryOptions>;
  /** The admission scope of a user; absent: the user's own. */
  readonly scopeOf?: (userId: string) => string;
};

/** Several relays, with the partitions that they own. */
export class Relays {
  readonly #options: RelaysOptions;
  /** What users hold in all partitions: a share is one for all partitions of a process. */
  readonly #shares = createShares();
  readonly #nodes = new Mailboxes();
  readonly #own: OwnStores;
  readonly #stores: readonly PartitionStores[];
  readonly #owners = new Map<number, Owner>();
  readonly #watchers = new Map<string, Set<(partition: number) => void>>();
  readonly placement;
  /** The partitions that a relay was told to doubt the owner of. */
  readonly doubted: number[] = [];
  /** Whether what relays read in their own partitions counts now. */
  mayAnswer = true;
  /** How often relays have lost a partition. */
  losses = 0;
  /** Whether Redis takes its time to record what relays change. */
  recordsLate = false;
  /** What waits for its record, while relays may not answer or Redis takes its time. */
  readonly unrecorded: { readonly run: () => void; readonly holder: { destroy(): void } | undefined }[] = [];
  #answering: (() => void)[] = [];
  /** Whether what relays change is a fact of the log. */
  recordsChanges = false;
  #decided = 0;

  constructor(options: RelaysOptions) {
    this.#options = options;
    const { partitions, scopeOf = (userId) => userId } = options;
    this.placement = createPlacement(partitions, scopeOf);
    const { nodes, ...bare } = this.#memory(this.#nodes);
    this.#own = {
      nodes: { ...nodes, post: (nodeId, row) => this.#post(nodeId, encode(row)) },
      connections: {},
      dedup: { backend: bare.dedup.backend },
      audit: {},
      pauses: { deciderOf: () => null },
      bus: createMemoryBus(silentLog),
    };
    // One more partition has the audit.
    this.#stores = Array.from({ length: partitions + 1 }, () =>
      this.#memory(new SentMailboxes((nodeId, text) => this.#post(nodeId, text))),
    );
  }

  /** What relays read counts again. */
  answer(): void {
    this.mayAnswer = true;
    for (const run of this.#answering.splice(0)) run();
  }

  /** Opens the routed backend of a relay, which owns nothing yet. */
  open(process: string): Backend {
    const { clock, requestClock, join, memory } = this.#options;
    const watchers = new Set<(partition: number) => void>();
    this.#watchers.set(process, watchers);
    const mayAnswer = (): boolean => this.mayAnswer;
    const losses = (): number => this.losses;
    const owners: OwnerTable = {
      local: (partition) => this.#storesOf(partition, process),
      get mayAnswer() {
        return mayAnswer();
      },
      get losses() {
        return losses();
      },
      // What is changed is a fact, as each act says by its next number.
      decided: () => (this.recordsChanges ? ++this.#decided : 0),
      answerable: () => new Promise((resolve) => this.#answering.push(resolve)),
      ownerOf: (partition) => this.#owners.get(partition) ?? null,
      onMove(run): Cancel {
        watchers.add(run);
        return () => void watchers.delete(run);
      },
      doubt: (partition) => void this.doubted.push(partition),
    };
    return createRoutedBackend({
      placement: this.placement,
      owners,
      transport: join(process),
      clock: {
        now: () => clock.now(),
        monotonic: () => requestClock.monotonic(),
        after: (ms, run) => requestClock.after(ms, run),
        every: (ms, run) => requestClock.every(ms, run),
      },
      log: silentLog,
      sha256: createCrypto('test').sha256,
      own: this.#own,
      members: {
        capabilities: { shared: true, allWaits: true, exactDedupCounters: true, cheapStreamSummaries: true },
        onRecord: (run, holder) =>
          this.mayAnswer && !this.recordsLate ? run() : void this.unrecorded.push({ run, holder }),
        ready() {},
        close() {},
      },
      windowMs: memory?.idempotencyWindowMs ?? TERMINAL_MS,
      retentionMs: memory?.history?.retentionMs ?? RETENTION_MS,
      permitMs: Infinity,
      quietMs: 0,
    });
  }

  /** Gives a partition to a relay, and tells all relays. Null: nobody owns it. */
  give(partition: number, process: string | null): void {
    if (process === null) this.#owners.delete(partition);
    else this.#owners.set(partition, { process, nodeId: `node-${process}` });
    for (const watchers of this.#watchers.values()) for (const run of watchers) run(partition);
  }

  /** Gives all partitions to these relays, in turn. */
  giveAll(processes: readonly string[]): void {
    for (const partition of this.#stores.keys()) this.give(partition, processes[partition % processes.length] ?? null);
  }

  /** Delivers a row to a node of this process. */
  receive(nodeId: string, text: string): void {
    this.#nodes.post(nodeId, decode(text) as MailboxRow);
  }

  #storesOf(partition: number, process: string): PartitionStores | null {
    return this.#owners.get(partition)?.process === process ? (this.#stores[partition] ?? null) : null;
  }

  #post(nodeId: string, text: string): boolean {
    if (!this.#nodes.has(nodeId)) return false;
    this.#options.mail(nodeId, () => this.receive(nodeId, text));
    return true;
  }

  #memory(mailboxes: Mailboxes): Backend {
    const { clock, memory } = this.#options;
    const { sha256 } = createCrypto('test');
    return createMemoryState({
      ...{ clock, log: silentLog, sha256, markSecret: 'x', shares: this.#shares, keepsAttempts: true },
      ...memory,
      mailboxes,
    }).backend;
  }
}
