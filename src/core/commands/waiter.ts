/** The record of one caller's wait on a command. */
import type { CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { reached, type Command, type CommandCaller, type Stage } from './command.ts';

/** The stage of the command that a caller waits for. */
export type WaitFor = 'admitted' | 'acknowledged' | 'completed';

/**
 * One caller's wait on a command that is not resolved yet. The row proves only this. It proves nothing about the
 * socket, the client, or a result that arrived after the caller hung up.
 */
export type Waiter = CommandKey & {
  readonly rpcId: string;
  readonly action: string;
  /** The caller that waits. It may be another one than the caller who invoked the command. */
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

/**
 * A wait to register. `withinMs`: how long the wait may take from now, in milliseconds; null: as long as the command
 * lives.
 */
export type NewWaiter = Pick<Waiter, 'rpcId' | 'caller' | 'callerNodeId' | 'waitFor'> & {
  readonly withinMs: number | null;
};

/** The resolution of a waiter: the command's record at that moment, and its result if it had one. */
export type Reply = { readonly rpcId: string; readonly command: Command; readonly result: JsonText | null };

const STAGE_OF: Readonly<Record<WaitFor, Stage>> = {
  admitted: 'admitted',
  acknowledged: 'acknowledged',
  completed: 'terminal',
};

export function satisfied(waitFor: WaitFor, command: Command): boolean {
  return reached(command, STAGE_OF[waitFor]);
}
