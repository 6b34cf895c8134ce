/**
 * Records in a command whether a caller received its answer: which request owes the answer, and when it was written
 * whole.
 */
import { OWED_BY_NOBODY, changed, isTerminal, nextTime, type Command } from './command.ts';
import type { OfAnswer } from './settlement.ts';

const KINDS: ReadonlySet<string> = new Set<OfAnswer['kind']>(['answered', 'repeated', 'lost', 'owed']);

export function isOfAnswer<Other extends { readonly kind: string }>(given: Other | OfAnswer): given is OfAnswer {
  return KINDS.has(given.kind);
}

/** Returns the record as a settlement of its answer changes it. If nothing changes, returns the same object. */
export function settleAnswer(command: Command, settlement: OfAnswer, now: number): Command {
  const { answeredAt, owedBy } = command;
  if (settlement.kind === 'lost') return owedBy === settlement.by ? withoutAnswer(command) : command;
  if (answeredAt !== undefined) return command;
  if (settlement.kind === 'owed')
    return owedBy === settlement.instead ? changed(command, { owedBy: settlement.by }) : command;
  if (!isTerminal(command)) return command;
  const counts =
    settlement.kind === 'repeated' ||
    (command.outcome !== 'outcome_unknown' && (settlement.by === null || settlement.by === owedBy));
  return counts ? changed(command, { answeredAt: nextTime(command, now) }) : command;
}

function withoutAnswer(command: Command): Command {
  const { answeredAt: _, ...lost } = changed(command, { owedBy: OWED_BY_NOBODY });
  return lost;
}
