/** Brings the reports of clients into the form that history keeps. */
import { BoundedMap } from '../bounded-map.ts';
import type { Deps } from '../deps.ts';
import { isLarge, type PayloadStorage } from '../history/payload-storage.ts';
import type { StoredPayload } from '../history/message.ts';
import { commandKeyText, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { PROGRESS_ROW_MS, SIGHTINGS_PER_COMMAND } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { isTerminal, type Command } from './command.ts';
import { endMessageId, type End, type Report } from './commands.ts';

/**
 * Brings the reports of clients into the form that history keeps. A large payload is stored only if a row will refer to
 * it; otherwise a client could fill the store with unrequested payloads.
 */
export type StoredReports = {
  ofEnd(key: CommandKey, end: Omit<End, 'kept'>): MaybePromise<StoredPayload>;
  /** Prepares the payload of a report. Null: the report makes no row. */
  ofReport(key: CommandKey, report: Omit<Report, 'kept'>): MaybePromise<StoredPayload | null>;
  /** Forgets when large progress of this command was last stored. Called when the command has ended. */
  forget(key: CommandKey): void;
};

/**
 * The most commands for which the time of the last large progress report is remembered. A command that is forgotten
 * early may have more than one such row a second.
 */
const REMEMBERED = 10_000;

export function createStoredReports({ backend, clock }: Deps, keeper: PayloadStorage): StoredReports {
  /** The commands with a large progress report in the last PROGRESS_ROW_MS. */
  const spilled = new BoundedMap<string, true>({ most: REMEMBERED, ttl: { ms: PROGRESS_ROW_MS, clock } });
  const find = async (key: CommandKey): Promise<Command | null> => (await backend.commands.get([key]))[0] ?? null;
  const largeEnd = async (key: CommandKey, end: Omit<End, 'kept'>): Promise<StoredPayload> => {
    const command = await find(key);
    return command && makesRow(command, end) ? keeper.keepAnyway(end.payload, key.userId) : keeper.note(end.payload);
  };
  const largeProgress = async (key: CommandKey, report: Omit<Report, 'kept'>): Promise<StoredPayload | null> => {
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
 * Predicts whether `CommandStore.finish` will write a row: a repeated end is counted and makes no row, and of late ends
 * only the first few make one.
 */
function makesRow({ sightings, commandId }: Command, end: Omit<End, 'kept'>): boolean {
  const messageId = endMessageId(commandId, end);
  return sightings.length < SIGHTINGS_PER_COMMAND && !sightings.some((seen) => seen.messageId === messageId);
}

function large(text: JsonText | null): text is JsonText {
  return text !== null && isLarge(text);
}
