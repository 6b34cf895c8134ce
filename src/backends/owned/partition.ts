/**
 * One partition, as a process that may own it sees it: who owns it, how this process takes it over, and its state while
 * this process decides in it.
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
 * A snapshot has all records that are kept, and a log that is shorter makes each call pay for several of them. The total
 * is what a log takes in Redis at most while its snapshot is late.
 */
const RECORD_ROOM: RecordRoomOptions = { dueCost: 256 * 1024 * 1024, dueAtMost: 1, total: 2 };

/** What all partitions of a process share. */
export type PartitionOptions = {
  /** The id of this process. */
  readonly process: string;
  readonly client: Client;
  readonly keys: Keys;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly log: Log;
  /** The version of the relay, for the log. */
  readonly version: string;
  readonly replicas: Pick<Replicas, 'have'>;
  readonly memory: Omit<StateOptions, 'room'>;
  /** When a snapshot of a log is due, and how much may be recorded until it is written; absent: RECORD_ROOM. */
  readonly recordRoom?: RecordRoomOptions | undefined;
  /** Whether a process is alive, as far as this one knows. */
  readonly isAlive: (process: string) => boolean;
  /** The living processes, by the ids of their nodes. */
  readonly nodes: () => ReadonlyMap<string, string>;
  /** Called with connections whose links are lost, because their process is gone. */
  readonly onLinksLost: (connections: readonly Connection[]) => void;
  /** Called when the owner of a partition is another than before; if it is this process, in the turn in which it decides. */
  readonly onMove: (partition: number) => void;
  /** Called when another process owns a partition in which this one has decided. */
  readonly onLost: (partition: number) => void;
  /**
   * Called when this process has taken a partition over of which Redis has lost something, and its owner is dead: what
   * had not ended is given up. Not called if no process had seen what was lost.
   */
  readonly onForgotten: (partition: number) => void;
};

/** A state that this process decides in. */
type OwnedState = {
  readonly state: RecordedState;
  readonly room: RecordRoom;
  readonly log: PartitionLog;
  readonly snapshots: Snapshots;
};

/**
 * A state that is being put back, so that little is left to read when the fence moves. `of`: the owner and epoch of the
 * log. After another one, Redis may have lost what was read here, and the log may have gone on in another way.
 */
type Followed = {
  readonly state: RecordedState;
  readonly room: RecordRoom;
  readonly reader: StreamReader;
  readonly of: string;
};

/**
 * A state that this process has given to another one, until that one decides: a failover may forget the handover, and
 * batches that only this state has. `fence`: the one that was set, or may have been.
 */
type Given = { readonly owned: OwnedState; readonly fence: Fence };

function holdingOf({ process, epoch }: Pick<Fence, 'process' | 'epoch'>): string {
  return `${process} ${epoch}`;
}

export class Partition {
  readonly number: number;
  readonly #options: PartitionOptions;
  #owned: OwnedState | null = null;
  /** The fence as it was seen last; null: there is none. */
  #seen: Fence | null = null;
  /** The furthest fence that was ever seen. */
  #furthest: Fence | null = null;
  #isTaking = false;
  #followed: Followed | null = null;
  #given: Given | null = null;
  /** Whether this process gives the partition away just now: replicas may not have the fence of its next owner yet. */
  #isGiving = false;
  #marked = 0;

  constructor(number: number, options: PartitionOptions) {
    this.number = number;
    this.#options = options;
  }

  /** The stores, while this process owns the partition. */
  get stores(): PartitionStores | null {
    return this.#owned?.state.ports ?? null;
  }

  /** The log, while this process owns the partition. */
  get log(): PartitionLog | null {
    return this.#owned?.log ?? null;
  }

  /** How many facts were decided here since this process owns the partition. */
  get decided(): number {
    return this.#owned?.state.records.added ?? 0;
  }

  /** The process that owns the partition, as far as this one knows. */
  get owner(): string | null {
    return this.#owned ? this.#options.process : (this.#seen?.process ?? null);
  }

  /** Whether this process is about to own the partition: it claims it, or reads its log. */
  get isTaking(): boolean {
    return this.#isTaking;
  }

  /** Counts the links of the partition's clients, by the processes that hold them. */
  countLinks(): ReadonlyMap<string, number> {
    const links = new Map<string, number>();
    const nodes = this.#options.nodes();
    for (const { nodeId, disconnectedAt } of this.#owned?.state.tables.connections.all(null) ?? []) {
      const process = disconnectedAt === null ? nodes.get(nodeId) : undefined;
      if (process !== undefined) links.set(process, (links.get(process) ?? 0) + 1);
    }
    return links;
  }

  /** The process that this one has given the partition to, as long as it is not known that it decides. */
  get givenTo(): string | null {
    const given = this.#isGiving ? null : this.#given;
    return given && this.#seen?.process === given.fence.process ? given.fence.process : null;
  }

  /** Whether this process has the state that it gave away, and Redis has forgotten the handover. */
  get isForgotten(): boolean {
    return this.#forgottenAt(this.#seen) !== null;
  }

