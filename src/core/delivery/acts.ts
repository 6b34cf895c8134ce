import type { Deps } from '../deps.ts';
import { commandKeyText, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { Command } from './command.ts';
import type { End, FinishResult, Report, ReportResult, Settlement, SettleResult } from './commands.ts';

/** The acts on commands with what each must be followed by: a hint to those who watch, and a count. */
export type DeliveryActs = {
  report(key: CommandKey, report: Report): Promise<ReportResult>;
  finish(key: CommandKey, end: End): Promise<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): Promise<SettleResult>;
  /** Tells those who watch that the command moved. */
  hint(key: CommandKey, progress?: JsonText | null): void;
};

export function createActs({ backend, metrics }: Deps): DeliveryActs {
  const { commands, bus } = backend;
  const hint = (key: CommandKey, progress: JsonText | null = null): void => {
    bus.publish(`command:${commandKeyText(key)}`, { key, progress });
  };
  const ended = (command: Command): void => metrics.count('commands_ended', command.outcome ?? undefined);
  return {
    hint,
    async report(key, report) {
      const result = await commands.report(key, report);
      if (result.kind !== 'recorded') return result;
      if (report.kind === 'ack') metrics.count('commands_acknowledged');
      hint(key, report.kind === 'progress' ? report.payload : null);
      return result;
    },
    async finish(key, end) {
      const result = await commands.finish(key, end);
      if (result.kind === 'finished') ended(result.command);
      if (result.kind === 'late') metrics.count('late_results');
      if (result.kind === 'fenced') metrics.count('fenced_results');
      if (result.kind !== 'unknown') hint(key);
      return result;
    },
    async settle(key, settlement) {
      const result = await commands.settle(key, settlement);
      if (result.kind === 'settled') ended(result.command);
      if (result.kind === 'settled' || result.kind === 'requested') hint(key);
      return result;
    },
  };
}
