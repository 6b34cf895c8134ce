/** Reads the records of live commands directly, without an act. Changes nothing. */
import type { Command } from '../../../core/commands/command.ts';
import type { CommandKey } from '../../../core/ids.ts';
import { listOf, type ReadCommand, type Reply } from '../types.ts';
import type { Store } from '../store.ts';
import { nameArgs } from './parts.ts';
import { decodeCommand } from './record.ts';

/** Returns the Redis command that reads the state and the request of a live command in this partition. */
export function readOfLive(store: Store, partition: number, key: CommandKey): ReadCommand {
  const [client, commandId] = nameArgs(store, key);
  return ['HMGET', store.key(partition, 'client', client), `s${commandId}`, `a${commandId}`];
}

/** Decodes the command in a reply to `readOfLive`; null if it is not live. */
export function decodeLive(reply: Reply | undefined): Command | null {
  const [state, request] = listOf(reply);
  return typeof state === 'string' && typeof request === 'string' ? decodeCommand(state + request) : null;
}
