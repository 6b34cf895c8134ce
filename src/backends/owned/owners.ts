/** The table of partition owners, as this process knows them (types only). */
import type { Cancel } from '../../core/ports.ts';
import type { PartitionStores } from './routes.ts';

/** A process that owns partitions. `process`: the process id, unique for each start. `nodeId`: the name of its node. */
export type Owner = { readonly process: string; readonly nodeId: string };

/** The owners of the partitions, as this process knows them. */
export interface OwnerTable {
  /**
   * Returns the stores of a partition if this process owns it; otherwise null. After a loss and a takeover they are new
   * objects.
   */
  local(partition: number): PartitionStores | null;
  /** Whether this process may answer from its partitions: no other process can own them yet. */
  readonly mayAnswer: boolean;
  /** How often this process has lost partitions that it may have read or decided in. */
  readonly losses: number;
  /** Resolves once `mayAnswer` may have changed, or once this process has lost a partition. */
  answerable(): Promise<void>;
  /**
   * Returns the number of facts that this process has decided in a partition since it became the owner. It grows with
   * each recorded change.
   */
  decided(partition: number): number;
  /** Returns the owner that this process knows; null if it knows none. It may be out of date. */
  ownerOf(partition: number): Owner | null;
  /**
   * Calls `run` when the owner of a partition changes. If this process becomes the owner, `run` is called in the same
   * turn in which `local` first returns the stores, before any other code can use them.
   */
  onMove(run: (partition: number) => void): Cancel;
  /** Called when a process that this one took for the owner answers that it is not. */
  doubt(partition: number): void;
}
