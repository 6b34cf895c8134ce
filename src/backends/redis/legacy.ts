/**
 * Reads how many commands are left in the Redis keys of the system that ran before callboard, and whether they prevent
 * a strict start.
 */
import type { DeliverySummary } from '../../core/commands/delivery-inspector.ts';
import type { ReadCommand, Reply } from './replies.ts';

type LegacyDepths = Pick<DeliverySummary, 'legacyCommandStreamDepth' | 'pendingCommandDepth'>;

/** The keys of the system that ran before callboard. */
export type LegacyKeys = {
  /** The key of a stream of commands. */
  readonly commandStream: string | null;
  /** The key of the commands that were taken but have not ended: a list, set, sorted set, hash or stream. */
  readonly pending: string | null;
};

type ReadFunction = (commands: readonly ReadCommand[]) => Promise<readonly Reply[]>;

const LENGTHS: Readonly<Record<string, string>> = {
  list: 'LLEN',
  set: 'SCARD',
  zset: 'ZCARD',
  hash: 'HLEN',
  stream: 'XLEN',
};

/**
 * Counts the commands in the legacy keys: the entries of the stream, and the pending commands. A command is pending if
 * a consumer group took it from the stream without acknowledging it, or if it is in the key `pending`. A count is null
 * if its keys are not configured. A missing key counts as empty.
 */
export async function readLegacyDepths(
  read: ReadFunction,
  { commandStream, pending }: LegacyKeys,
): Promise<LegacyDepths> {
  const taken = commandStream === null ? null : await takenOf(read, commandStream);
  const kept = pending === null ? null : await lengthOf(read, pending);
  return {
    legacyCommandStreamDepth: commandStream === null ? null : await lengthOf(read, commandStream),
    pendingCommandDepth: taken === null && kept === null ? null : (taken ?? 0) + (kept ?? 0),
  };
}

/** Returns why a strict start is refused; null if nothing is left. */
export function legacyFault({ legacyCommandStreamDepth, pendingCommandDepth }: LegacyDepths): string | null {
  const stream = legacyCommandStreamDepth ?? 0;
  const pending = pendingCommandDepth ?? 0;
  if (stream + pending === 0) return null;
  return `STRICT_MIGRATION: the legacy command stream holds ${stream} entries and ${pending} commands are pending: let them end, or remove them`;
}

async function takenOf(read: ReadFunction, stream: string): Promise<number> {
  if ((await typeOf(read, stream)) !== 'stream') return 0;
  const [groups] = await read([['XINFO', 'GROUPS', stream]]);
  let sum = 0;
  for (const group of Array.isArray(groups) ? groups : []) {
    const name = fieldOf(group, 'name');
    const [summary] = await read([['XPENDING', stream, String(name)]]);
    sum += Array.isArray(summary) ? Number(summary[0]) : 0;
  }
  return sum;
}

async function lengthOf(read: ReadFunction, key: string): Promise<number> {
  const type = await typeOf(read, key);
  const command = LENGTHS[type];
  // A key of another type, such as a string, counts as one command.
  if (command === undefined) return type === 'none' ? 0 : 1;
  const [length] = await read([[command, key]]);
  return Number(length);
}

async function typeOf(read: ReadFunction, key: string): Promise<string> {
  const [type] = await read([['TYPE', key]]);
  return String(type);
}

function fieldOf(flat: Reply | undefined, name: string): Reply | undefined {
  const list = Array.isArray(flat) ? flat : [];
  return list[list.indexOf(name) + 1];
}
