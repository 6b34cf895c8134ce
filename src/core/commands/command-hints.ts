/** Publishes to the watchers of a command that it changed. */
import type { Bus } from '../backend.ts';
import { commandKeyText, type CommandKey } from '../ids.ts';
import type { Report } from './command-store.ts';

/** What a hint says of a report: its progress, and the number that the client gave it. An acknowledgement has neither. */
type Reported = Pick<Report, 'payload' | 'number'>;

/** Publishes a hint that a command changed, if anybody watches commands. `reported`: the change is this report. */
export function publishHint(bus: Bus, key: CommandKey, { payload, number }: Reported = NOTHING): void {
  if (!bus.hasSubscribers('command')) return;
  const { userId, clientId, commandId } = key;
  const hint = { key: { userId, clientId, commandId }, progress: payload };
  bus.publish(`command:${commandKeyText(key)}`, number === undefined ? hint : { ...hint, number });
}

/**
 * Publishes a report that was recorded. Call it in the process that records the ends of the command, before anything
 * that follows from the report leaves it: a caller then gets the report before an end that was reported later.
 */
export function publishReport(bus: Bus, key: CommandKey, report: Omit<Report, 'kept'>): void {
  publishHint(bus, key, report.kind === 'progress' ? report : NOTHING);
}

const NOTHING: Reported = { payload: null };
