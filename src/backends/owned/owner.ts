/** Owns partitions: renews the lease of this process, claims and gives away partitions, and tracks all owners. */
import { CallboardError } from '../../core/errors.ts';
import type { Cancel, Clock, Log } from '../../core/ports.ts';
import { isRecord, parsedJson } from '../../core/json.ts';
import type { Holder } from '../journal/gate.ts';
import { Departure } from './departure.ts';
import { nodeOf } from './fence.ts';
import { Moves, shouldOwn, type PlacementView } from './placement.ts';
import type { Lease, Renewal } from './lease.ts';
import type { Owner, OwnerTable } from './owners.ts';
import { Partition, type PartitionOptions } from './partition.ts';
import type { PartitionStores } from './routes.ts';

/** A process claims from a dead one after this many unbroken leases of its own; the dead one then knows it has none. */
const CLAIM_LEASES = 1.5;
/** After this many leases without Redis, a process sends nothing: others may have decided in its partitions. */
export const SUSPEND_LEASES = 1.5;
/**
 * The wait, in leases, before claiming a partition of which Redis lost data: another process may still have the data.
 */
const CUT_LEASES = 2;
/** How many times per lease the lease is renewed. */
const BEATS = 4;
/** How soon this process checks again whether it still owns its partitions, in milliseconds. */
const DOUBT_MS = 50;
/** How many times a process that announced itself is looked for among the living processes. */
const GREETING_LOOKS = 3;

/**
 * The notes that processes send each other. To all: `joins`, `ends`, `owns` (a process starts, ends, owns a partition),
 * `leaves` (it begins to give its partitions away; `ends` lists those `given`), `forgot` (Redis has lost data of a
 * partition for good). To one: `knows` (answers `joins`), and `follow`, `ready`, `yours`, the steps by which a
 * partition moves.
 */
type OwnerNote =
  | { readonly kind: 'joins' }
  | { readonly kind: 'leaves' }
  | { readonly kind: 'ends'; readonly given: readonly number[] }
  | { readonly kind: 'knows' }
  | { readonly kind: 'owns' | 'forgot' | 'follow' | 'ready' | 'yours'; readonly partition: number };

type OwnersOptions = Omit<PartitionOptions, 'isAlive' | 'nodes' | 'onMove' | 'onLost' | 'onForgotten' | 'memory'> & {
  /** Returns the options of the memory state of a partition. */
  readonly memory: (partition: number) => PartitionOptions['memory'];
  /** Whether this process may own partitions. */
  readonly claims: boolean;
  readonly lease: Lease;
  readonly leaseMs: number;
  /** The number of partitions, including the audit's. */
  readonly partitions: number;
  /** Sends a note to a process; null: to all. The note may be lost. */
  readonly send: (process: string | null, text: string) => void;
  /** Whether this process has room for the rows that rules need of one more partition. */
  readonly hasRoom: () => boolean;
  /** Called when a new process was seen. */
  readonly onJoined: (process: string) => void;
  /** Called when the address of another process became known. */
  readonly onAddress: (process: string) => void;
  /** Called when a process has died or ended. `reportedAt`: the time of its last report; null if it had made none. */
  readonly onGone: (process: string, reportedAt: number | null) => void;
  /** Called when others may have treated this process as dead and its links as lost, and again after one lease. */
  readonly onRevived: () => void;
  /** Called when this process has lost a partition that it decided in. */
  readonly onLost: (partition: number) => void;
  /** Called when Redis has lost data of a partition for good, no matter which process found out. */
  readonly onForgotten: (partition: number) => void;
  readonly clock: Clock;
  readonly log: Log;
};

