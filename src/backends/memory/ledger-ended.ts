/**
 * Keeps ended commands until their idempotency window is over. If there is no room, it drops results first, then reduces
 * records to marks of their ids, and forgets the ids last.
 */
import type { CommandMark } from '../../core/commands/command.ts';
import { isCode } from '../../core/errors.ts';
import type { CommandKey } from '../../core/ids.ts';
import { utf8Length } from '../../core/json.ts';
import type { Log } from '../../core/ports.ts';
import type { Metrics } from '../../core/metrics.ts';
import type { ShareName } from '../../core/shares/share-bounds.ts';
import type { Shares } from '../../core/shares/shares.ts';
import { CommandMarks } from './commands-marks.ts';
import { type Entry, type UserLedger, UserLedgers, hasNoRecord, hasNoResult } from './ledger-entry.ts';
import { SparseQueue } from './sparse-queue.ts';
import { createEvidence, type EvidenceKinds, type EvidenceTable } from './evidence.ts';
import { NO_DROPS } from './history-rows.ts';

export type EndedOptions = {
  readonly shares: Shares;
  /** The evidence of the process. If absent, the tables of this store are the only evidence of their kind. */
  readonly evidence?: Pick<EvidenceKinds, 'results' | 'records'> | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
  /** How long the id of an ended command is remembered, in milliseconds. */
  readonly windowMs: number;
  /** The secret with which ids in marks are hashed. */
  readonly markSecret: string;
  /** How long a result is retained at most, in milliseconds. */
  readonly retentionMs: number;
  /** Called after the whole record of a command was dropped. */
  readonly onGone: (entry: Entry) => void;
  /** Receives what is dropped for lack of room. */
  readonly drops?: RecordDrops | undefined;
};

/**
 * Receives the results and records that are dropped for lack of room. The choice depends on what all users hold, so a
 * replay cannot repeat it, and a journal must record it.
 */
export interface RecordDrops {
  /**
   * True while a journal is replayed. Then nothing is dropped for lack of room, because the journal records the drops.
   */
  readonly replaying: boolean;
  /** The drops after this call do not belong to the act that is in progress. */
  beginApart(): void;
  resultDropped(entry: Entry): void;
  /** Called before a record is reduced to its mark, or dropped without a mark. */
  recordDropped(entry: Entry): void;
}

/**
 * The ended commands. Each is kept until its window is over. Three shares bound them. Beyond `result_bytes`, results
 * are dropped. Beyond `ended_records`, records are reduced to their marks. `marks` bounds the number of marks. Results
 * and records are dropped oldest first, from the user who is most over their guarantee, or from all users if none is
 * over. Each method takes amortised constant time.
 */
export class EndedCommands {
  readonly users: UserLedgers;
  readonly #options: EndedOptions;
  /** The commands with a whole record, oldest first. The queue of each user contains the same entries. */
  readonly #records = new SparseQueue<Entry>(hasNoRecord);
  readonly #results = new SparseQueue<Entry>(hasNoResult);
  readonly marks: CommandMarks<UserLedger>;
  readonly #drops: RecordDrops;
  readonly #evidence: Pick<EvidenceKinds, 'results' | 'records'>;
  readonly #resultTable: EvidenceTable;
  readonly #recordTable: EvidenceTable;
  #resultBytes = 0;
  #shortUntil = -Infinity;
  #now = 0;

