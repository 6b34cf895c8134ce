/** Makes the answer of an invocation that was admitted, or attached to a known command. */
import type { Invocation } from '../core.ts';
import { isTerminal, type Command } from '../delivery/command.ts';
import type { JsonText } from '../json.ts';

/** Returns the answer to a caller, as the record is now. */
export function invocation(command: Command, rpcId: string | null, result: JsonText | null): Invocation {
  return { kind: isTerminal(command) ? 'outcome' : 'pending', command, rpcId, result };
}
