/**
 * One partition from the point of view of one process: who owns it, how this process takes it over and gives it away,
 * and its state while this process owns it.
 */
import type { Binding } from '../../core/commands/command-store.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ClientKey } from '../../core/ids.ts';
import type { Clock, EventLoop, Log } from '../../core/ports.ts';
import { RecordRoom, type RecordRoomOptions } from '../journal/room.ts';
import { Snapshots } from '../journal/snapshot.ts';
import { giveUpAll, RecordedState, type StateOptions } from '../journal/state.ts';
import type { Client } from '../redis/client.ts';
import { fenceText, isAfter, isBefore, nodeOf, readFence, type Fence } from './fence.ts';
import type { Keys } from './keys.ts';
import type { PartitionLog, PartitionLogOptions } from './partition-log.ts';
import type { PartitionStores } from './routes.ts';
import type { Replicas } from './replicas.ts';
import { setFence } from './scripts.ts';
import { BrokenLog, StreamReader } from './stream.ts';
import type { Turns } from './turns.ts';

/**
 * When a snapshot of a log is due: after appends of this cost. A snapshot writes all records that are kept, so with
 * frequent snapshots the writing of each record would be paid for several times. While a snapshot is late, the log may
 * grow to `total` times the due cost.
 */
const RECORD_ROOM: RecordRoomOptions = { dueCost: 256 * 1024 * 1024, dueAtMost: 1, total: 2 };

/** The dependencies that all partitions of a process share. */
export type PartitionOptions = {
  /** The id of this process. */
  readonly process: string;
  readonly client: Client;
  readonly keys: Keys;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly log: Log;
  /** The version of the relay, which is written into the log. */
  readonly version: string;
  readonly replicas: Pick<Replicas, 'have'>;
  readonly memory: Omit<StateOptions, 'room'>;
  /** When a snapshot of a log is due, and how much may be recorded before it is written. Default: RECORD_ROOM. */
  readonly recordRoom?: RecordRoomOptions | undefined;
  /** Whether a process is alive, to the knowledge of this process. */
  readonly isAlive: (process: string) => boolean;
  /** The living processes by node id. */
  readonly nodes: () => ReadonlyMap<string, string>;
  /** Called with connections whose links are lost because their process is gone. */
  readonly onLinksLost: (connections: readonly Connection[]) => void;
  /**
   * Called when the owner of a partition changes. If this process becomes the owner, called in the turn in which it can
   * first decide.
   */
  readonly onMove: (partition: number) => void;
  /** Called when another process is found to own a partition that this process owned. */
  readonly onLost: (partition: number) => void;
  /**
   * Called when this process has taken over a partition of which Redis has lost data and whose owner is dead. All
   * unfinished commands were ended as unknown. Not called if no process had read the lost data.
   */
  readonly onForgotten: (partition: number) => void;
};

/** The state of a partition that this process owns. */
type OwnedState = {
  readonly state: RecordedState;
  readonly room: RecordRoom;
  readonly log: PartitionLog;
  readonly snapshots: Snapshots;
};

/**
 * A state that is restored ahead of a takeover, so that little is left to read when the fence moves. `of`: the owner
 * and the epoch of the log that was read. If they change, this state is useless: Redis may have lost batches that were
 * read here, and the log may go on differently.
 */
type ReadAhead = {
  readonly state: RecordedState;
  readonly room: RecordRoom;
  readonly reader: StreamReader;
  readonly of: string;
};

/**
 * The state of a partition that this process gave to another one. It is kept until the other process decides, because a
 * failover may forget the handover together with batches that only this state contains. `fence`: the fence of the new
 * owner, which is set or may be set.
 */
type HandedOver = { readonly owned: OwnedState; readonly fence: Fence };

function holdingOf({ process, epoch }: Pick<Fence, 'process' | 'epoch'>): string {
  return `${process} ${epoch}`;
}

