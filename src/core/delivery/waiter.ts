/** The record of one caller's wait on a command. */
import type { CommandKey } from '../ids.ts';
import { reached, type Command, type Stage } from './command.ts';
import type { JsonText } from '../json.ts';

/** The stage that a call waits for. */
export type WaitFor = 'admitted' | 'acknowledged' | 'completed';

/**
 * One caller's unresolved wait on a command. The row proves only that the correlator has not resolved the waiter. It
 * proves nothing about the socket, the client, or a result that arrived after the caller hung up.
 */
export type Waiter = CommandKey & {
  readonly rpcId: string;
  readonly action: string;
  readonly callerNodeId: string;
  readonly waitFor: WaitFor;
  readonly createdAt: number;
  readonly timesOutAt: number;
};

/** What a waiter is resolved with: the record at that moment, and the result if it had one. */
export type Reply = { readonly rpcId: string; readonly command: Command; readonly result: JsonText | null };

const STAGE_OF: Readonly<Record<WaitFor, Stage>> = {
  admitted: 'admitted',
  acknowledged: 'acknowledged',
  completed: 'terminal',
};

export function satisfied(waitFor: WaitFor, command: Command): boolean {
  return reached(command, STAGE_OF[waitFor]);
}
