/**
 * Holds the steps that several acts on commands have in common, such as replacing a command's record and ending a
 * command.
 */
import type { Clock } from '../../core/ports.ts';
import type { Command } from '../../core/commands/command.ts';
import type { JsonText } from '../../core/json.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { About, MessagePart } from './history-rows.ts';
import type { MemoryDedup } from './dedup.ts';
import type { Entry, Ledger } from './ledger.ts';
import type { Mailboxes } from './nodes.ts';
import type { WaiterIndex } from './waiters.ts';

/**
 * The dependencies of all acts on commands. Every act is one synchronous function, so nothing runs between its steps.
 */
export type Acts = {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly waiters: WaiterIndex;
  readonly mailboxes: Mailboxes;
  /** Retains a message about a command in history. */
  readonly keep: (about: About, part: MessagePart, now: number) => void;
  readonly dedup: Pick<MemoryDedup, 'see'>;
  readonly sha256: (text: string) => string;
  /** Returns the holdings of a user, without creating an object in the ledger. */
  readonly holdingsOf: (userId: string) => Holdings;
};

/** Replaces a command's record by one with these changes and the next version. */
export function move(entry: Entry, change: Partial<Command>): Command {
  const before = entry.command;
  const command = { ...before, ...change, version: before.version + 1 };
  entry.command = command;
  return command;
}

/** The members of a record that change when a command ends. `at`: when the command ended, in epoch milliseconds. */
export type EndOfRecord = Pick<Command, 'outcome' | 'execution' | 'error' | 'reason'> &
  Partial<Pick<Command, 'cancelRequestedAt' | 'sightings'>> & { readonly at: number };

/**
 * Ends a command: replaces its record, releases its reservation and replies to its waiters, in this order. Commands
 * become terminal only here.
 */
export function conclude(acts: Acts, entry: Entry, end: EndOfRecord, result: JsonText | null = null): Command {
  entry.result = result;
  const before = entry.command;
  const command: Command = {
    ...before,
    version: before.version + 1,
    stage: 'terminal',
    terminalAt: end.at,
    outcome: end.outcome,
    execution: end.execution,
    error: end.error,
    reason: end.reason,
    cancelRequestedAt: end.cancelRequestedAt ?? before.cancelRequestedAt,
    sightings: end.sightings ?? before.sightings,
  };
  entry.command = command;
  acts.ledger.end(entry, end.at);
  acts.waiters.reply(entry);
  entry.pack();
  acts.ledger.keepWithin(end.at);
  return command;
}
