/** Ends commands without a report from their clients, and records requests to cancel. */
import type { Code } from '../../core/errors.ts';
import { isTerminal, wasDispatched, type Command, END_MESSAGES } from '../../core/commands/command.ts';
import type { Settlement, SettleResult } from '../../core/commands/stores.ts';
import { conclude, move, type Acts } from './commands-acts.ts';
import { keyOf, type Entry } from './ledger.ts';

/** Ends a command that its client did not end, or records a request to cancel it. */
export function settle(acts: Acts, entry: Entry | undefined, settlement: Settlement): SettleResult {
  if (!entry) return { kind: 'unknown' };
  if (isTerminal(entry.command)) return { kind: 'unchanged', command: entry.command };
  if (settlement.kind === 'cancel') return cancel(acts, entry, settlement);
  const code =
    settlement.kind === 'expire' ? dueCode(entry.command, acts.clock.now()) : giveUpCode(entry.command, settlement);
  return code ? { kind: 'settled', command: end(acts, entry, code) } : { kind: 'unchanged', command: entry.command };
}

/**
 * Ends a command without a report from its client. The outcome `expired` proves that the command was never written to
 * the client. If the command was dispatched, or the store has lost data, the outcome is `outcome_unknown`.
 */
export function end(acts: Acts, entry: Entry, code: Code): Command {
  const error = { code, message: END_MESSAGES[code] ?? code };
  const at = acts.clock.now();
  const before = entry.command;
  const { commandId, boundInstanceId: instanceId } = before;
  acts.keep(entry, { id: `${commandId}:end`, kind: 'error', instanceId, error }, at);
  const unknown = wasDispatched(before) || code === 'store_lost';
  const command = conclude(acts, entry, {
    at,
    outcome: unknown ? 'outcome_unknown' : 'expired',
    execution: unknown ? 'may_have_run' : 'not_written',
    error,
    reason: code,
  });
  freeWindow(acts, command);
  return command;
}

function cancel(acts: Acts, entry: Entry, { reason, by }: Extract<Settlement, { kind: 'cancel' }>): SettleResult {
  const before = entry.command;
  const at = acts.clock.now();
  if (before.cancelRequestedAt === null) {
    const error = reason === null ? null : { code: 'cancelled', message: reason };
    acts.keep(entry, { kind: 'cancel', instanceId: before.boundInstanceId, error }, at);
  }
  const cancelRequestedAt = before.cancelRequestedAt ?? at;
  if (!wasDispatched(before)) {
    const command = conclude(acts, entry, {
      at,
      outcome: 'cancelled',
      execution: 'not_written',
      error: before.error,
      reason: `cancelled by ${by}`,
      cancelRequestedAt,
    });
    return { kind: 'settled', command };
  }
  const command =
    before.cancelRequestedAt === null
      ? move(entry, { cancelRequestedAt, reason: `cancel requested by ${by}` })
      : before;
  if (command.nodeId !== null) acts.mailboxes.post(command.nodeId, { kind: 'cancel', key: keyOf(command), reason });
  return { kind: 'requested', command };
}

function dueCode(command: Command, now: number): Code | null {
  if (wasDispatched(command)) return now >= command.deadline ? 'response_timeout' : null;
  if (command.queuedAt === null) return now >= command.connectDeadline ? 'connect_timeout' : null;
  return now >= command.deadline ? 'queue_timeout' : null;
}

function giveUpCode(command: Command, { code, instanceId }: Extract<Settlement, { kind: 'give_up' }>): Code | null {
  return instanceId === null || instanceId === (command.boundInstanceId ?? command.expectedInstanceId) ? code : null;
}

function freeWindow(acts: Acts, command: Command): void {
  if (wasDispatched(command) && command.nodeId !== null)
    acts.mailboxes.post(command.nodeId, { kind: 'ended', key: keyOf(command) });
}
