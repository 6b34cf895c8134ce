/**
 * The log of a state, as the writer of snapshots sees it. Facts are appended in numbered batches, and a snapshot replaces
 * the batches before it. There are two forms: files, and a stream in Redis. Types only.
 */

export interface FactLog {
  /** Whether nothing may be added, because there is no room for it. */
  readonly full: boolean;
  /** Whether ends may need all the room that is left. */
  readonly crowded: boolean;
  /**
   * Begins a snapshot of the state as it is in this turn of the event loop. Facts that were decided before are appended
   * before it, and those that are decided later name nothing of the batches before. Throws if nothing can be appended.
   */
  beginSnapshot(): SnapshotPieces;
}

/** The pieces of a snapshot that is being written. Until `commit` resolves, the one before counts. */
export interface SnapshotPieces {
  /** The length of all pieces, in bytes. */
  readonly size: number;
  /** Appends a piece. Resolves once more may follow; returns nothing if they may at once. */
  append(text: string): Promise<void> | void;
  /**
   * Makes the snapshot the one that counts, and removes what it replaces. First waits until its pieces, and all that was
   * decided so far, are recorded: the snapshot has consequences of facts of its time, and would be wrong without them.
   */
  commit(): Promise<void>;
  /** Removes the pieces, unless the snapshot is committed. */
  discard(): void;
}
