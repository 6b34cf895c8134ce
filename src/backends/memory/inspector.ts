/** Core's DeliveryInspector in one process. It reads the ledger and changes nothing. */
import type { Clock } from '../../core/clock.ts';
import type { Command } from '../../core/delivery/command.ts';
import type { CapacityScope, DeliveryFilter, DeliveryInspector } from '../../core/delivery/inspector.ts';
import { DELIVERY_SAMPLE, SCOPE_HOLDERS } from '../../core/limits.ts';
import { scanSorted, type ObservedSource } from '../../core/page.ts';
import { commandKeyText as keyText } from '../../core/ids.ts';
import { keyOf, type Entry, type Ledger, type Scope } from './ledger.ts';

/** Core's DeliveryInspector over the ledger. The summary's sample is the commands that are due soonest. */
export function createMemoryInspector(clock: Clock, ledger: Ledger): DeliveryInspector {
  const gaps = ({ userId, stage }: DeliveryFilter): readonly ObservedSource[] => {
    // Only records of ended commands are ever reduced to marks.
    const complete = !ledger.short(userId) || (stage !== null && stage !== 'terminal');
    const gap = { source: 'delivery', nodeId: null, observed: 0, limit: null, reason: 'evicted' } as const;
    return complete ? [] : [{ ...gap, complete, asOf: clock.now() }];
  };
  return {
    summary() {
      const sample = ledger.soonest(DELIVERY_SAMPLE).map(({ command }) => command);
      const queued = sample.filter(({ stage }) => stage === 'queued').map(({ queuedAt }) => queuedAt ?? clock.now());
      const since = least(queued);
      return {
        trackedCommands: ledger.tracked,
        dueCommands: ledger.dueCount,
        sampledOldestDeadline: least(sample.map(({ deadline }) => deadline)),
        sampledOldestQueuedAgeMs: since === null ? null : Math.max(0, clock.now() - since),
        sampleSize: sample.length,
        legacyCommandStreamDepth: null,
        pendingCommandDepth: null,
      };
    },
    scopes(page) {
      const scan = scanSorted(ledger.scopes(page.after?.[0] ?? null), page, ({ scopeId }) => [scopeId]);
      return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: viewOf(row), position })) };
    },
    getScopes: (scopeIds) =>
      scopeIds.map((scopeId) => {
        const scope = ledger.scope(scopeId);
        return scope ? viewOf(scope) : null;
      }),
    list(filter, page) {
      const commands = ledger.inOrder(filter, page.after).map(({ command }) => command);
      const scan = scanSorted(
        commands,
        page,
        ({ userId, clientId, commandId }) => [userId, clientId, commandId],
        matching(filter),
      );
      return { ...scan, gaps: gaps(filter) };
    },
  };
}

function viewOf({ scopeId, holders }: Scope): CapacityScope {
  const first = [...holders].sort(byDeadline).slice(0, SCOPE_HOLDERS);
  return {
    scopeId,
    reservedCommands: holders.size,
    oldestDeadline: first[0]?.command.deadline ?? null,
    holders: first.map(({ command }) => ({ ...keyOf(command), deadline: command.deadline })),
  };
}

function byDeadline({ command: a }: Entry, { command: b }: Entry): number {
  const [left, right] = [keyText(a), keyText(b)];
  return a.deadline - b.deadline || (left < right ? -1 : 1);
}

function matching(filter: DeliveryFilter): (command: Command) => boolean {
  const { clientId, stage, outcome, nodeId, admittedAfter } = filter;
  return (command) =>
    (clientId === null || command.clientId === clientId) &&
    (stage === null || command.stage === stage) &&
    (outcome === null || command.outcome === outcome) &&
    (nodeId === null || command.nodeId === nodeId) &&
    (admittedAfter === null || command.admittedAt > admittedAfter);
}

function least(numbers: readonly number[]): number | null {
  return numbers.length === 0 ? null : Math.min(...numbers);
}
