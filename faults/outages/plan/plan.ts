/** Defines the types of a plan (its faults, its load and its promises), which the lists of plans use. */
import type { RedisForm } from '../../../test/kit/redis-forms.ts';
import type { Role, Work } from '../log/events.ts';
import type { PromiseName } from '../judge/promises.ts';

/**
 * The kinds of faults that a run can carry out:
 * - `links-away-pausing`: the connections of the clients break, and new ones are refused until calls are paused.
 * - `relay-kill-pausing`: a pause, around whose answer a relay is killed, and then restarted.
 * - `relay-kill`: kill -9, then a restart. `relays-kill`: the same of all relays at once. `relay-pause`: SIGSTOP for a while. `relay-drain`: SIGTERM, then a restart.
 * - `relay-tear`: kill -9, bytes of an unfinished write at the end of its journal, then a restart. `relay-halt`: SIGTERM,
 * kill -9 while it closes, then a restart. `relay-power`: kill -9, a loss of what its data directory had not synced,
 * then a restart. `relay-shut`: kill -9, a start while its data directory is read-only, then a restart. `data-full`:
 * for a while the disk of the data directory is full.
 * - `relay-clock`: for a while the clock of the day of a relay is wrong, by up to a minute.
 * - `relays-full`: all relays but the target are killed at once, and started again after a while.
 * - `relay-twin`: a second process of a node is started while the first one runs. `relay-swap`: the same while the
 * first one is paused; it then continues beside the second.
 * - `redis-kill`: kill -9, then a restart. `redis-cut`: the same, and the last second of its log is cut off.
 * `redis-pause`: SIGSTOP for a while. `all-reset`: all connections of all relays to Redis break once.
 * - `redis-failover`: kill -9 of the master. It is restarted when the sentinel has made the replica the master.
 * `cluster-failover`: kill -9 of a master of a cluster, whose replica takes its place. `slots-move`: the slot of some
 * partitions moves to another master, key by key. `handover-failover`: a replica without a handover that is in progress
 * becomes the master. If no partition is about to move, a relay is killed and restarted first.
 * - `hole`, `reset`, `half-open`, `drop-reply`, `slow`, `slices`: faults of the connections from one relay to Redis.
 * `all-holes`: a black hole for all relays at once.
 * - `redis-break`: all connections to Redis break, and then, for each purpose, the next two connections at the command
 * whose number is the number of the fault; the first fault breaks at SUBSCRIBE. `relay-break`: a relay stops and
 * starts, and at its start the connection for commands breaks at that command, once.
 * - `redis-flap`: the connections of one relay to Redis break 300 times a minute. `redis-kills`: kill -9 of Redis and a
 * restart, 60 times a minute. `mail-cut`: Redis closes all connections that subscribe.
 * - `links-reset`: the connections of the clients break. `links-late`: the same, and the relays learn of it only after
 * a while.
 * - `links-deaf`: the connections of the clients swallow what the relays send, break for the clients only, and the relays
 * learn of it last. `links-mute`: they swallow what the clients send.
 * - `links-hello`: the connections of the clients break, and the hello of each next one reaches its relay only when the
 * client, which has given it up, is connected by a later one.
 * - `clients-freeze`: SIGSTOP of a client process for a while. `clients-kill`: a client process is killed and restarted
 * with new instances. `clients-forge`: the same, and instances that never received the unfinished commands of the old
 * ones report them first.
 * - `spill-remove`, `spill-flip`, `spill-link`: some stored payloads are removed, changed in one bit, or replaced by
 * links. `spill-shut`, `spill-full`: for a while the folder cannot be written, or is full.
 */
