/** Records the ends that clients report for their commands. */
import { isTerminal, type Command, type Outcome, type Sighting } from '../../core/commands/command.ts';
import { endMessageId, type End, type FinishResult } from '../../core/commands/stores.ts';
import type { CommandKey } from '../../core/ids.ts';
import { SIGHTINGS_PER_COMMAND } from '../../core/limits.ts';
import { conclude, move, type Acts } from './commands-acts.ts';
import type { Entry } from './ledger.ts';

const OUTCOME: Readonly<Record<End['kind'], Outcome>> = {
  result: 'completed',
  error: 'failed',
  cancelled: 'cancelled',
};
const ROW_KIND = { result: 'result', error: 'error', cancelled: 'cancel' } as const;

/** Creates the method `finish` of the CommandStore. */
export function createFinish(acts: Acts): (key: CommandKey, end: End) => FinishResult {
  return (key, end) => finish(acts, acts.ledger.find(key), end);
}

/**
 * Handles an end that a client reported. The first end from the instance that the command is bound to is recorded. Any
 * other report is counted, or kept as evidence.
 */
function finish(acts: Acts, entry: Entry | undefined, end: End): FinishResult {
  if (!entry) return { kind: 'unknown' };
  const before = entry.command;
  const { userId, clientId, commandId, sightings } = before;
  const messageId = endMessageId(commandId, end);
  const now = acts.clock.now();
  acts.dedup.see({ userId, clientId, messageId }, now);
  const seen = sightings.length === 0 ? undefined : sightings.find((sighting) => sighting.messageId === messageId);
  if (seen) return { kind: 'duplicate', command: move(entry, { sightings: seeAgain(before, seen, now) }) };
  if (isTerminal(before)) return { kind: 'late', command: keepLate(acts, entry, end, { messageId, now }) };
  const { instanceId, kept, error } = end;
  if (before.boundInstanceId !== instanceId)
    return { kind: 'fenced', command: keepLate(acts, entry, end, { messageId, now }) };
  acts.keep(entry, { id: messageId, kind: ROW_KIND[end.kind], instanceId, kept, error }, now);
  const command = conclude(
    acts,
    entry,
    {
      at: now,
      outcome: OUTCOME[end.kind],
      execution: end.refused ? 'refused_by_client' : 'reported_by_client',
      error,
      reason: error?.code ?? null,
      sightings: see(before, messageId, now),
    },
    end.payload,
  );
  return { kind: 'finished', command };
}

/**
 * Keeps an end that came too late, or from another instance, as evidence. The command's record describes the first such
 * end. History gets a row for each such end, until the record has SIGHTINGS_PER_COMMAND sightings.
 */
function keepLate(
  acts: Acts,
  entry: Entry,
  end: End,
  { messageId, now }: { readonly messageId: string; readonly now: number },
): Command {
  const { command } = entry;
  const { instanceId, kind } = end;
  if (command.sightings.length < SIGHTINGS_PER_COMMAND) {
    const { kept, error } = end;
    acts.keep(entry, { id: `${messageId}:late`, kind: 'late_result', instanceId, kept, error }, now);
  }
  const digest = acts.sha256(`${kind}\n${end.payload ?? ''}\n${end.error?.code ?? ''}`);
  return move(entry, {
    lateResults: command.lateResults + 1,
    firstLate: command.firstLate ?? { at: now, instanceId, kind, digest },
    sightings: see(command, messageId, now),
  });
}

function see({ sightings }: Command, messageId: string, now: number): readonly Sighting[] {
  if (sightings.length >= SIGHTINGS_PER_COMMAND) return sightings;
  return [...sightings, { messageId, firstSeenAt: now, lastSeenAt: now, count: 1 }];
}

function seeAgain({ sightings }: Command, seen: Sighting, now: number): readonly Sighting[] {
  return sightings.map((sighting) =>
    sighting === seen ? { ...seen, lastSeenAt: now, count: seen.count + 1 } : sighting,
  );
}
