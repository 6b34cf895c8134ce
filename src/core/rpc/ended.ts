import type { Invocation } from '../core.ts';
import { errorOfMark, type Command, type CommandMark } from '../delivery/command.ts';
import type { CommandKey } from '../ids.ts';

/** The part of a record that a caller is answered with. */
export type CommandEnd = Pick<Command, 'commandId' | 'stage' | 'outcome' | 'execution' | 'error'>;

/** The code is that of an answer with status 200: the command ended as its outcome says. */
const RESULT_EXPIRED = { code: 'result_expired', message: 'The result is no longer retained.' } as const;

/** The answer where a mark alone is left of the command. */
export function endedInvocation(key: CommandKey, mark: CommandMark): Invocation {
  return { kind: 'ended', key, mark, rpcId: null, result: null };
}

/** What an invocation that was not refused says of its command: `error` is `result_expired` where the result is no longer retained. */
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
