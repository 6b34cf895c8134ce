/**
 * The fence of a partition: one text in Redis that names the process that owns the partition, how often it changed
 * hands, and the last batch of its log. Every append compares it, so a process that is no longer the owner writes nothing.
 */

/** `epoch`: grows with each owner, and whenever an owner notices that a tail of its log was lost. */
export type Fence = { readonly process: string; readonly epoch: number; readonly number: number };

export function fenceText({ process, epoch, number }: Fence): string {
  return `${process} ${epoch} ${number}`;
}

/** Reads a fence; null if there is none. Throws if the text is no fence. */
export function readFence(text: string | null): Fence | null {
  if (text === null) return null;
  const [, process, epoch, number] = /^(\S+) (\d+) (\d+)$/.exec(text) ?? [];
  if (process === undefined) throw new Error(`"${text}" is no fence`);
  return { process, epoch: Number(epoch), number: Number(number) };
}

/**
 * What a fence says to a process that owned the partition. `whole`: the log has all that it appended. `behind`: the log
 * ends before, after the batch `number`: a call never ran, or Redis has lost what it had confirmed. `lost`: another
 * process owns the partition now.
 */
type FenceState =
  { readonly kind: 'whole' } | { readonly kind: 'lost' } | { readonly kind: 'behind'; readonly number: number };

/**
 * Judges the fence that was found by the one that this process set last. A lower epoch means that Redis forgot a change
 * of owners, this process' own claim among them: then the log goes on from there, unless the owner before has appended
 * to it since. `tried`: the epoch that this process last tried to set, without an answer; 0: none.
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

/** Whether a fence that was found is of before one that was known: Redis has lost what was written in between. */
export function isBefore(found: Fence | null, known: Fence): boolean {
  return found === null || found.epoch < known.epoch || found.number < known.number;
}

/** Whether a fence that was found is of after one that was known: an owner has set it since, or appended to the log. */
export function isAfter(found: Fence, known: Fence): boolean {
  return found.epoch > known.epoch || (found.epoch === known.epoch && found.number > known.number);
}

/** The id of a process: unique for each start. The node id in it is a name for people. */
export function processIdOf(nodeId: string, token: string): string {
  return `${nodeId}.${token}`;
}

/** Returns the node id in the id of a process. */
export function nodeOf(processId: string): string {
  return processId.slice(0, processId.lastIndexOf('.'));
}