export class Owners implements OwnerTable {
  readonly #options: OwnersOptions;
  readonly #partitions: readonly Partition[];
  readonly #moves: Moves;
  readonly #watchers = new Set<(partition: number) => void>();
  #alive: ReadonlyMap<string, number | null> = new Map();
  /** The living processes that may own partitions. */
  #claiming: readonly string[] = [];
  /** The addresses of living relays, by process. */
  #addresses: ReadonlyMap<string, string> = new Map();
  /** The living processes by node id. */
  #nodes: ReadonlyMap<string, string> = new Map();
  /** Since when each partition has had no living owner, by elapsed time. */
  readonly #orphanSince = new Map<number, number>();
  #stopBeats: Cancel | null = null;
  /** The pass over fences and leases that is in progress. */
  #looking: Promise<void> | null = null;
  readonly #knownBy = new Set<string>();
  #onKnown: (() => void) | null = null;
  #isMoving = false;
  /** The living processes that are giving away their partitions because they end. */
  readonly #leaving = new Set<string>();
  #departure: Departure | null = null;
  /** The partitions that this process has given away because it ends. */
  readonly #given: number[] = [];
  /** Resolves when the last of these handovers has ended. */
  #giving: Promise<void> = Promise.resolve();
  #hasStarted = false;
  #isClosing = false;
  /** Whether this process cannot know if it still owns its partitions. */
  #isSuspended = false;
  /** Whether another process may own a partition that this one decides in. Until that is known, nothing is sent. */
  #isDoubtful = false;
  /** Cancels the next check that `#isDoubtful` has scheduled. */
  #stopDoubt: Cancel = () => {};
  #losses = 0;
  #waiting: { readonly run: () => void; readonly holder: Holder | undefined }[] = [];
  #lastSeenAt = -Infinity;
  #isWarned = false;
  #isCramped = false;

