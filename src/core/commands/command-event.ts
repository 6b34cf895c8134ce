/** The events of commands that live feeds carry. Types only. */
import type { ActionPatterns } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import type { Command, Outcome } from './command.ts';

/**
 * What happened to a command. `late`: an end was reported after the command had ended, or by an instance other than the
 * bound one.
 */
export type CommandEventStage = 'admitted' | 'dispatched' | 'acknowledged' | 'ended' | 'late';

/**
 * An event of a command. `command`: its record after the event. `missed`: how many events of the filter were left out
 * since the previous one.
 */
export type CommandEvent = {
  readonly stage: CommandEventStage;
  readonly command: Command;
  readonly at: number;
  readonly missed: number;
};

/** Selects events of commands. An event must match every member that is not null. */
export type CommandEventFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly action: string | null;
  readonly clientType: ClientType | null;
  /**
   * The outcomes to select. Only events of the stages `ended` and `late` match, and only if the command has one of
   * these outcomes. Null: events of every stage match.
   */
  readonly outcomes: readonly Outcome[] | null;
  /** The only actions whose commands the requester may see. Absent: all. */
  readonly seen?: ActionPatterns;
};

/** What the listeners of one node want now. It replaces what the node announced before, and holds for LISTENING_MS. */
export type Listening = {
  readonly nodeId: string;
  readonly feeds: readonly { readonly key: string; readonly filter: CommandEventFilter }[];
};