export class Partition {
  readonly number: number;
  readonly #options: PartitionOptions;
  #owned: OwnedState | null = null;
  /** The last fence that was read; null if there is none. */
  #seen: Fence | null = null;
  /** The fence with the highest epoch and number that was ever read. */
  #furthest: Fence | null = null;
  #isTaking = false;
  #followed: ReadAhead | null = null;
  #given: HandedOver | null = null;
  /** True during a handover. Replicas may not have the fence of the next owner yet. */
  #isGiving = false;
  #marked = 0;

  constructor(number: number, options: PartitionOptions) {
    this.number = number;
    this.#options = options;
  }

  /** The stores, if this process owns the partition; otherwise null. */
  get stores(): PartitionStores | null {
    return this.#owned?.state.ports ?? null;
  }

  /** The log, if this process owns the partition; otherwise null. */
  get log(): PartitionLog | null {
    return this.#owned?.log ?? null;
  }

  /** The number of facts that this process has decided in the partition since it became the owner. */
  get decided(): number {
    return this.#owned?.state.records.added ?? 0;
  }

  /** The process that owns the partition, to the knowledge of this process. */
  get owner(): string | null {
    return this.#owned ? this.#options.process : (this.#seen?.process ?? null);
  }

  /** Whether this process is taking the partition over: it is claiming the partition or reading its log. */
  get isTaking(): boolean {
    return this.#isTaking;
  }

  /** Counts the links of the partition's clients, by the process that holds them. */
  countLinks(): ReadonlyMap<string, number> {
    const links = new Map<string, number>();
    const nodes = this.#options.nodes();
    for (const { nodeId, disconnectedAt } of this.#owned?.state.tables.connections.all(null) ?? []) {
      const process = disconnectedAt === null ? nodes.get(nodeId) : undefined;
      if (process !== undefined) links.set(process, (links.get(process) ?? 0) + 1);
    }
    return links;
  }

  /** The process to which this one gave the partition, until that process is known to decide; otherwise null. */
  get givenTo(): string | null {
    const given = this.#isGiving ? null : this.#given;
    return given && this.#seen?.process === given.fence.process ? given.fence.process : null;
  }

  /** Whether Redis has forgotten the handover of this partition, while this process still has the state. */
  get isForgotten(): boolean {
    return this.#forgottenAt(this.#seen) !== null;
  }

  /** Whether Redis has lost data of the partition that a living process may still have. */
  get isCut(): boolean {
    return this.#isCut(this.#seen);
  }

