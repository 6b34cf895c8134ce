/**
 * Decides what may still be added to a data directory: nothing while the disk is full, and for each user at most a
 * share of the data recorded since the last snapshot.
 */
import { fail } from '../../core/errors.ts';
import {
  RECORDED_SHARE,
  SHARE_MESSAGE,
  shareRefusal,
  type RefusedShare,
  type ShareRefusal,
} from '../../core/shares/share-bounds.ts';

declare const claimed: unique symbol;
/** Permission to record an act that adds data of a user. Only `RecordRoom.claim` returns one. */
export type Room = { readonly userId: string; readonly [claimed]: true };
/**
 * An act of a user that needs no room, because it ends or removes something, or is a step of a command that was
 * admitted. For each act that got room, there are only a few such acts.
 */
export type EndingAct = { readonly userId: string };

/** The amount that a user wants to record, in bytes. A number of characters is close enough. */
export type Growth = { readonly userId: string; readonly bytes: number };

/**
 * A cost estimates how long a start takes to read something. Its unit is the time for one byte of journal text. The due
 * cost is the cost of the journal at which a snapshot is due. It is twice the length of the last snapshot, but at least
 * `dueCost` (by default 64 MiB), and at most `dueAtMost` times `dueCost` (by default 128 MiB).
 */
export type RecordRoomOptions = {
  /** The least due cost. Default: DUE_COST. */
  readonly dueCost?: number;
  /**
   * The greatest due cost, as a multiple of `dueCost`. Default: DUE_AT_MOST. This bound keeps a start within seconds.
   */
  readonly dueAtMost?: number;
  /** The limit of all users together (the share `recorded_bytes`), as a multiple of the due cost. Default: TOTAL. */
  readonly total?: number;
  /** What a refusal says is full while `full` is set. Default: the disk of the data directory. */
  readonly where?: string;
};

const DUE_COST = 64 * 1024 * 1024;
const DUE_AT_MOST = 2;
const TOTAL = 4;
/** The guarantee of each user, as a fraction of the total. */
const GUARANTEED_PART = 1 / 16;
/** The cost of a record besides its bytes. A record of a call has at most about as many bytes. */
const RECORD_COST = 256;
/** A snapshot that is being written counts as late once the cost exceeds the due cost by this factor. */
const LATE = 1.25;

type ByUser = Map<string, number>;

/**
 * Counts, for each user, the cost of the records that no snapshot covers, and refuses a user who would add too much. So
 * no single user can fill the directory or make the next start long. The rule is the common rule of shares
 * (`shareRefusal`). A user who would exceed the guarantee is refused while more than three quarters of the total are in
 * use. A user within the guarantee is refused only once the total and that user's part of a small reserve are used up.
 */
export class RecordRoom {
  /** True while the log has no room: then only acts that need no room are recorded. The log sets this field. */
  full = false;
  /** Called when a snapshot becomes due, in the turn that writes records. */
  onDue: () => void = () => {};
  readonly #options: Required<RecordRoomOptions>;
  #dueCost: number;
  /**
   * The cost of the records written before the last snapshot began, by user. Emptied when that snapshot is complete.
   */
  #older: ByUser = new Map();
  /** The cost of the records written since the last snapshot began, by user. */
  #newer: ByUser = new Map();
  /** The estimated cost of the records added in this turn of the event loop, by user. */
  #turn: ByUser = new Map();
  #turnCost = 0;
  #turnRecords = 0;
  /**
   * The cost of all written records that no complete snapshot covers, including the records that the start has read.
   */
  #used = 0;
  /** The part of `#used` that was written before the last snapshot began. */
  #usedByOlder = 0;
  #omitted = false;
  /** True if `want` was called and no snapshot has begun since. */
  #isWanted = false;

  constructor({
    dueCost = DUE_COST,
    dueAtMost = DUE_AT_MOST,
    total = TOTAL,
    where = 'The disk of the data directory',
  }: RecordRoomOptions = {}) {
    this.#options = { dueCost, dueAtMost, total, where };
    this.#dueCost = dueCost;
  }

  /**
   * Sets the cost of the files that the start has read: the bytes of the snapshot, and the journals after it. No user
   * is charged for them.
   */
  start(snapshotBytes: number, journals: { readonly bytes: number; readonly records: number }): void {
    this.#used = journals.bytes + journals.records * RECORD_COST;
    this.#setDue(snapshotBytes);
  }

  /** Whether a snapshot is due. */
  get due(): boolean {
    return this.#isWanted || this.#used > this.#dueCost;
  }

  /** The cost of the records that no snapshot covers, not even the one that is being written. */
  get uncovered(): number {
    return this.#used - this.#usedByOlder;
  }

  /** Makes a snapshot due. */
  want(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.onDue();
  }