export type FaultKind =
  | 'relay-kill'
  | 'relay-kill-pausing'
  | 'relays-kill'
  | 'relay-pause'
  | 'relay-drain'
  | 'relay-tear'
  | 'relay-halt'
  | 'relay-power'
  | 'relay-shut'
  | 'data-full'
  | 'relay-clock'
  | 'relays-full'
  | 'relay-twin'
  | 'relay-swap'
  | 'redis-kill'
  | 'redis-cut'
  | 'redis-pause'
  | 'redis-failover'
  | 'cluster-failover'
  | 'slots-move'
  | 'handover-failover'
  | 'hole'
  | 'all-holes'
  | 'all-reset'
  | 'reset'
  | 'half-open'
  | 'drop-reply'
  | 'slow'
  | 'slices'
  | 'redis-break'
  | 'relay-break'
  | 'redis-flap'
  | 'redis-kills'
  | 'mail-cut'
  | 'links-reset'
  | 'links-late'
  | 'links-deaf'
  | 'links-mute'
  | 'links-hello'
  | 'links-away-pausing'
  | 'clients-freeze'
  | 'clients-kill'
  | 'clients-forge'
  | 'spill-remove'
  | 'spill-flip'
  | 'spill-link'
  | 'spill-shut'
  | 'spill-full';

export type Fault = {
  readonly id: number;
  /** The time of the fault after the start of the load, in milliseconds. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** The index (from 0) of the relay or client process that the fault hits. */
  readonly target: number;
  readonly holdMs: number;
  /** In a plan with aimed kills: the role in a call of the relay to kill, which then determines the target. */
  readonly role?: Role;
  /** The work that an owner must be doing at the kill; null: any. */
  readonly work?: Work | null;
};

/** A range of times, in milliseconds. */
export type Range = readonly [fromMs: number, toMs: number];

export type Plan = {
  readonly name: string;
  readonly says: string;
  readonly kinds: readonly FaultKind[];
  readonly gap: Range;
  readonly hold: Range;
  /** The number of faults that a run has by default. */
  readonly faults: number;
  /** The arguments of Redis, without its address. */
  readonly redis: readonly string[];
  readonly durability: 'memory' | 'aof_everysec' | 'aof_always';
  /** Whether the faults make the store lose data. */
  readonly loss: boolean;
  /** Whether the target is always the last relay, which then has only callers and no clients. */
  readonly callersOnly: boolean;
  /**
   * Whether kills are aimed: each kill hits a relay by its role in a call, mostly in the middle of a takeover, a
   * handover or a snapshot. The relays must own partitions.
   */
  readonly aimed: boolean;
  /** The fraction of commands that two callers invoke at the same time. */
  readonly doubled: number;
  /** The maximum duration of a handler, in milliseconds. */
  readonly workMs: number;
  /** How long a command may wait for its client to connect, in milliseconds. */
  readonly connectMs: number;
  /** The time limit for a client's answer, in milliseconds. */
  readonly respondMs: number;
  /** The promises that a run must keep in addition to the invariants. */
  readonly promises: readonly PromiseName[];
  /** Whether the targets are hit one after the other, instead of at random. */
  readonly rolling: boolean;
  /**
   * Whether the store is a master and its replica under a sentinel, instead of a single Redis. Relays then connect to
   * the store without a proxy.
   */
  readonly sentinel: boolean;
  /**
   * Whether the store is a master and a replica that the run itself can make the master. A proxy leads each relay to
   * the present master.
   */
  readonly pair: boolean;
  /** Further settings of the relays. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * The form of Redis, if all relays connect to it through proxies that count commands. Null: a single Redis with a
   * proxy for each relay, or a sentinel.
   */
  readonly form: RedisForm | null;
  /**
   * The number of characters of params and result in addition to their canary. Large payloads are stored in a directory
   * that the relays share.
   */
  readonly bytes: number;
  /** Whether all relays are asked once more for each command's end after the load. */
  readonly again: boolean;
  /** The number of clients that receive commands. */
  readonly clients: number;
  /** Whether people pause and resume calls and revoke tokens during the whole run. The relays must own partitions. */
  readonly stops: boolean;
  /** With a data directory: the relay's setting DATA_SYNC, which determines when it syncs its records. */
  readonly sync: '100' | 'always' | 'off';
};

/** A plan as it is written in a list. An absent member has the default that most plans use. */
export type PlanRow = Pick<Plan, 'name' | 'says' | 'kinds'> & Partial<Plan>;
