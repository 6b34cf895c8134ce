/**
 * Records the reports, ends and deadlines of commands in the store, with their payloads, and updates hints, counters
 * and spans.
 */
import { BoundedMap } from '../collections.ts';
import type { Deps } from '../deps.ts';
import type { StoredPayload } from '../history/message.ts';
import { isLarge, type PayloadStorage } from '../history/payload-storage.ts';
import { commandKeyText, keyOf, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { PROGRESS_ROW_MS, SIGHTINGS_PER_COMMAND } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { publishHint, publishReport } from './command-hints.ts';
import { endMessageId, isTerminal, type Command } from './command.ts';
import type { SettleResult, Settlement } from './settlement.ts';
import { recordLateResult } from './dispatch-spans.ts';
import type { End, FinishResult, Report, ReportResult } from './command-store.ts';

/**
 * Records what happens to commands. `report` and `finish` store a large payload before the history row that refers to
 * it. After each change, a hint goes to the watchers of the command, and the counters are updated.
 */
export type CommandRecorder = {
  report(key: CommandKey, report: ClientReport): MaybePromise<ReportResult>;
  finish(key: CommandKey, end: Omit<End, 'kept'>): MaybePromise<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): Promise<SettleResult>;
  /**
   * Counts and publishes the end of a command. For ends that this recorder did not record, because another act on the
   * client ended the command.
   */
  ended(command: Command): void;
  /** Tells the watchers of a command that it changed. */
  hint(key: CommandKey): void;
};

/** A report of a client about a command. */
type ClientReport = Omit<Report, 'kept'>;

export function createCommandRecorder(deps: Deps, keeper: PayloadStorage): CommandRecorder {
  const { backend, metrics, clock, events } = deps;
  const { commands, bus } = backend;
  const reports = createStoredReports(deps, keeper);
  const hint = (key: CommandKey): void => publishHint(bus, key);
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
    ended(command) {
      ended(command);
      hint(keyOf(command));
    },
    report(key, report) {
      const { instanceId, kind, payload, number } = report;
      // A client's first report acknowledges the command, and this may be a progress report.
      const before = kind === 'progress' ? clock.now() : Infinity;
      return thenDo(reports.ofReport(key, report), (kept) =>
        thenDo(commands.report(key, { instanceId, kind, payload, kept, number }), (result) => {
          if (result.kind === 'ignored' && kept) keeper.discard(kept);
          if (result.kind !== 'recorded') return result;
          if (kind === 'ack') acknowledged(result.command);
          if (kind === 'ack' || isFirstSign(result.command, before)) events.emit('acknowledged', result.command);
          if (result.isPublished !== true) publishReport(bus, key, report);
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
 * Whether this progress report, made at `reportedAt`, acknowledged the command. A client's first report does, whatever
 * its kind.
 */
function isFirstSign({ acknowledgedAt }: Command, reportedAt: number): boolean {
  return acknowledgedAt !== null && acknowledgedAt >= reportedAt;
}

/**
 * Prepares the payloads of reports for history. A large payload is stored only if a history row will refer to it.
 * Otherwise a client could fill the store with payloads that nobody requested.
 */
type StoredReports = {
  ofEnd(key: CommandKey, end: Omit<End, 'kept'>): MaybePromise<StoredPayload>;
  /** Prepares the payload of a report; null if the report makes no history row. */
  ofReport(key: CommandKey, report: ClientReport): MaybePromise<StoredPayload | null>;
  /** Forgets when the last large progress report of this command was stored. Call it when the command has ended. */
  forget(key: CommandKey): void;
};

/**
 * The most commands for which the last large progress report is remembered. If a command is forgotten early, more than
 * one such report a second may be stored for it.
 */
const REMEMBERED = 10_000;

function createStoredReports({ backend, clock }: Deps, keeper: PayloadStorage): StoredReports {
  /** The commands with a large progress report in the last PROGRESS_ROW_MS. */
  const spilled = new BoundedMap<string, true>({ most: REMEMBERED, ttl: { ms: PROGRESS_ROW_MS, clock } });
  const find = async (key: CommandKey): Promise<Command | null> => (await backend.commands.get([key]))[0] ?? null;
  const largeEnd = async (key: CommandKey, end: Omit<End, 'kept'>): Promise<StoredPayload> => {
    const command = await find(key);
    return command && makesRow(command, end) ? keeper.keepAnyway(end.payload, key.userId) : keeper.note(end.payload);
  };
  const largeProgress = async (key: CommandKey, report: ClientReport): Promise<StoredPayload | null> => {
    const command = await find(key);
    const text = commandKeyText(key);
    if (!command || isTerminal(command) || command.boundInstanceId !== report.instanceId || spilled.get(text))
      return null;
    spilled.set(text, true);
    return keeper.keepAnyway(report.payload, key.userId);
  };
  return {
    ofEnd: (key, end) => (large(end.payload) ? largeEnd(key, end) : keeper.note(end.payload)),
    ofReport(key, report) {
      if (report.kind === 'ack') return null;
      return large(report.payload) ? largeProgress(key, report) : keeper.note(report.payload);
    },
    forget(key) {
      if (spilled.size > 0) spilled.delete(commandKeyText(key));
    },
  };
}

/**
 * Predicts whether `CommandStore.finish` will write a history row. A repeated end makes none, and only the first few
 * late ends make one.
 */
function makesRow({ sightings, commandId }: Command, end: Omit<End, 'kept'>): boolean {
  const messageId = endMessageId(commandId, end);
  return sightings.length < SIGHTINGS_PER_COMMAND && !sightings.some((seen) => seen.messageId === messageId);
}

function large(text: JsonText | null): text is JsonText {
  return text !== null && isLarge(text);
}