  /** Whether the snapshot that is being written must be completed soon, so that no user is refused. */
  get late(): boolean {
    return this.#used > this.#dueCost * LATE;
  }

  /** Whether a payload was left out of the journal for lack of room since the last snapshot began. */
  get omitted(): boolean {
    return this.#omitted;
  }

  /** Throws `store_full` while `full` is set. */
  requireSpace(): void {
    if (!this.full) return;
    fail('store_full', `${this.#options.where} is full; ends of commands are still recorded.`, {
      retryAfterMs: RETRY_AFTER_MS,
    });
  }

  /**
   * Returns permission to record. Throws `store_full` while `full` is set. Throws `share_exceeded` or `store_full`
   * (with the share `recorded_bytes`) if this user would add too much.
   */
  claim({ userId, bytes }: Growth): Room {
    this.requireSpace();
    const refusal = this.#refusal(userId, bytes);
    if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share: RECORDED_SHARE, retryAfterMs: RETRY_AFTER_MS });
    return { userId } as Room;
  }

  /** Returns why `claim` would refuse; null if it would not. `share` is null if `full` is set. */
  refusal({ userId, bytes }: Growth): { readonly code: ShareRefusal; readonly share: RefusedShare | null } | null {
    if (this.full) return { code: 'store_full', share: null };
    const code = this.#refusal(userId, bytes);
    return code && { code, share: RECORDED_SHARE };
  }

  /** Whether `claim` would succeed. */
  has(userId: string, bytes: number): boolean {
    return !this.full && this.#refusal(userId, bytes) === null;
  }

  /** Notes that a payload was left out of the journal. The next snapshot will contain it. */
  omit(): void {
    this.#omitted = true;
  }

  /** Counts a record that will be written at the end of this turn of the event loop. */
  add(userId: string, chars: number): void {
    this.#turn.set(userId, (this.#turn.get(userId) ?? 0) + chars + RECORD_COST);
    this.#turnCost += chars + RECORD_COST;
    this.#turnRecords++;
  }

  /** Called when the records of a turn have been written. `bytes`: their length on the disk. */
  written(bytes: number): void {
    const cost = bytes + this.#turnRecords * RECORD_COST;
    const part = this.#turnCost === 0 ? 0 : cost / this.#turnCost;
    for (const [userId, estimated] of this.#turn) addTo(this.#newer, userId, estimated * part);
    this.#turn.clear();
    this.#turnCost = 0;
    this.#turnRecords = 0;
    const before = this.due;
    this.#used += cost;
    if (this.due && !before) this.onDue();
  }

  /** Called when a snapshot begins. The snapshot will cover all records written before. */
  beginSnapshot(): void {
    // If the previous snapshot failed, `#older` still holds the cost of the records it should have covered. This
    // snapshot covers them as well.
    for (const [userId, cost] of this.#newer) addTo(this.#older, userId, cost);
    this.#newer = new Map();
    this.#usedByOlder = this.#used;
    this.#omitted = false;
    this.#isWanted = false;
  }

  /** Called when the snapshot is complete and the earlier journals are removed. `bytes`: the length of the snapshot. */
  endSnapshot(bytes: number): void {
    this.#setDue(bytes);
    this.#older = new Map();
    this.#used -= this.#usedByOlder;
    this.#usedByOlder = 0;
  }

  /**
   * A start needs as long for one byte of a snapshot as for about two bytes of a journal (plus RECORD_COST for each
   * record). So a start needs about as long for a journal of the due cost as for the snapshot before it.
   */
  #setDue(snapshotBytes: number): void {
    const { dueCost, dueAtMost } = this.#options;
    this.#dueCost = Math.min(Math.max(dueCost, 2 * snapshotBytes), dueAtMost * dueCost);
  }

  #refusal(userId: string, bytes: number): ShareRefusal | null {
    const total = this.#options.total * this.#dueCost;
    const held = (this.#older.get(userId) ?? 0) + (this.#newer.get(userId) ?? 0) + (this.#turn.get(userId) ?? 0);
    const bound = { guarantee: Math.floor(total * GUARANTEED_PART), total };
    const amount = bytes + RECORD_COST;
    // A record is charged to the user whose data it contains, even if an administrator acted. So `admin` is always
    // false, and nobody uses the reserve for administrators.
    return shareRefusal(bound, { held, used: this.#used + this.#turnCost, amount, admin: false });
  }
}

/**
 * How long a refused user should wait before the next attempt, in milliseconds: about as long as a snapshot takes, and
 * as long as the interval between two checks of a full disk.
 */
const RETRY_AFTER_MS = 1_000;

function addTo(costs: ByUser, userId: string, cost: number): void {
  costs.set(userId, (costs.get(userId) ?? 0) + cost);
}
