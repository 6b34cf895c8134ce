/**
 * The state behind a log: a memory backend whose acts are recorded, and which can be restored from a log. It does not
 * depend on the form of the log.
 */
import type { AuditStore } from '../../core/audit/audit-store.ts';
import type { Backend } from '../../core/backend.ts';
import { keyOf } from '../../core/ids.ts';
import type { Clock } from '../../core/ports.ts';
import { createMemoryState, type MemoryBackend, type MemoryOptions, type MemoryTables } from '../memory/backend.ts';
import { RecordingTransaction, createWatcher, recordedPorts } from './recording.ts';
import { ActWriter, NO_USER } from './records.ts';
import { Replay } from './replay.ts';
import type { RecordRoom } from './room.ts';

export type StateOptions = Omit<MemoryOptions, 'watcher' | 'makeTransaction' | 'audit' | 'markSecret'> & {
  readonly room: RecordRoom;
  readonly audit?: AuditStore | undefined;
  readonly markSecret: string;
};

type RecordedPorts = Omit<Backend, 'ready' | 'close'>;

/** A memory backend with records. First `replay` restores it; after `begin` it decides acts and records them. */
export class RecordedState {
  /** Called when the first fact of a turn is recorded. */
  onFirst: () => void = () => {};
  readonly records: ActWriter;
  readonly tables: MemoryTables;
  readonly replay: Replay;
  /** During the replay, this clock shows the time of the act that is being restored. */
  readonly clock: HeldClock;
  /** The backend without recording, for changes that must not be recorded. */
  readonly plain: MemoryBackend;
  readonly ports: RecordedPorts;
  readonly #watcher: ReturnType<typeof createWatcher>;

  constructor({ room, ...memory }: StateOptions) {
    this.clock = new HeldClock(memory.clock);
    this.records = new ActWriter({
      onFirst: () => this.onFirst(),
      onAct: (userId, chars) => room.add(userId, chars),
    });
    this.#watcher = createWatcher(this.records, this.clock);
    let transaction: RecordingTransaction | null = null;
    const { backend, tables } = createMemoryState({
      ...memory,
      clock: this.clock,
      watcher: this.#watcher,
      makeTransaction: (acts) => (transaction = new RecordingTransaction(acts, this.records, room)),
    });
    this.plain = backend;
    this.tables = tables;
    this.#watcher.replaying = true;
    this.replay = new Replay({ tables, onTime: (at) => this.clock.hold(at) });
    this.ports = recordedPorts(backend, {
      tables,
      clock: this.clock,
      records: this.records,
      tickets: this.replay.tickets,
      space: room,
      within: (permit, act) => (transaction ? transaction.within(permit, act) : act()),
    });
  }

  /** Records which process holds the links of a node. */
  noteNode(nodeId: string, process: string): void {
    this.replay.nodes.set(nodeId, process);
    this.records.begin(this.clock.now(), NO_USER);
    this.records.add('node', nodeId, process);
  }

  /** Ends the replay. From now on acts are decided and recorded. `notBefore`: no act gets an earlier time. */
  begin(notBefore = 0): void {
    this.clock.release(notBefore);
    // The drops that memory reported during the replay are in the log already, so these records are discarded.
    this.records.take();
    this.#watcher.replaying = false;
  }
}

/** A clock that can be set to the time of a recorded act. */
class HeldClock implements Clock {
  readonly #clock: Clock;
  #held: number | null = null;
  #notBefore = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  hold(at: number): void {
    this.#held = at;
  }

  /** Shows the current time again, but no time before `notBefore`. */
  release(notBefore: number): void {
    this.#held = null;
    this.#notBefore = notBefore;
  }

  now(): number {
    return this.#held ?? Math.max(this.#clock.now(), this.#notBefore);
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(ms: number, run: () => void) {
    return this.#clock.after(ms, run);
  }

  every(ms: number, run: () => void) {
    return this.#clock.every(ms, run);
  }
}

/** Ends each unfinished command as unknown, because the missing records may have contained its dispatch. */
export function giveUpAll({ tables, ports }: Pick<RecordedState, 'tables' | 'ports'>): void {
  const queues = tables.ledger.clients().toArray();
  const live = queues.flatMap(({ waiting, running }) => [...waiting, ...running].map(keyOf));
  for (const key of live) void ports.commands.settle(key, { kind: 'give_up', code: 'store_lost', instanceId: null });
}
