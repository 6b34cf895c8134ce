/** Who owns a partition now, as this process knows it. */
import type { Cancel } from '../../core/ports.ts';
import type { PartitionStores } from './routes.ts';

/** A process that owns partitions. `process`: unique for each start. `nodeId`: its name for people. */
export type Owner = { readonly process: string; readonly nodeId: string };

/** What this process knows of who owns the partitions. */
export interface OwnerTable {
  /** The stores of a partition, if this process owns it; otherwise null. After a loss they are another object. */
  local(partition: number): PartitionStores | null;
  /** Whether what is read in the partitions of this process counts now: no other process can own them yet. */
  readonly mayAnswer: boolean;
  /** How often this process has lost what it may have decided or read in its partitions. */
  readonly losses: number;
  /** Resolves once `mayAnswer` may have changed, or once this process has lost a partition. */
  answerable(): Promise<void>;
  /** How many facts this process has decided in a partition since it owns it: more after a change that is recorded. */
  decided(partition: number): number;
  /** The owner as far as this process knows; null: none. It may be out of date. */
  ownerOf(partition: number): Owner | null;
  /**
   * Calls `run` when another process owns a partition, or this one does: then in the turn in which `local` has it first,
   * before anything else runs there.
   */
  onMove(run: (partition: number) => void): Cancel;
  /** Called when the process that this one takes for the owner says that it is not. */
  doubt(partition: number): void;
}
