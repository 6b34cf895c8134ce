/** Builds the part of an ended command's record that its caller receives. */
import type { Invocation } from '../core.ts';
import { errorOfMark, type Command, type CommandMark } from '../delivery/command.ts';
import type { CommandKey } from '../ids.ts';

/** The part of a record that an answer to a caller contains. */
export type CommandEnd = Pick<Command, 'commandId' | 'stage' | 'outcome' | 'execution' | 'error'>;

/**
 * The error of a result that is no longer retained. It is answered with status 200, because the command ended as its
 * outcome says.
 */
const RESULT_EXPIRED = { code: 'result_expired', message: 'The result is no longer retained.' } as const;

/** Returns the answer to an invocation if only the mark of its ended command is left. */
export function endedInvocation(key: CommandKey, mark: CommandMark): Invocation {
  return { kind: 'ended', key, mark, rpcId: null, result: null };
}

/**
 * Returns the end of a command, as the answer to an invocation that was not refused shows it. `error` is
 * `result_expired` if the result is no longer retained.
 */
export function endOf(invocation: Exclude<Invocation, { kind: 'refused' }>): CommandEnd {
  if (invocation.kind === 'ended') return endOfMark(invocation.key, invocation.mark);
  const { command } = invocation;
  return command.resultExpired ? { ...command, error: RESULT_EXPIRED } : command;
}

function endOfMark({ commandId }: CommandKey, mark: CommandMark): CommandEnd {
  const { outcome, execution, resultExpired } = mark;
  const error = resultExpired ? RESULT_EXPIRED : errorOfMark(mark);
  return { commandId, stage: 'terminal', outcome, execution, error };
}