  constructor(options: EndedOptions) {
    this.#options = options;
    this.#drops = options.drops ?? NO_DROPS;
    this.#evidence = options.evidence ?? createEvidence(options.shares);
    this.#resultTable = this.#tableOf('results', {
      held: () => this.#resultBytes,
      drop: (old) => this.giveUp(old, 'share'),
    });
    this.#recordTable = this.#tableOf('records', { held: () => this.#records.size, drop: (old) => this.reduce(old) });
    this.users = new UserLedgers(options.shares);
    const { windowMs, markSecret } = options;
    this.marks = new CommandMarks({
      windowMs,
      secret: markSecret,
      onDropped: (user, count) => this.#releaseMarks(user, count),
    });
  }

  /** The number of ended commands with a whole record. */
  get size(): number {
    return this.#records.size;
  }

  /** The size of the packed marks, in bytes. */
  get markBytes(): number {
    return this.marks.bytes;
  }

  /** Returns whether listings of this user (null: of any user) lack records that were reduced to marks early. */
  short(userId: string | null, now: number): boolean {
    return now < (userId === null ? this.#shortUntil : (this.users.find(userId)?.shortUntil ?? -Infinity));
  }

  mark(key: CommandKey, digest: string | null, now: number): CommandMark | 'conflict' | null {
    return this.marks.find(key, digest, now);
  }

  add(entry: Entry): void {
    const { user } = entry.client;
    this.#records.push(entry);
    user.records.push(entry);
    user.holdings.take('ended_records', 1);
    if (entry.result === null) return;
    entry.resultBytes = utf8Length(entry.result);
    this.#results.push(entry);
    user.results.push(entry);
    user.holdings.take('result_bytes', entry.resultBytes);
    this.#resultBytes += entry.resultBytes;
  }

  /** Drops the results, records and marks that have been kept for their full time. */
  expire(now: number): void {
    this.#now = now;
    const { windowMs, retentionMs } = this.#options;
    if (retentionMs < windowMs) {
      for (let old = this.#results.first(); old && endOf(old) + retentionMs <= now; old = this.#results.first())
        this.giveUp(old, 'retention');
    }
    for (let old = this.#records.first(); old && endOf(old) + windowMs <= now; old = this.#records.first()) {
      const { client, marked } = old;
      this.#dropRecord(old);
      this.#releaseMarks(client.user, marked ? 1 : 0);
    }
    this.marks.expire(now);
  }

  /**
   * Drops results and records until their totals are within the limits. `isAct`: whether the caller is an act that
   * added some. Returns the same as `EvidenceKind.keepWithin`.
   */
  keepWithin(now: number, isAct = true): boolean {
    if (this.#drops.replaying) return true;
    const { result_bytes: results, ended_records: records } = this.#options.shares.bounds;
    const { results: ofResults, records: ofRecords } = this.#evidence;
    return [
      ofResults.keepWithin(results.total ?? Infinity, now, isAct ? this.#resultTable : null),
      ofRecords.keepWithin(records.total ?? Infinity, now, isAct ? this.#recordTable : null),
    ].every(Boolean);
  }

  /** Gives up the tables: no user holds anything of them afterwards. */
  discard(): void {
    this.#evidence.results.remove(this.#resultTable);
    this.#evidence.records.remove(this.#recordTable);
    for (const { holdings } of this.users.values())
      for (const share of HELD) holdings.release(share, holdings.held(share));
  }

  #tableOf(
    kind: 'results' | 'records',
    { held, drop }: { readonly held: () => number; readonly drop: (old: Entry) => void },
  ): EvidenceTable {
    const oldest = (userId: string | null): Entry | undefined => {
      if (this.#drops.replaying) return undefined;
      const queues = userId === null ? { results: this.#results, records: this.#records } : this.users.find(userId);
      return queues?.[kind].first();
    };
    const drops = this.#drops;
    const table: EvidenceTable = {
      get isFilling() {
        return drops.replaying;
      },
      get held() {
        return held();
      },
      oldestAt() {
        const old = oldest(null);
        return old ? endOf(old) : Infinity;
      },
      dropOldest: (userId, now, isApart) => {
        const old = oldest(userId);
        if (!old) return false;
        if (isApart) drops.beginApart();
        this.#now = now;
        drop(old);
        return true;
      },
    };
    this.#evidence[kind].add(table);
    return table;
  }

  /** Drops the result of an ended command. */
  giveUp(entry: Entry, reason: 'retention' | 'share'): void {
    if (reason === 'share') this.#drops.resultDropped(entry);
    this.#options.metrics.count('results_given_up', reason);
    entry.expireResult();
    this.#dropResult(entry);
  }

  #dropResult(entry: Entry): void {
    if (entry.result === null) return;
    const { user } = entry.client;
    entry.result = null;
    this.#results.noteDeleted();
    user.results.noteDeleted();
    user.holdings.release('result_bytes', entry.resultBytes);
    this.#resultBytes -= entry.resultBytes;
  }

  #dropRecord(entry: Entry): void {
    const { user } = entry.client;
    this.#dropResult(entry);
    entry.reduced = true;
    this.#records.noteDeleted();
    user.records.noteDeleted();
    user.holdings.release('ended_records', 1);
    this.#options.onGone(entry);
  }

  /**
   * Reduces a record to its mark. If no room was reserved for a mark, drops the record without one. This happens only
   * to ids that the relay made. The greatest id without a mark is remembered as `unmarkedId`: callers may not choose an
   * id that has the form of the relay's ids and is not greater, because a dropped command may have had that id.
   */
  reduce(entry: Entry): void {
    this.#drops.recordDropped(entry);
    const { commandId, client, marked, result } = entry;
    const { user } = client;
    const { digest, outcome, execution, error, resultExpired } = entry.summary;
    this.#options.metrics.count('records_reduced');
    if (result !== null) this.#options.metrics.count('results_given_up', 'record');
    const endedAt = endOf(entry);
    this.#dropRecord(entry);
    user.shortUntil = Math.max(user.shortUntil, endedAt + this.#options.windowMs);
    this.#shortUntil = Math.max(this.#shortUntil, user.shortUntil);
    if (!marked) return this.#forgetUnmarked(user, commandId, endedAt);
    const mark: CommandMark = {
      // The default value only satisfies the type checker: every ended command has an outcome.
      outcome: outcome ?? 'outcome_unknown',
      execution,
      errorCode: error && isCode(error.code) ? error.code : null,
      endedAt,
      resultExpired: resultExpired || result !== null,
    };
    // If the snapshot was written after the mark was added, the snapshot contains the mark already.
    if (this.#drops.replaying && this.mark(entry, null, endedAt) !== null) return user.holdings.release('marks', 1);
    this.marks.add(entry, digest, { mark, owner: user });
  }

  /** Restores the time until which listings of a user lack records, and the greatest id without a mark. */
  restoreShort(userId: string, { shortUntil, unmarkedId }: Pick<UserLedger, 'shortUntil' | 'unmarkedId'>): void {
    const user = this.users.of(userId);
    user.shortUntil = Math.max(user.shortUntil, shortUntil);
    this.#shortUntil = Math.max(this.#shortUntil, shortUntil);
    if (unmarkedId === '') return;
    if (unmarkedId > user.unmarkedId) user.unmarkedId = unmarkedId;
    this.marks.watch(user, shortUntil - this.#options.windowMs);
  }

  #forgetUnmarked(user: UserLedger, commandId: string, endedAt: number): void {
    this.#options.metrics.count('ids_forgotten');
    if (user.unmarkedId === '')
      this.#options.log.warn({ userId: user.userId }, 'no room for marks: ended commands are forgotten early');
    if (commandId > user.unmarkedId) user.unmarkedId = commandId;
    this.marks.watch(user, endedAt);
  }

  /** Releases marks of a user, and forgets the user once the user has nothing left. */
  #releaseMarks(user: UserLedger, count: number): void {
    user.holdings.release('marks', count);
    if (this.#now >= user.shortUntil) user.unmarkedId = '';
    this.users.dropIdle(user, this.#now);
  }
}

/** The shares that live and ended commands count in. */
const HELD = ['queued_bytes', 'result_bytes', 'ended_records', 'marks'] as const satisfies readonly ShareName[];

function endOf({ terminalAt }: Entry): number {
  return terminalAt ?? 0;
}
