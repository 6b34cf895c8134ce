import type { Clock } from '../../core/clock.ts';
import type { Command } from '../../core/delivery/command.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { JsonText } from '../../core/json.ts';
import { CommandMessage, type MessagePart } from './commands-message.ts';
import type { MemoryDedup } from './dedup.ts';
import type { Entry, Ledger } from './ledger.ts';
import type { Mailboxes } from './nodes.ts';
import type { WaiterIndex } from './waiters.ts';

/**
 * Dependencies of the acts on commands. Every act is one synchronous function, so nothing can run between its parts.
 */
export type Acts = {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly waiters: WaiterIndex;
  readonly mailboxes: Mailboxes;
  /** Retains a message in history. */
  readonly keep: (message: NewMessage) => void;
  readonly dedup: Pick<MemoryDedup, 'see'>;
  readonly sha256: (text: string) => string;
};

/** Replaces the record. Records change in no other way. */
export function move(entry: Entry, change: Partial<Command>): Command {
  entry.command = { ...entry.command, ...change, version: entry.command.version + 1 };
  return entry.command;
}

/** A history row of a command, in its client's stream. Its id is `<command>:<kind>` if none is given. */
export function row({ head, command }: Entry, part: RowPart): NewMessage {
  const { instanceId = command.boundInstanceId } = part;
  return new CommandMessage(head, { ...part, instanceId });
}

type RowPart = Omit<MessagePart, 'instanceId'> & Partial<Pick<MessagePart, 'instanceId'>>;

/** Ends a command: record, reservation, replies, in this order. Commands become terminal only here. */
export function conclude(
  acts: Acts,
  entry: Entry,
  end: Partial<Command> & Pick<Command, 'outcome' | 'execution'>,
  result: JsonText | null = null,
): Command {
  entry.result = result;
  const command = move(entry, { ...end, stage: 'terminal', terminalAt: acts.clock.now() });
  acts.ledger.end(entry);
  acts.waiters.reply(entry);
  acts.ledger.keepWithin();
  return command;
}
