/** The record of one caller's wait on a command. */
import type { CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { reached, type Command, type CommandCaller, type Stage } from './command.ts';

/** The stage that a call waits for. */
export type WaitFor = 'admitted' | 'acknowledged' | 'completed';

/**
 * One caller's unresolved wait on a command. The row proves only that the correlator has not resolved the waiter. It
 * proves nothing about the socket, the client, or a result that arrived after the caller hung up.
 */
export type Waiter = CommandKey & {
  readonly rpcId: string;
  readonly action: string;
  /** Who waits. It may be another caller than the one that invoked the command. */
  readonly caller: CommandCaller;
  readonly callerNodeId: string;
  readonly waitFor: WaitFor;
  readonly createdAt: number;
  readonly timesOutAt: number;
};

/** Returns the row of a wait that is registered now. */
export function waiterOf(command: Command, wait: NewWaiter, now: number): Waiter {
  const { rpcId, caller, callerNodeId, waitFor, withinMs } = wait;
  const { userId, clientId, commandId, action, deadline } = command;
  const timesOutAt = withinMs === null ? deadline : Math.min(now + withinMs, deadline);
  return { userId, clientId, commandId, action, rpcId, caller, callerNodeId, waitFor, createdAt: now, timesOutAt };
}

/** A wait to register. `withinMs`: how long from now; null: for as long as the command may live. */
export type NewWaiter = Pick<Waiter, 'rpcId' | 'caller' | 'callerNodeId' | 'waitFor'> & {
  readonly withinMs: number | null;
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
