/**
 * The fence of a partition: one text in Redis that names the owner, its epoch and the last batch of the log.
 *
 * Every append compares the fence, so a process that is no longer the owner cannot write.
 */

/**
 * `epoch` grows with each new owner, and whenever an owner finds that Redis has lost the end of its log. `number`: the
 * last batch.
 */
export type Fence = { readonly process: string; readonly epoch: number; readonly number: number };

export function fenceText({ process, epoch, number }: Fence): string {
  return `${process} ${epoch} ${number}`;
}

/** Reads the text of a fence; null if there is none. Throws if the text is not a fence. */
export function readFence(text: string | null): Fence | null {
  if (text === null) return null;
  const [, process, epoch, number] = /^(\S+) (\d+) (\d+)$/.exec(text) ?? [];
  if (process === undefined) throw new Error(`"${text}" is no fence`);
  return { process, epoch: Number(epoch), number: Number(number) };
}

/**
 * The state of a log, judged by its fence. `whole`: Redis has all appended batches. `behind`: the log in Redis ends
 * after the batch `number`, either because a call never ran or because Redis has lost confirmed batches. `lost`:
 * another process owns the partition.
 */
type FenceState =
  { readonly kind: 'whole' } | { readonly kind: 'lost' } | { readonly kind: 'behind'; readonly number: number };

/**
 * Compares the fence in Redis with the last fence that this process set. A lower epoch means that Redis has forgotten a
 * change of owner, which may be the claim of this process. Then the log goes on from the fence that was found, unless
 * the former owner has appended to the log since. `tried`: the epoch that this process last tried to set without
 * getting an answer; 0 if none.
 */
export function judge(found: Fence | null, own: Fence, tried = 0): FenceState {
  if (found === null) return { kind: 'behind', number: 0 };
  const isOwnTry = tried > own.epoch && found.epoch === tried && found.process === own.process;
  if (isOwnTry && found.number <= own.number) return { kind: 'behind', number: found.number };
  if (found.epoch > own.epoch || found.number > own.number) return { kind: 'lost' };
  if (found.epoch === own.epoch && found.process !== own.process) return { kind: 'lost' };
  if (found.epoch === own.epoch && found.number === own.number) return { kind: 'whole' };
  return { kind: 'behind', number: found.number };
}

/** Whether the fence `found` is older than `known`. If so, Redis has lost what was written in between. */
export function isBefore(found: Fence | null, known: Fence): boolean {
  return found === null || found.epoch < known.epoch || found.number < known.number;
}

/** Whether the fence `found` is newer than `known`: an owner has set a fence or appended to the log since. */
export function isAfter(found: Fence, known: Fence): boolean {
  return found.epoch > known.epoch || (found.epoch === known.epoch && found.number > known.number);
}

/** Returns the id of a process. It is unique for each start. It contains the node id, for people who read it. */
export function processIdOf(nodeId: string, token: string): string {
  return `${nodeId}.${token}`;
}

/** Returns the node id that the id of a process contains. */
export function nodeOf(processId: string): string {
  return processId.slice(0, processId.lastIndexOf('.'));
}