  /** Whether Redis has lost something of the partition: a living process may still have it. */
  get isCut(): boolean {
    return this.#isCut(this.#seen);
  }

  /** Notes that a process decides in the partition. */
  accepted(by: string): void {
    if (this.#given?.fence.process === by) this.forgetGiven();
  }

  /** Notes how much of the log is confirmed, before fences are read. */
  mark(): void {
    this.#marked = this.#owned?.log.tail.confirmed ?? 0;
  }

  /** Whether a fence that was read after `mark` has what was confirmed by then. Only for a partition of this process. */
  agreesWith(text: string | null): boolean {
    const found = readFence(text);
    const own = this.#owned?.log.fence;
    if (!found || !own) return false;
    return found.process === own.process && found.epoch === own.epoch && found.number >= this.#marked;
  }

  /** Notes a fence that was read. One that is missing was lost: the owner writes it again, if it lives. */
  see(text: string | null): void {
    const fence = readFence(text);
    const seen = this.#seen;
    const [before, epoch] = [this.owner, seen?.epoch ?? 0];
    // What this process has given away and Redis has forgotten is its own again.
    this.#seen = fence ?? (this.#given ? null : this.#seen);
    if (!this.#isCut(fence)) this.#furthest = fence;
    if (fence !== null && fence.process !== this.#options.process) this.#keepGivenUnless(fence, seen);
    const isOther = this.owner !== before;
    // With a higher epoch the same owner may have lost the partition meanwhile, and what it was asked.
    if (!isOther && (this.#seen?.epoch ?? 0) <= epoch) return;
    if (isOther && !this.#isTaking && this.owner !== this.#options.process) this.#forgetFollowed();
    this.#options.onMove(this.number);
  }

  /**
   * Claims the partition if its owner is dead, or if there is none, and puts its log back. Resolves with whether this
   * process owns it now. Rejects if Redis does not answer, or with BrokenLog.
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
    await this.#take(next, before ?? next);
    if (isCut) this.#giveUp();
    return this.#keepEvidence();
  }

  /**
   * Puts back what the log has now, so that `accept` has little to do. Can be called again. Resolves with whether it has:
   * not while this process still decides here, because it has not noticed yet that another one has taken the partition.
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

  /** Returns what was read ahead of the log of this owner and epoch, or begins to. */
  #readerOf(of: string): Followed {
    if (this.#followed?.of === of) return this.#followed;
    this.#forgetFollowed();
    return (this.#followed = this.#newReader(of));
  }

  #forgetFollowed(): void {
    const followed = this.#followed;
    this.#followed = null;
    void followed?.reader.settled().then(() => followed.state.tables.discard());
  }

  /**
   * Decides in the partition from now on, if its owner, `from`, has set the fence to this process. Resolves with whether
   * it has.
   */
  accept(from: string): Promise<boolean> {
    return this.#alone(async () => {
      const text = await this.#options.client.get(this.#options.keys.of(this.number).fence);
      const fence = readFence(text);
      if (fence?.process !== this.#options.process) return false;
      await this.#take(fence, { process: from, epoch: fence.epoch - 1 });
      // A batch of this process shows that it decides, also if its note about that is lost.
      this.#owned?.state.noteNode(nodeOf(fence.process), fence.process);
      return this.#keepEvidence();
    });
  }

  /** Takes the partition, unless that is in progress. Resolves with whether this process owns it then. */
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
   * Gives the partition to another process, which must follow its log. Resolves with whether it did; otherwise another
   * process owns it, this one keeps it because Redis has not what was expected, or this one ends before Redis has its log.
   * While this runs, and afterwards, nothing is decided here. The state is kept until the other process decides.
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
      // After a loss of Redis that needs a snapshot.
      await turns.confirmed(owned.log);
      if (owned.log.isLost || !owned.log.isConfirmed) return false;
      const next = { ...owned.log.fence, process: to, epoch: owned.log.fence.epoch + 1 };
      // Without an answer it may be set.
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

  /** Goes on to decide: Redis may have lost a part of the log meanwhile. If it has another owner, that is found now. */
  #keep(owned: OwnedState): false {
    this.#owned = owned;
    this.#options.turns.settle();
    return false;
  }

  /** Ends to append. `given`: the fence that was set; null: it is not known. */
  #leave(owned: OwnedState, given: Fence | null): void {
    owned.snapshots.stop();
    this.#options.turns.drop(owned.log);
    if (this.#given?.owned === owned) owned.state.onFirst = () => {};
    else owned.state.tables.discard();
    this.#seen = given;
    if (given) this.#furthest = given;
  }

  /** Forgets what was given away if a process has decided since, also one that went on from what Redis still had. */
  #keepGivenUnless(fence: Fence, seen: Fence | null): void {
    if (!this.#given) return;
    const { fence: given } = this.#given;
    const isGiven = fence.process === given.process && fence.epoch === given.epoch;
    const wasForgotten = !isGiven && !this.#isGiving && seen !== null && seen.epoch < given.epoch;
    if (isAfter(fence, given) || (wasForgotten && isAfter(fence, seen))) this.forgetGiven();
  }

  /** Returns what was given away if a fence is of before that; otherwise null. */
  #forgottenAt(fence: Fence | null): Given | null {
    const given = this.#isGiving ? null : this.#given;
    return given && (fence === null || fence.epoch < given.fence.epoch) ? given : null;
  }

  /** Discards what was given away and is kept until the next owner decides. */
  forgetGiven(): void {
    this.#given?.owned.state.tables.discard();
    this.#given = null;
  }

  /** Goes on in what was given away: Redis has forgotten that, and its receiver has not set the fence again. */
  #takeBack({ owned: { state, room, log } }: Given, epoch: number): boolean {
    const { turns, log: logger } = this.#options;
    this.#given = null;
    const again = this.#decide({ state, room, head: log.head }, { ...log.fence, epoch });
    logger.warn({ partition: this.number }, 'Redis has forgotten that this was given away: it stays here');
    // If Redis has less of the log than this state, it gets a snapshot.
    turns.settle();
    turns.wake(again);
    return true;
  }

  /** Notes the living processes: links of the others are lost, also of a process whose node has another process now. */
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

  /** Ends snapshots. What was decided must be recorded by then. */
  stop(): void {
    this.#owned?.snapshots.stop();
    this.#owned = null;
    this.#given = null;
  }

  /** Whether Redis has lost something of the partition, if this is its fence. */
  #isCut(fence: Fence | null): boolean {
    return this.#furthest !== null && isBefore(fence, this.#furthest);
  }

  /** Ends what had not ended as unknown: what Redis has lost may have been a dispatch. */
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

  /** Replays the log, and begins to decide. This process owns the fence. `before`: the owner until then. */
  async #take(fence: Fence, before: Pick<Fence, 'process' | 'epoch'>): Promise<void> {
    const { clock, log, process } = this.#options;
    const began = clock.monotonic();
    // A snapshot may have replaced what was read ahead, or what is being read.
    const followed = await this.#readWhole(before, fence).catch(() => this.#readWhole(before, fence));
    const { state } = followed;
    this.#followed = null;
    this.#begin(followed, fence);
    const ms = Math.round(clock.monotonic() - began);
    if (fence.number > 0) log.info({ partition: this.number, process, acts: state.replay.acts, ms }, 'took over');
  }

