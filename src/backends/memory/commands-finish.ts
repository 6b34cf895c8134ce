import { isTerminal, type Command, type Outcome, type Sighting } from '../../core/delivery/command.ts';
import { endMessageId, type End, type FinishResult } from '../../core/delivery/commands.ts';
import { SIGHTINGS_PER_COMMAND } from '../../core/limits.ts';
import { conclude, move, row, type Acts } from './commands-acts.ts';
import type { Entry } from './ledger.ts';

const OUTCOME: Readonly<Record<End['kind'], Outcome>> = {
  result: 'completed',
  error: 'failed',
  cancelled: 'cancelled',
};
const ROW_KIND = { result: 'result', error: 'error', cancelled: 'cancel' } as const;

/**
 * Handles an end that a client reported. It is recorded once, and only from the bound instance; all other reports are
 * counted or kept as evidence.
 */
export function finish(acts: Acts, entry: Entry | undefined, end: End): FinishResult {
  if (!entry) return { kind: 'unknown' };
  const { userId, clientId, commandId } = entry.command;
  const messageId = endMessageId(commandId, end);
  acts.dedup.see({ userId, clientId, messageId });
  const seen = entry.command.sightings.find((sighting) => sighting.messageId === messageId);
  if (seen) return { kind: 'duplicate', command: move(entry, { sightings: seeAgain(acts, entry.command, seen) }) };
  if (isTerminal(entry.command)) return { kind: 'late', command: keepLate(acts, entry, end, messageId) };
  if (entry.command.boundInstanceId !== end.instanceId)
    return { kind: 'fenced', command: keepLate(acts, entry, end, messageId) };
  acts.keep(row(entry, { id: messageId, kind: ROW_KIND[end.kind], kept: end.kept, error: end.error }));
  const command = conclude(
    acts,
    entry,
    {
      outcome: OUTCOME[end.kind],
      execution: end.refused ? 'refused_by_client' : 'reported_by_client',
      error: end.error,
      reason: end.error?.code ?? null,
      sightings: see(acts, entry.command, messageId),
    },
    end.payload,
  );
  return { kind: 'finished', command };
}

/** Keeps a late end as evidence that resolves nothing: the first on the record, and each new one as a history row. */
function keepLate(acts: Acts, entry: Entry, end: End, messageId: string): Command {
  const { command } = entry;
  const { instanceId, kind } = end;
  if (command.sightings.length < SIGHTINGS_PER_COMMAND) {
    const { kept, error } = end;
    acts.keep(row(entry, { id: `${messageId}:late`, kind: 'late_result', instanceId, kept, error }));
  }
  const digest = acts.sha256(`${kind}\n${end.payload ?? ''}\n${end.error?.code ?? ''}`);
  return move(entry, {
    lateResults: command.lateResults + 1,
    firstLate: command.firstLate ?? { at: acts.clock.now(), instanceId, kind, digest },
    sightings: see(acts, command, messageId),
  });
}

function see(acts: Acts, { sightings }: Command, messageId: string): readonly Sighting[] {
  const now = acts.clock.now();
  if (sightings.length >= SIGHTINGS_PER_COMMAND) return sightings;
  return [...sightings, { messageId, firstSeenAt: now, lastSeenAt: now, count: 1 }];
}

function seeAgain(acts: Acts, { sightings }: Command, seen: Sighting): readonly Sighting[] {
  return sightings.map((sighting) =>
    sighting === seen ? { ...seen, lastSeenAt: acts.clock.now(), count: seen.count + 1 } : sighting,
  );
}
