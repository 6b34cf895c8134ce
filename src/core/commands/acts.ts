/**
 * Records what happens to commands: reports, ends and deadlines, with the payloads, hints and counters that belong to
 * each.
 */
import type { Deps } from '../deps.ts';
import { commandKeyText, type CommandKey } from '../ids.ts';
import type { PayloadStorage } from '../history/payload-storage.ts';
import type { JsonText } from '../json.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { Command } from './command.ts';
import type { End, FinishResult, Report, ReportResult, Settlement, SettleResult } from './commands.ts';
import { recordLateResult } from './link-spans.ts';
import { createStoredReports } from './stored-reports.ts';

/**
 * Records what happens to commands. Each method stores a large payload before the row that refers to it, then publishes
 * a hint to the watchers of the command and updates the counters.
 */
export type DeliveryActs = {
  report(key: CommandKey, report: Omit<Report, 'kept'>): MaybePromise<ReportResult>;
  finish(key: CommandKey, end: Omit<End, 'kept'>): MaybePromise<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): Promise<SettleResult>;
  /** Publishes to the watchers of the command that it changed. */
  hint(key: CommandKey, progress?: JsonText | null): void;
};

export function createActs(deps: Deps, keeper: PayloadStorage): DeliveryActs {
  const { backend, metrics, clock, events } = deps;
  const { commands, bus } = backend;
  const reports = createStoredReports(deps, keeper);
  const hint = (key: CommandKey, progress: JsonText | null = null): void => {
    if (bus.hasSubscribers('command')) bus.publish(`command:${commandKeyText(key)}`, { key, progress });
  };
  const ended = (command: Command): void => {
    reports.forget(command);
    const { outcome, admittedAt, terminalAt } = command;
    metrics.count('commands_ended', outcome ?? undefined);
    if (outcome !== null && terminalAt !== null)
      metrics.observe('command_seconds', terminalAt - admittedAt, outcome, command);
    events.emit('ended', command);
  };
  const acknowledged = (command: Command): void => {
    const { dispatchedAt, acknowledgedAt } = command;
    metrics.count('commands_acknowledged');
    if (dispatchedAt !== null && acknowledgedAt !== null)
      metrics.observe('ack_seconds', acknowledgedAt - dispatchedAt, undefined, command);
  };
  return {
    hint,
    report(key, report) {
      const { instanceId, kind, payload } = report;
      // Progress may be the first report of a client, which acknowledges the command too.
      const before = kind === 'progress' ? clock.now() : Infinity;
      return thenDo(reports.ofReport(key, report), (kept) =>
        thenDo(commands.report(key, { instanceId, kind, payload, kept }), (result) => {
          if (result.kind === 'ignored' && kept) keeper.discard(kept);
          if (result.kind !== 'recorded') return result;
          if (kind === 'ack') acknowledged(result.command);
          if (kind === 'ack' || isFirstSign(result.command, before)) events.emit('acknowledged', result.command);
          hint(key, kind === 'progress' ? payload : null);
          return result;
        }),
      );
    },
    finish(key, end) {
      const { instanceId, kind, payload, error, refused } = end;
      return thenDo(reports.ofEnd(key, end), (kept) =>
        thenDo(commands.finish(key, { instanceId, kind, payload, kept, error, refused }), (result) => {
          if (result.kind === 'duplicate' || result.kind === 'unknown') keeper.discard(kept);
          if (result.kind === 'finished') ended(result.command);
          if (result.kind === 'late') metrics.count('late_results');
          if (result.kind === 'fenced') metrics.count('fenced_results');
          if (result.kind === 'late' || result.kind === 'fenced') {
            events.emit('late', result.command);
            recordLateResult(deps, result.command);
          }
          if (result.kind !== 'unknown') hint(key);
          return result;
        }),
      );
    },
    async settle(key, settlement) {
      const result = await commands.settle(key, settlement);
      if (result.kind === 'settled') ended(result.command);
      if (result.kind === 'settled' || result.kind === 'requested') hint(key);
      return result;
    },
  };
}

/**
 * Whether the progress reported at `reportedAt` acknowledged the command. The first report of a client does so,
 * whatever its kind.
 */
function isFirstSign({ acknowledgedAt }: Command, reportedAt: number): boolean {
  return acknowledgedAt !== null && acknowledgedAt >= reportedAt;
}