  /** Puts back all of the log of this owner and epoch. Rejects if it does not end where the fence says. */
  async #readWhole(of: Pick<Fence, 'process' | 'epoch'>, { number }: Fence): Promise<Followed> {
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

  #newReader(of: string): Followed {
    const { client, keys, clock, loop, memory, recordRoom = RECORD_ROOM } = this.#options;
    const room = new RecordRoom({ ...recordRoom, where: 'Redis' });
    const state = new RecordedState({ ...memory, room });
    const { replay } = state;
    const reader = new StreamReader({ client, keys: keys.of(this.number), replay, clock, loop });
    return { state, room, reader, of };
  }

  #begin({ state, room, reader }: Followed, fence: Fence): void {
    const { replay } = state;
    // Time does not go back when another clock takes over.
    state.begin(replay.lastAt);
    room.start(reader.bytes.snapshot, { bytes: reader.bytes.batches, records: replay.journalActs });
    this.#decide({ state, room }, fence, () => resume(state, this.#options.clock.now()));
  }

  /** Decides in the partition from now on. `head`: see the parts of a log. `begin`: what is decided first. */
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

/** What a partition notes of a node whose process is gone. */
const NO_PROCESS = '';

/** Makes the connections as they were, after the log is put back. A snapshot keeps no bindings. */
function resume({ replay, tables, ports, plain }: RecordedState, now: number): void {
  for (const [hash, until] of replay.tickets) if (until > now) void plain.tickets.take(hash, until - now);
  if (replay.acts > 0) tables.dedup.resume(now);
  for (const { userId, clientId, nodeId, instanceId, epoch } of replay.finish(now))
    if (!tables.ledger.peekClient({ userId, clientId })?.binding)
      void ports.commands.rebind({ userId, clientId }, { nodeId, instanceId, epoch }, 'up');
  const unbound = tables.ledger.clients().filter(({ binding }) => binding === null);
  for (const { head } of unbound.toArray()) loseQueue(head, null, { tables, ports });
}

/** Marks the links of these nodes as lost: their commands wait for the clients again. Returns the connections. */
function loseLinks({ tables, ports }: RecordedState, nodes: ReadonlySet<string>): readonly Connection[] {
  const linked = tables.connections.all(null).filter((one) => one.disconnectedAt === null && nodes.has(one.nodeId));
  const lost: Connection[] = [];
  for (const { userId, clientId, epoch } of linked.toArray()) {
    const connection = ports.connections.disconnect({ userId, clientId }, epoch, 'node_lost');
    // The state answers in the same turn.
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