  constructor(options: OwnersOptions) {
    this.#options = options;
    this.#moves = new Moves(options);
    const partitionOptions: Omit<PartitionOptions, 'memory'> = {
      ...options,
      isAlive: (process) => this.isAlive(process),
      nodes: () => this.#nodes,
      onMove: (partition) => this.#moved(partition),
      onLost: (partition) => {
        options.log.warn({ partition }, 'another relay owns a partition that was of this one');
        // Calls that wait may depend on decisions in this partition.
        this.#loseWaiting();
        options.onLost(partition);
      },
      onForgotten: (partition) => {
        this.#note(null, { kind: 'forgot', partition });
        options.onForgotten(partition);
      },
    };
    this.#partitions = Array.from({ length: options.partitions }, (_, number) => {
      return new Partition(number, { ...partitionOptions, memory: options.memory(number) });
    });
  }

  /**
   * Waits until an earlier process of the same node has ended, renews the lease and begins to claim. Resolves when all
   * living processes know this one, at the latest after one lease. Rejects if the earlier process lives on, or if Redis
   * does not answer.
   */
  async start(): Promise<void> {
    const { clock, leaseMs } = this.#options;
    await this.#predecessorEnds();
    this.#hasStarted = true;
    await this.#look();
    this.#stopBeats = clock.every(leaseMs / BEATS, () => void this.#beat());
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(leaseMs, resolve);
    this.#onKnown = resolve;
    this.#note(null, { kind: 'joins' });
    this.#known('');
    await promise;
    cancel();
  }

  async #predecessorEnds(): Promise<void> {
    const { clock, lease, leaseMs, process } = this.#options;
    const nodeId = nodeOf(process);
    const isEarlier = (other: string): boolean => other !== process && nodeOf(other) === nodeId;
    const lives = async (): Promise<boolean> => (await lease.living()).some(isEarlier);
    for (let beats = 0; await lives(); beats++) {
      if (beats > BEATS) throw new CallboardError('internal', `Another live node is called "${nodeId}".`);
      await new Promise<void>((resolve) => clock.after(leaseMs / BEATS, resolve));
    }
  }

  local(partition: number): PartitionStores | null {
    return this.#isSuspended ? null : (this.#partitions[partition]?.stores ?? null);
  }

  decided(partition: number): number {
    return this.#partitions[partition]?.decided ?? 0;
  }

  ownerOf(partition: number): Owner | null {
    const process = this.#partitions[partition]?.owner ?? null;
    return process === null || !this.isAlive(process) ? null : { process, nodeId: nodeOf(process) };
  }

  onMove(run: (partition: number) => void): Cancel {
    this.#watchers.add(run);
    return () => void this.#watchers.delete(run);
  }

  doubt(): void {
    void this.#beat();
  }

  get owned(): readonly Partition[] {
    return this.#partitions.filter(({ stores }) => stores !== null);
  }

  /** The number of partitions without a living owner. */
  get orphans(): number {
    return this.#partitions.filter(({ number }) => this.ownerOf(number) === null).length;
  }

  isAlive(process: string): boolean {
    return process === this.#options.process || this.#alive.has(process);
  }

  /** Returns the address at which clients reach the relay of another living process; null if none is known. */
  addressOf(process: string): string | null {
    return process === this.#options.process ? null : (this.#addresses.get(process) ?? null);
  }

  /** The living processes by node id. */
  get nodes(): ReadonlyMap<string, string> {
    return this.#nodes;
  }

  /** The living processes, with the time of their last report; null if they have made none. */
  get alive(): ReadonlyMap<string, number | null> {
    return this.#alive;
  }

  /** Calls `run` once the lease is valid, at once if it already is: what this process has read counts only then. */
  whileOwner(run: () => void, holder?: Holder): void {
    if (this.#waiting.length === 0 && this.mayAnswer) return run();
    this.#waiting.push({ run, holder });
  }

  get losses(): number {
    return this.#losses;
  }

  get mayAnswer(): boolean {
    return this.#options.lease.isValid && !this.#isDoubtful;
  }

  answerable(): Promise<void> {
    return new Promise((resolve) => this.whileOwner(resolve, { destroy: resolve }));
  }

  receive(from: string, text: string): void {
    const note = readNote(text);
    if (!note) return this.#options.log.warn({ from }, 'a note of another relay cannot be read');
    this.#act(from, note).catch((error: unknown) =>
      this.#options.log.warn({ err: error, from, ...note }, 'a note of another relay was not followed'),
    );
  }

  async #act(from: string, note: OwnerNote): Promise<void> {
    // A process that ends must not renew its lease, nor one that starts while an earlier process of its node may live.
    if (this.#isClosing || !this.#hasStarted) return;
    if (note.kind === 'knows') return this.#known(from);
    if (note.kind === 'joins') return this.#greet(from);
    if (note.kind === 'leaves') return this.#leaves(from);
    if (note.kind === 'ends') return this.#left(from, note.given);
    const partition = this.#partitions[note.partition];
    if (!partition) return;
    switch (note.kind) {
      case 'owns':
        partition.accepted(from);
        return this.#beat();
      case 'forgot':
        return this.#options.onForgotten(note.partition);
      case 'follow':
        return this.#departure ? undefined : this.#follow(partition, from);
      case 'ready':
        return this.#departure ? this.#giveAtEnd(partition, from) : this.#give(partition, from);
      case 'yours':
        return this.#accept(partition, from);
    }
  }

  #known(by: string): void {
    const { process } = this.#options;
    this.#knownBy.add(by);
    if ([...this.#alive.keys()].every((other) => other === process || this.#knownBy.has(other))) this.#onKnown?.();
  }

  /** Notes that a process is giving away its partitions because it ends. */
  #leaves(process: string): void {
    this.#leaving.add(process);
    this.#claiming = this.#claiming.filter((other) => other !== process);
    this.#departure?.changed();
  }

  /** Handles the end of a process, which has given these partitions away. */
  async #left(process: string, given: readonly number[]): Promise<void> {
    const reportedAt = this.#alive.get(process);
    this.#alive = new Map([...this.#alive].filter(([other]) => other !== process));
    this.#addresses = new Map([...this.#addresses].filter(([other]) => other !== process));
    this.#leaves(process);
    if (reportedAt !== undefined) this.#options.onGone(process, reportedAt);
    // A note from the process about the last partition may arrive after this one, when its sender counts as dead.
    for (const number of given) {
      const partition = this.#partitions[number];
      if (partition) await this.#accept(partition, process);
    }
    await this.#beat();
  }

  /** Tells a starting process that this one knows it, as soon as it does. */
  async #greet(process: string): Promise<void> {
    for (let looks = 0; looks < GREETING_LOOKS && !this.#alive.has(process); looks++) {
      // A pass that began before the note may have missed the new process.
      await this.#looking;
      await this.#look();
    }
    this.#note(process, { kind: 'knows' });
  }

  /** Stops at once, like a process that dies. The other processes wait until its lease expires. */
  stop(): void {
    this.#isClosing = true;
    this.#stopBeats?.();
    for (const partition of this.#partitions) partition.stop();
  }

  /**
   * Gives away all partitions, or leaves them for a process that starts later, and ends the lease. This process decides
   * until the next owners have read the logs, at most for a few leases.
   */
  async close(): Promise<void> {
    const { clock, leaseMs, lease, process } = this.#options;
    this.#departure ??= new Departure({
      clock,
      leaseMs,
      owned: () => this.owned,
      nextOf: (partition) => shouldOwn(partition, this.#claiming),
      mayGive: () => lease.isValid && !this.#isSuspended,
      announce: () => this.#note(null, { kind: 'leaves' }),
      ask: (to, partition) => this.#note(to, { kind: 'follow', partition }),
    });
    this.#leaves(process);
    await this.#departure.run();
    await this.#giving.catch(() => undefined);
    this.#isClosing = true;
    this.#stopBeats?.();
    // A renewal in progress would restore the lease after it was ended.
    await this.#looking?.catch(() => undefined);
    for (const partition of this.owned) {
      const next = shouldOwn(partition.number, this.#claiming);
      if (next === null) await partition.give(NOBODY);
      else await this.#giveNow(partition, next);
    }
    await lease.end();
    // Without a lease this process cannot take a partition back, so it needs no state of a failed handover.
    for (const partition of this.#partitions) partition.forgetGiven();
    this.#note(null, { kind: 'ends', given: this.#given });
  }

  /** Gives partitions away one after another, in the order in which their next owners are ready. */
  #giveAtEnd(partition: Partition, to: string): Promise<void> {
    const give = async (): Promise<void> => {
      const isNext = partition.stores !== null && shouldOwn(partition.number, this.#claiming) === to;
      if (isNext && !this.#isClosing) await this.#giveNow(partition, to);
      this.#departure?.changed();
    };
    return (this.#giving = this.#giving.catch(() => undefined).then(give));
  }

  async #giveNow(partition: Partition, to: string): Promise<void> {
    if (!(await partition.give(to))) return;
    this.#given.push(partition.number);
    this.#note(to, { kind: 'yours', partition: partition.number });
  }

  async #beat(): Promise<void> {
    const { log, clock, leaseMs } = this.#options;
    if (this.#looking || this.#isClosing) return;
    try {
      await this.#look();
      this.#isWarned = false;
    } catch (error) {
      if (!this.#isWarned) log.warn({ err: error }, 'the lease of this relay cannot be renewed');
      this.#isWarned = true;
      if (clock.monotonic() - this.#lastSeenAt > SUSPEND_LEASES * leaseMs) this.#suspend();
    }
  }

  /** Runs one pass: renews the lease, handles the changes that were read, and claims or gives away partitions. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => (this.#looking = null));
    return this.#looking;
  }

  async #lookOnce(): Promise<void> {
    const { clock, lease, leaseMs, log } = this.#options;
    const began = clock.monotonic();
    // Before the first renewal there was no lease that could have expired.
    if (this.#lastSeenAt !== -Infinity && !lease.isValid)
      log.warn({ ms: Math.round(began - this.#lastSeenAt) }, 'the lease of this relay ended before it was renewed');
    for (const partition of this.#partitions) partition.mark();
    void this.#options.turns.probe();
    const renewal = await lease.renew();
    // After a long suspension, the messages that this process holds back are outdated, even if Redis is unchanged.
    const hasSeen = this.#lastSeenAt > -Infinity;
    if (hasSeen && clock.monotonic() - this.#lastSeenAt > SUSPEND_LEASES * leaseMs) this.#suspend();
    this.#see(this.#withSilent(renewal));
    lease.accept(renewal);
    this.#lastSeenAt = began;
    if (renewal.hasLapsed) this.#noteLapse();
    this.#stopDoubt();
    if (this.#isDoubtful) this.#stopDoubt = this.#options.clock.after(DOUBT_MS, () => void this.#beat());
    // A renewal does not count if its answer came too late.
    else if (this.mayAnswer) this.#release();
    void this.#claimOrphans().then(() => this.#startMove());
  }

  /**
   * Reports the lapse now and again after a lease: a process that noticed it has marked these links as lost by then.
   */
  #noteLapse(): void {
    const { clock, leaseMs, onRevived } = this.#options;
    onRevived();
    clock.after(leaseMs, onRevived);
  }

  /** Adds the processes that were alive before, while a missing lease does not prove that its process is dead. */
  #withSilent(renewal: Renewal): Renewal {
    if (this.#options.lease.showsDeaths) return renewal;
    const claiming = [...new Set([...renewal.claiming, ...this.#claiming])];
    const addresses = new Map([...this.#addresses, ...renewal.addresses]);
    return { ...renewal, alive: new Map([...this.#alive, ...renewal.alive]), claiming, addresses };
  }

  #see({ alive, claiming, addresses, fences }: Renewal): void {
    const { process, onJoined, onAddress, onGone, turns } = this.#options;
    const before = this.#alive;
    const known = this.#addresses;
    this.#alive = alive;
    this.#addresses = addresses;
    for (const other of this.#leaving) if (other !== process && !alive.has(other)) this.#leaving.delete(other);
    this.#claiming = claiming.filter((other) => !this.#leaving.has(other));
    this.#departure?.changed();
    this.#nodes = new Map([...alive.keys(), process].map((one) => [nodeOf(one), one]));
    for (const [other, at] of before) if (!alive.has(other) && other !== process) onGone(other, at);
    for (const found of alive.keys()) if (!before.has(found) && found !== process) onJoined(found);
    let isDoubtful = false;
    for (const partition of this.#partitions) {
      const text = fences[partition.number] ?? null;
      if (!partition.stores) partition.see(text);
      else if (!partition.agreesWith(text)) isDoubtful = true;
    }
    this.#isDoubtful = isDoubtful;
    if (isDoubtful) turns.settle();
    for (const partition of this.#partitions) {
      partition.meet();
      // The note about the handover, or the answer to it, may have been lost.
      if (partition.givenTo !== null && this.isAlive(partition.givenTo))
        this.#note(partition.givenTo, { kind: 'yours', partition: partition.number });
    }
    for (const other of addresses.keys()) if (!known.has(other) && other !== process) onAddress(other);
    if (!this.#isSuspended) return;
    this.#isSuspended = false;
    for (const { number } of this.owned) this.#moved(number);
  }

  /** Drops everything that waits to be sent, because this process may no longer own any partition. */
  #suspend(): void {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#options.turns.loseWaiting();
    this.#loseWaiting();
    for (const { number } of this.owned) this.#moved(number);
  }

  #loseWaiting(): void {
    this.#losses++;
    for (const { holder } of this.#waiting.splice(0)) holder?.destroy();
  }

  #release(): void {
    for (const { run } of this.#waiting.splice(0)) run();
  }

  async #claimOrphans(): Promise<void> {
    if (this.#isMoving || this.#isClosing || this.#departure || !this.#options.claims) return;
    this.#isMoving = true;
    try {
      for (const partition of this.#partitions)
        if (this.#mayClaim(partition) && this.#hasRoom(partition)) await this.#claim(partition);
    } finally {
      this.#isMoving = false;
    }
  }

  /**
   * Whether this process has room for one more partition. If not, the partition waits for room here or for another
   * process.
   */
  #hasRoom({ number }: Partition): boolean {
    const { hasRoom, log } = this.#options;
    const has = hasRoom();
    if (!has && !this.#isCramped) log.error({ partition: number }, 'this relay has no room for more partitions');
    this.#isCramped = !has;
    return has;
  }

  async #claim(partition: Partition): Promise<void> {
    const { log } = this.#options;
    try {
      if (await partition.claim()) this.#announce(partition);
    } catch (error) {
      log.error({ err: error, partition: partition.number }, 'a partition cannot be taken over');
    }
  }

  /** Whether a partition has no living owner and this process should claim it now. */
  #mayClaim(partition: Partition): boolean {
    const { number, stores, isTaking, owner } = partition;
    const { lease, leaseMs, clock, process } = this.#options;
    const isOrphan = !stores && !isTaking && (owner === null || owner === process || !this.#alive.has(owner));
    if (!isOrphan) {
      this.#orphanSince.delete(number);
      return false;
    }
    const now = clock.monotonic();
    const since = this.#orphanSince.get(number) ?? now;
    this.#orphanSince.set(number, since);
    const isMine = shouldOwn(number, this.#claiming) === process;
    // A partition without an owner, or left without a receiver, has no process that could still go on with it.
    if (owner === null || owner === NOBODY) return isMine || now - since > leaseMs;
    if (lease.heldMs < CLAIM_LEASES * leaseMs) return false;
    if (owner === process || partition.isForgotten) return now - since > CLAIM_LEASES * leaseMs;
    // A living process may have the data that Redis lost, and gets the chance to claim first.
    if (partition.isCut) return now - since > CUT_LEASES * leaseMs;
    return isMine || now - since > leaseMs;
  }

  #announce({ number }: Partition): void {
    this.#note(null, { kind: 'owns', partition: number });
  }

  /** Chooses a partition that another process should own, and asks that process to follow its log. */
  #startMove(): void {
    const { lease, leaseMs } = this.#options;
    if (
      this.#isMoving ||
      this.#isClosing ||
      this.#departure ||
      this.#isSuspended ||
      lease.heldMs < CLAIM_LEASES * leaseMs
    )
      return;
    if (this.orphans > 0 || this.#claiming.length < 2) return;
    const { owned } = this;
    // If relays have addresses, clients are told their homes and connect there by themselves.
    if (this.#addresses.size > 0) this.#moves.countNone();
    else this.#moves.count(owned);
    const move = this.#moves.next(owned, this.#view());
    if (move) this.#note(move.to, { kind: 'follow', partition: move.partition });
  }

  #view(): PlacementView {
    return { processes: this.#claiming, owners: this.#partitions.map(({ owner }) => owner) };
  }

  async #follow(partition: Partition, owner: string): Promise<void> {
    if (!this.#moves.mayTake(partition.number, this.#view()) || !this.#hasRoom(partition)) return;
    if (await partition.follow()) this.#note(owner, { kind: 'ready', partition: partition.number });
    // If this process still decides in the partition, `settle` finds out who owns it. The owner asks again.
    else this.#options.turns.settle();
  }

  async #give(partition: Partition, to: string): Promise<void> {
    const { number, stores } = partition;
    if (this.#isMoving || !stores || this.#moves.ownerOf(number, this.#view()) !== to) return;
    this.#isMoving = true;
    try {
      if (!(await partition.give(to))) return;
      this.#moves.gave(number);
      this.#note(to, { kind: 'yours', partition: number });
    } finally {
      this.#isMoving = false;
    }
  }

  async #accept(partition: Partition, from: string): Promise<void> {
    if (await partition.accept(from)) this.#announce(partition);
  }

  #note(to: string | null, note: OwnerNote): void {
    this.#options.send(to, JSON.stringify(note));
  }

  #moved(partition: number): void {
    for (const run of this.#watchers) run(partition);
  }
}

/** Stands for the owner in a fence if a process left the partition and no process could receive it. */
export const NOBODY = '-';

const OF_PROCESSES: ReadonlySet<unknown> = new Set<OwnerNote['kind']>(['joins', 'knows', 'leaves']);
const OF_PARTITIONS: ReadonlySet<unknown> = new Set<OwnerNote['kind']>(['owns', 'forgot', 'follow', 'ready', 'yours']);

function readNote(text: string): OwnerNote | null {
  const note = parsedJson(text);
  if (!isRecord(note)) return null;
  const isKnown = OF_PARTITIONS.has(note['kind']) && Number.isSafeInteger(note['partition']);
  const isEnd = note['kind'] === 'ends' && Array.isArray(note['given']) && note['given'].every(Number.isSafeInteger);
  // The kind of the note and its members were checked above.
  return isKnown || isEnd || OF_PROCESSES.has(note['kind']) ? (note as OwnerNote) : null;
}