  /** Notes that a process decides in the partition, so the state for a failed handover is no longer needed. */
  accepted(by: string): void {
    if (this.#given?.fence.process === by) this.forgetGiven();
  }

  /** Remembers how much of the log is confirmed. Call it before the fences are read. */
  mark(): void {
    this.#marked = this.#owned?.log.tail.confirmed ?? 0;
  }

  /**
   * Whether a fence that was read after `mark` includes everything that was confirmed at `mark`. Only for a partition
   * that this process owns.
   */
  agreesWith(text: string | null): boolean {
    const found = readFence(text);
    const own = this.#owned?.log.fence;
    if (!found || !own) return false;
    return found.process === own.process && found.epoch === own.epoch && found.number >= this.#marked;
  }

  /** Notes a fence that was read. If it is missing, Redis has lost it, and a living owner writes it again. */
  see(text: string | null): void {
    const fence = readFence(text);
    const seen = this.#seen;
    const [before, epoch] = [this.owner, seen?.epoch ?? 0];
    // If Redis has lost the fence of a partition that this process gave away, the partition belongs to this process
    // again.
    this.#seen = fence ?? (this.#given ? null : this.#seen);
    if (!this.#isCut(fence)) this.#furthest = fence;
    if (fence !== null && fence.process !== this.#options.process) this.#keepGivenUnless(fence, seen);
    const isOther = this.owner !== before;
    // If only the epoch has grown, the same owner may have lost the partition in between, and with it the requests it
    // received.
    if (!isOther && (this.#seen?.epoch ?? 0) <= epoch) return;
    if (isOther && !this.#isTaking && this.owner !== this.#options.process) this.#forgetFollowed();
    this.#options.onMove(this.number);
  }

  /**
   * Claims the partition if it has no living owner, and restores its state from the log. Resolves with whether this
   * process owns it now. Rejects if Redis does not answer, and with BrokenLog if the log cannot be restored.
   */
  claim(): Promise<boolean> {
    return this.#alone(() => this.#claim());
  }

  async #claim(): Promise<boolean> {
    const { process, client, keys, isAlive, replicas } = this.#options;
    const of = keys.of(this.number);
    const found = await client.get(of.fence);
    this.see(found);
    const before = readFence(found);
    const isCut = this.#isCut(before);
    const owner = this.#seen?.process ?? process;
    if (owner !== process && isAlive(owner)) return false;
    const given = this.#forgottenAt(before);
    const epoch = Math.max(before?.epoch ?? 0, given?.fence.epoch ?? 0) + 1;
    const next = { process, epoch, number: before?.number ?? 0 };
    const dead = owner === process ? [] : [of.live(owner)];
    const change = { keys: of, map: keys.map, found, next, alive: [of.live(process)], dead };
    if (!(await setFence(client, change))) return false;
    await replicas.have(of);
    if (given) return this.#takeBack(given, epoch);
    await this.#take(next, before ?? next, isCut);
    return this.#keepEvidence();
  }

  /**
   * Restores the state from the present log, so that a later `accept` has little to read. It may be called again.
   * Resolves with false if this process still decides here: another process has taken the partition, and this one has
   * not noticed yet.
   */
  async follow(): Promise<boolean> {
    const { client, keys } = this.#options;
    const fence = readFence(await client.get(keys.of(this.number).fence));
    if (!fence || this.#owned || this.#isTaking) return false;
    const followed = this.#readerOf(holdingOf(fence));
    try {
      await followed.reader.catchUp();
      return true;
    } catch (error) {
      if (this.#followed === followed) this.#forgetFollowed();
      throw error;
    }
  }

  /** Returns the state that is being read for this owner and epoch, or starts a new one. */
  #readerOf(of: string): ReadAhead {
    if (this.#followed?.of === of) return this.#followed;
    this.#forgetFollowed();
    return (this.#followed = this.#newReader(of));
  }

  #forgetFollowed(): void {
    const followed = this.#followed;
    this.#followed = null;
    void followed?.reader.settled().then(() => followed.state.tables.discard());
  }

  /** Becomes the owner, if the former owner `from` has set the fence to this process. Resolves with whether it has. */
  accept(from: string): Promise<boolean> {
    return this.#alone(async () => {
      const text = await this.#options.client.get(this.#options.keys.of(this.number).fence);
      const fence = readFence(text);
      if (fence?.process !== this.#options.process) return false;
      await this.#take(fence, { process: from, epoch: fence.epoch - 1 });
      // This batch in the log proves that this process decides, even if its note about that is lost.
      this.#owned?.state.noteNode(nodeOf(fence.process), fence.process);
      return this.#keepEvidence();
    });
  }

  /** Runs `take` unless a takeover is in progress. Resolves with whether this process owns the partition afterwards. */
  async #alone(take: () => Promise<boolean>): Promise<boolean> {
    if (this.#owned || this.#isTaking) return this.#owned !== null;
    this.#isTaking = true;
    try {
      return await take();
    } finally {
      this.#isTaking = false;
    }
  }

  /**
   * Gives the partition to another process, which must follow its log. Resolves with whether the partition was given.
   * It is not given if another process owns it, if Redis has another fence than expected (then this process keeps the
   * partition), or if this process ends before Redis has the whole log. From the start of this call, nothing is decided
   * here. The state is kept until the other process decides.
   */
  async give(to: string): Promise<boolean> {
    const { turns, onMove, replicas, keys } = this.#options;
    const owned = this.#owned;
    if (!owned) return false;
    this.#owned = null;
    this.#isGiving = true;
    let given: Fence | null = null;
    try {
      turns.flush();
      // After a data loss in Redis, this wait includes a snapshot.
      await turns.confirmed(owned.log);
      if (owned.log.isLost || !owned.log.isConfirmed) return false;
      const next = { ...owned.log.fence, process: to, epoch: owned.log.fence.epoch + 1 };
      // Noted before the call, because the fence may be set even if no answer arrives.
      this.#given = { owned, fence: next };
      if (!(await this.#setGiven(owned.log, next))) {
        this.#given = null;
        return this.#keep(owned);
      }
      given = next;
      await replicas.have(keys.of(this.number));
    } finally {
      this.#isGiving = false;
      if (this.#owned !== owned) this.#leave(owned, given);
      onMove(this.number);
    }
    return true;
  }

  #setGiven({ fence }: PartitionLog, next: Fence): Promise<boolean> {
    const { client, keys } = this.#options;
    return setFence(client, { keys: keys.of(this.number), map: keys.map, found: fenceText(fence), next });
  }

  /**
   * Becomes the owner again after a refused handover. Redis may have lost a part of the log, or another process may own
   * it; `settle` finds out.
   */
  #keep(owned: OwnedState): false {
    this.#owned = owned;
    this.#options.turns.settle();
    return false;
  }

  /** Stops appending. `given`: the new fence; null if it is unknown whether it was set. */
  #leave(owned: OwnedState, given: Fence | null): void {
    owned.snapshots.stop();
    this.#options.turns.drop(owned.log);
    if (this.#given?.owned === owned) owned.state.onFirst = () => {};
    else owned.state.tables.discard();
    this.#seen = given;
    if (given) this.#furthest = given;
  }

  /**
   * Discards the state that was handed over if a process has decided since, even if that process went on from an older
   * state because Redis had forgotten the handover.
   */
  #keepGivenUnless(fence: Fence, seen: Fence | null): void {
    if (!this.#given) return;
    const { fence: given } = this.#given;
    const isGiven = fence.process === given.process && fence.epoch === given.epoch;
    const wasForgotten = !isGiven && !this.#isGiving && seen !== null && seen.epoch < given.epoch;
    if (isAfter(fence, given) || (wasForgotten && isAfter(fence, seen))) this.forgetGiven();
  }

  /** Returns the state that was handed over if this fence is older than the handover; otherwise null. */
  #forgottenAt(fence: Fence | null): HandedOver | null {
    const given = this.#isGiving ? null : this.#given;
    return given && (fence === null || fence.epoch < given.fence.epoch) ? given : null;
  }

  /** Discards the state that was kept for a failed handover. */
  forgetGiven(): void {
    this.#given?.owned.state.tables.discard();
    this.#given = null;
  }

  /**
   * Goes on with the state that was handed over: Redis has forgotten the handover, and the receiver has not set the
   * fence again.
   */
  #takeBack({ owned: { state, room, log } }: HandedOver, epoch: number): boolean {
    const { turns, log: logger } = this.#options;
    this.#given = null;
    const again = this.#decide({ state, room, head: log.head }, { ...log.fence, epoch });
    logger.warn({ partition: this.number }, 'Redis has forgotten that this was given away: it stays here');
    // If the log in Redis ends before this state, `settle` appends the rest or replaces the log by a snapshot.
    turns.settle();
    turns.wake(again);
    return true;
  }

  /**
   * Compares the living processes with those in the log. The links of a process are lost if it is dead or if its node
   * now has another process.
   */
  meet(): void {
    const owned = this.#owned;
    if (!owned) return;
    const { state } = owned;
    const { replay } = state;
    const nodes = this.#options.nodes();
    const gone = [...replay.nodes].filter(
      ([nodeId, process]) => nodes.get(nodeId) !== process && process !== NO_PROCESS,
    );
    if (gone.length > 0) this.#options.onLinksLost(loseLinks(state, new Set(gone.map(([nodeId]) => nodeId))));
    for (const [nodeId] of gone) if (!nodes.has(nodeId)) state.noteNode(nodeId, NO_PROCESS);
    for (const [nodeId, process] of nodes) if (replay.nodes.get(nodeId) !== process) state.noteNode(nodeId, process);
  }

  /** Stops snapshots and forgets the state. Everything decided must be recorded before. */
  stop(): void {
    this.#owned?.snapshots.stop();
    this.#owned = null;
    this.#given = null;
  }

  /** Whether Redis has lost data of the partition, if `fence` is its present fence. */
  #isCut(fence: Fence | null): boolean {
    return this.#furthest !== null && isBefore(fence, this.#furthest);
  }

  /** Ends all unfinished commands as unknown, because the lost data may contain their dispatch. */
  #giveUp(): void {
    if (!this.#owned) return;
    const { log, onForgotten } = this.#options;
    giveUpAll(this.#owned.state);
    log.error(
      { partition: this.number },
      'Redis has lost data of users whose relay is gone: their commands end as unknown',
    );
    onForgotten(this.number);
  }

  /**
   * Replays the log, and begins to decide. The fence must name this process. `before`: the previous owner and epoch.
   * `isCut`: Redis has lost data of the partition.
   */
  async #take(fence: Fence, before: Pick<Fence, 'process' | 'epoch'>, isCut = false): Promise<void> {
    const { clock, log, process } = this.#options;
    const began = clock.monotonic();
    // The second attempt is needed if a snapshot replaced the part of the log that was read or was being read.
    const followed = await this.#readWhole(before, fence).catch(() => this.#readWhole(before, fence));
    const { state } = followed;
    this.#followed = null;
    this.#begin(followed, fence, isCut);
    const ms = Math.round(clock.monotonic() - began);
    if (fence.number > 0) log.info({ partition: this.number, process, acts: state.replay.acts, ms }, 'took over');
  }

  /**
   * Restores the whole log of this owner and epoch. Rejects if the log does not end at the batch that the fence names.
   */
  async #readWhole(of: Pick<Fence, 'process' | 'epoch'>, { number }: Fence): Promise<ReadAhead> {
    const followed = this.#readerOf(holdingOf(of));
    const { reader } = followed;
    try {
      await reader.catchUp();
      if (reader.number !== number)
        throw new BrokenLog(`it ends with the batch ${reader.number}, and its fence is at ${number}`);
      return followed;
    } catch (error) {
      this.#forgetFollowed();
      throw error;
    }
  }

  /**
   * Drops evidence that the process has no room for, in slices, before another partition is taken over. Resolves with
   * whether this process still owns the partition.
   */
  async #keepEvidence(): Promise<boolean> {
    const { clock, loop } = this.#options;
    while (this.#owned && !this.#owned.state.tables.keepEvidence(clock.now()))
      await new Promise<void>((next) => loop.afterOthers(next));
    return this.#owned !== null;
  }

  #newReader(of: string): ReadAhead {
    const { client, keys, clock, loop, memory, recordRoom = RECORD_ROOM } = this.#options;
    const room = new RecordRoom({ ...recordRoom, where: 'Redis' });
    const state = new RecordedState({ ...memory, room });
    const { replay } = state;
    const reader = new StreamReader({ client, keys: keys.of(this.number), replay, clock, loop });
    return { state, room, reader, of };
  }

  #begin({ state, room, reader }: ReadAhead, fence: Fence, isCut: boolean): void {
    const { replay } = state;
    // Time must not go back when a process with another clock takes over.
    state.begin(replay.lastAt);
    room.start(reader.bytes.snapshot, { bytes: reader.bytes.batches, records: replay.journalActs });
    this.#decide({ state, room }, fence, () => {
      resume(state, this.#options.clock.now());
      // Requests that wait for an owner are run next: what they admit is not lost.
      if (isCut) this.#giveUp();
    });
  }

  /** Begins to decide in the partition. `head`: see PartitionLogOptions. `begin`: makes the first decisions. */
  #decide(
    { state, room, head }: Pick<OwnedState, 'state' | 'room'> & Pick<PartitionLogOptions, 'head'>,
    fence: Fence,
    begin: () => void = () => {},
  ): PartitionLog {
    const { turns, keys, version, clock, loop, log: logger, onLost, onMove } = this.#options;
    const { records, tables, replay } = state;
    const log = turns.open({
      partition: this.number,
      keys: keys.of(this.number),
      fence,
      version,
      records,
      room,
      head,
      writeSnapshot: () => snapshots.write(),
      onLost: () => {
        snapshots.stop();
        if (this.#owned?.log !== log) return;
        this.#owned = null;
        this.#seen = null;
        tables.discard();
        onLost(this.number);
        onMove(this.number);
      },
    });
    const snapshots = new Snapshots({
      log,
      room,
      tables,
      clock,
      loop,
      logger,
      tickets: replay.tickets,
      nodes: replay.nodes,
    });
    state.onFirst = () => turns.wake(log);
    this.forgetGiven();
    this.#owned = { state, room, log, snapshots };
    this.#seen = this.#furthest = fence;
    begin();
    this.meet();
    onMove(this.number);
    return log;
  }
}

