/**
 * The log of one state as the snapshot writer uses it: types of a log to which facts are appended in numbered batches
 * until a snapshot replaces them. Two classes implement it, one with files and one with a stream in Redis.
 */

export interface FactLog {
  /** True while there is no room, so nothing may be added. */
  readonly full: boolean;
  /** True while the records of ends may need all the room that is left. */
  readonly crowded: boolean;
  /**
   * Begins a snapshot of the state of this turn of the event loop. All facts decided so far are appended first. Facts
   * decided later do not refer to earlier batches. Throws if nothing can be appended.
   */
  beginSnapshot(): SnapshotPieces;
}

/** The pieces of a snapshot that is being written. The previous snapshot stays valid until `commit` resolves. */
export interface SnapshotPieces {
  /** The length of all pieces, in bytes. */
  readonly size: number;
  /** Appends a piece. Returns a promise if the caller must wait before the next piece, and nothing otherwise. */
  append(text: string): Promise<void> | void;
  /**
   * Makes the snapshot the valid one, and removes what it replaces. First waits until the pieces and all facts decided
   * so far are recorded, because the snapshot contains consequences of those facts.
   */
  commit(): Promise<void>;
  /** Removes the pieces. Has no effect after the snapshot was committed. */
  discard(): void;
}
