/**
 * Decides what may still be added to a data directory: nothing while its disk is full, and of each user only a share of
 * what was recorded since the last snapshot.
 */
import { fail } from '../../core/errors.ts';
import {
  RECORDED_SHARE,
  SHARE_MESSAGE,
  shareRefusal,
  type RefusedShare,
  type ShareRefusal,
} from '../../core/shares/share-bounds.ts';

declare const asked: unique symbol;
/** Permission to record an act of a user that adds to what is kept. Only `RecordRoom.claim` gives one. */
export type Room = { readonly userId: string; readonly [asked]: true };
/**
 * An act of a user that needs no room: it ends or removes something, or is a step of something that was admitted. So
 * there are at most a few such acts for each one that had room.
 */
export type EndingAct = { readonly userId: string };

/** What a user wants to record, in bytes or about as many characters. */
export type Growth = { readonly userId: string; readonly bytes: number };

/**
 * Costs are in bytes: the time that a start needs for a part of the journal, as the length of journal text that takes as
 * long. The due cost is the cost of the journal at which a snapshot is due. It is twice the length of the last snapshot,
 * but at least `dueCost` (by default 64 MiB), and at most `dueAtMost` times `dueCost` (by default 128 MiB).
 */
export type RecordRoomOptions = {
  /** The least due cost; absent: DUE_COST. */
  readonly dueCost?: number;
  /** The greatest due cost, as a multiple of `dueCost`; absent: DUE_AT_MOST. It keeps a start within seconds. */
  readonly dueAtMost?: number;
  /** What all users together may record (`recorded_bytes`), as a multiple of the due cost; absent: TOTAL. */
  readonly total?: number;
  /** The thing that is full when `full` is set, for the message of a refusal; absent: the disk of the data directory. */
  readonly where?: string;
};

const DUE_COST = 64 * 1024 * 1024;
const DUE_AT_MOST = 2;
const TOTAL = 4;
/** The guarantee of each user, as a part of the total. */
const GUARANTEED_PART = 1 / 16;
/** The cost of a record besides its bytes. The record of a call has at most as many bytes as this. */
const RECORD_COST = 256;
/** A snapshot that is being written is late once the cost is this multiple of the due cost. */
const LATE = 1.25;

type ByUser = Map<string, number>;

/**
 * Counts, for each user, the cost of the journal that no snapshot covers, and refuses a user who would add too much. So
 * one user can neither fill the directory nor make the next start long. The rule is that of all shares (`shareRefusal`):
 * a user who would hold more than the guarantee is refused while more than three quarters of the total are in use; a
 * user who would hold less, only once the total and that user's part of a small reserve are used up.
 */
export class RecordRoom {
  /** Whether the log can take no more: only what needs no room is recorded. The log sets it. */
  full = false;
  /** Called when a snapshot becomes due, while records are being written. */
  onDue: () => void = () => {};
  readonly #options: Required<RecordRoomOptions>;
  #dueCost: number;
  /** The costs of what was written before the last snapshot began, until a snapshot is complete. */
  #older: ByUser = new Map();
  /** The costs of what was written since then. */
  #newer: ByUser = new Map();
  /** What was added in this turn of the event loop, estimated by its characters. */
  #turn: ByUser = new Map();
  #turnCost = 0;
  #turnRecords = 0;
  /** The cost of everything written that no complete snapshot covers, of all users and of what the start has read. */
  #used = 0;
  /** The part of `#used` that was written before the last snapshot began. */
  #usedByOlder = 0;
  #omitted = false;
  /** Whether `want` made a snapshot due that has not begun yet. */
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

  /** Notes what a start has read: the bytes of the snapshot, and the journals after it. No user is charged for them. */
  start(snapshotBytes: number, journals: { readonly bytes: number; readonly records: number }): void {
    this.#used = journals.bytes + journals.records * RECORD_COST;
    this.#setDue(snapshotBytes);
  }

  /** Whether a snapshot is due. */
  get due(): boolean {
    return this.#isWanted || this.#used > this.#dueCost;
  }

  /** The cost of what no snapshot covers, not even the one that is being written. */
  get uncovered(): number {
    return this.#used - this.#usedByOlder;
  }

  /** Makes a snapshot due. */
  want(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.onDue();
  }

  /** Whether the snapshot that is being written must be completed soon, before users are refused. */
  get late(): boolean {
    return this.#used > this.#dueCost * LATE;
  }

  /** Whether a payload was left out of the journal since the last snapshot began, because there was no room for it. */
  get omitted(): boolean {
    return this.#omitted;
  }

  /** Throws `store_full` while nothing may be added. */
  requireSpace(): void {
    if (!this.full) return;
    fail('store_full', `${this.#options.where} is full; ends of commands are still recorded.`, {
      retryAfterMs: RETRY_AFTER_MS,
    });
  }

  /** Throws `store_full` while nothing may be added, and `share_exceeded` or `store_full` (`recorded_bytes`) for this user. */
  claim({ userId, bytes }: Growth): Room {
    this.requireSpace();
    const refusal = this.#refusal(userId, bytes);
    if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share: RECORDED_SHARE, retryAfterMs: RETRY_AFTER_MS });
    return { userId } as Room;
  }

  /** Returns why `claim` would refuse; null: it would not. `share`: null if nothing may be added. */
  refusal({ userId, bytes }: Growth): { readonly code: ShareRefusal; readonly share: RefusedShare | null } | null {
    if (this.full) return { code: 'store_full', share: null };
    const code = this.#refusal(userId, bytes);
    return code && { code, share: RECORDED_SHARE };
  }

  /** Whether `claim` would succeed. */
  has(userId: string, bytes: number): boolean {
    return !this.full && this.#refusal(userId, bytes) === null;
  }

  /** Notes that a payload is left out of the journal. The next snapshot has it. */
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

  /** Called when a snapshot begins: what was written before will be covered by it. */
  beginSnapshot(): void {
    // `#older` is not empty if the snapshot before failed. This one covers what that one was to cover, too.
    for (const [userId, cost] of this.#newer) addTo(this.#older, userId, cost);
    this.#newer = new Map();
    this.#usedByOlder = this.#used;
    this.#omitted = false;
    this.#isWanted = false;
  }

  /** Called when the snapshot is complete and the journals before it are removed. `bytes`: its length. */
  endSnapshot(bytes: number): void {
    this.#setDue(bytes);
    this.#older = new Map();
    this.#used -= this.#usedByOlder;
    this.#usedByOlder = 0;
  }

  /**
   * A byte of a snapshot costs a start about as much as two bytes of a journal, whose records cost RECORD_COST besides.
   * So a start needs about as long for a journal of the due cost as for the snapshot before it.
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
    // Records are charged to the user whose data they have, even if an administrator acts. So nobody has the reserve
    // of administrators here.
    return shareRefusal(bound, { held, used: this.#used + this.#turnCost, amount, admin: false });
  }
}

/** How long a user should wait before the next attempt, in milliseconds: as long as a snapshot takes, or a look at a full disk. */
const RETRY_AFTER_MS = 1_000;

function addTo(costs: ByUser, userId: string, cost: number): void {
  costs.set(userId, (costs.get(userId) ?? 0) + cost);
}