/** Recorded as the process of a node whose process is gone. */
const NO_PROCESS = '';

/** Restores connections and bindings after the log was restored. A snapshot stores no bindings. */
function resume({ replay, tables, ports, plain }: RecordedState, now: number): void {
  for (const [hash, until] of replay.tickets) if (until > now) void plain.tickets.take(hash, until - now);
  if (replay.acts > 0) tables.dedup.resume(now);
  for (const { userId, clientId, nodeId, instanceId, epoch } of replay.finish(now))
    if (!tables.ledger.peekClient({ userId, clientId })?.binding)
      void ports.commands.rebind({ userId, clientId }, { nodeId, instanceId, epoch }, 'up');
  const unbound = tables.ledger.clients().filter(({ binding }) => binding === null);
  for (const { head } of unbound.toArray()) loseQueue(head, null, { tables, ports });
}

/**
 * Marks the links of these nodes as lost, so that their commands wait for the clients again. Returns the lost
 * connections.
 */
function loseLinks({ tables, ports }: RecordedState, nodes: ReadonlySet<string>): readonly Connection[] {
  const linked = tables.connections.all(null).filter((one) => one.disconnectedAt === null && nodes.has(one.nodeId));
  const lost: Connection[] = [];
  for (const { userId, clientId, epoch } of linked.toArray()) {
    const connection = ports.connections.disconnect({ userId, clientId }, epoch, 'node_lost');
    // A recorded state always answers in the same turn, so this is never a promise.
    if (connection && !(connection instanceof Promise)) lost.push(connection);
  }
  for (const { head, binding } of tables.ledger.clients().toArray())
    if (binding && nodes.has(binding.nodeId)) loseQueue(head, binding, { tables, ports });
  return lost;
}

function loseQueue(
  { userId, clientId }: ClientKey,
  binding: Binding | null,
  { tables, ports }: Pick<RecordedState, 'tables' | 'ports'>,
): void {
  const gone = binding ?? { nodeId: '', instanceId: '', epoch: tables.connections.lastEpoch };
  const queue = tables.ledger.peekClient({ userId, clientId });
  if (queue) queue.binding = gone;
  void ports.commands.rebind({ userId, clientId }, gone, 'down');
}
