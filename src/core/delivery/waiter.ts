import type { CommandKey } from '../ids.ts';
import { reached, type Command, type Stage } from './command.ts';
import type { JsonText } from '../json.ts';

/** What a call waits for. */
export type WaitFor = 'admitted' | 'acknowledged' | 'completed';

/**
 * One caller's unresolved wait on a command. Its row proves that the correlator has not resolved the waiter, and nothing about the
 * socket, the client or a result that came after the caller had gone.
 */
export type Waiter = CommandKey & {
  readonly rpcId: string;
  readonly action: string;
  readonly callerNodeId: string;
  readonly waitFor: WaitFor;
  readonly createdAt: number;
  readonly timesOutAt: number;
};

/** What a waiter is resolved with: the record as it then stood, and the result where it had one. */
export type Reply = { readonly rpcId: string; readonly command: Command; readonly result: JsonText | null };

const STAGE_OF: Readonly<Record<WaitFor, Stage>> = {
  admitted: 'admitted',
  acknowledged: 'acknowledged',
  completed: 'terminal',
};

export function satisfied(waitFor: WaitFor, command: Command): boolean {
  return reached(command, STAGE_OF[waitFor]);
}
