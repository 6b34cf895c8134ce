/** The events of commands that live feeds carry. Types only. */
import type { ActionPatterns } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import type { Command, Outcome } from './command.ts';

/**
 * What happened to a command. `late`: a client reported an end after the command had ended, or an instance to which the
 * command is not bound reported an end.
 */
export type CommandEventStage = 'admitted' | 'dispatched' | 'acknowledged' | 'ended' | 'late';

/**
 * An event of a command. `command`: the record after the event. `missed`: how many events that match the filter were
 * dropped since the previous one.
 */
export type CommandEvent = {
  readonly stage: CommandEventStage;
  readonly command: Command;
  readonly at: number;
  readonly missed: number;
};

/** A filter for command events. An event must match every member that is not null. */
export type CommandEventFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly action: string | null;
  readonly clientType: ClientType | null;
  /**
   * The outcomes to select. If this is set, only events of the stages `ended` and `late` match, and only if the command
   * has one of these outcomes. Null: events of every stage match.
   */
  readonly outcomes: readonly Outcome[] | null;
  /** The actions whose commands the requester may see. Absent: all actions. */
  readonly seen?: ActionPatterns;
};

/**
 * The filters that have listeners on a node, as the node announces them. They replace those of its previous
 * announcement, and expire after LISTENING_MS.
 */
export type Listening = {
  readonly nodeId: string;
  readonly feeds: readonly { readonly key: string; readonly filter: CommandEventFilter }[];
};
