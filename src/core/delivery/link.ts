import type { ActionAdvertisement, Connection, DisconnectCause } from '../connections/connection.ts';
import type { ConnectResult } from '../connections/store.ts';
import type { Report, ReportOutcome } from '../contexts/store.ts';
import type { TerminalError } from '../history/message.ts';
import type { JsonText } from '../json.ts';
import type { Maybe } from '../maybe.ts';
import type { Command } from './command.ts';
import type { FinishResult, ReportResult } from './commands.ts';

/** A client's socket as core sees it: what the gateway gives. None of these may throw; after `close` they do nothing. */
export interface ClientLink {
  /** Writes the command. Called at most once per command, only after its dispatch is on record. */
  sendCommand(command: Command, params: JsonText | null, remainingMs: number): void;
  sendCancel(commandId: string, reason: string | null): void;
  /** Bytes that the socket has not taken yet. */
  backlog(): number;
  /** Says why and closes. `instanceId` is the successor of a replaced one. Ends in `LinkSession.closed` as any close does. */
  close(cause: DisconnectCause, instanceId: string | null): void;
}

/** One open link, from the gateway's side. Everything here is bound to the link's instance and epoch. */
export interface LinkSession {
  readonly result: ConnectResult;
  /** Commands that an earlier link of the instance was written and that have not ended: their reports are asked for on this one. */
  readonly unfinished: readonly Command[];
  /** The client was welcomed: dispatching begins, and cancels that it missed are sent. Nothing is sent over the link before. */
  begin(): void;
  /** These three answer in the same tick where the store does, and throw then. */
  ack(commandId: string): Maybe<ReportResult>;
  progress(commandId: string, payload: JsonText | null): Maybe<ReportResult>;
  end(
    commandId: string,
    end: {
      readonly kind: 'result' | 'error' | 'cancelled';
      readonly payload: JsonText | null;
      readonly error: TerminalError | null;
      readonly refused: boolean;
    },
  ): Maybe<FinishResult>;
  advertise(actions: readonly ActionAdvertisement[]): Promise<Connection | null>;
  /** What the client says of its contexts and windows: all of it is taken, or nothing. */
  report(report: Report): Promise<ReportOutcome>;
  /** A sign of life. False when this link is no longer the bound one, unless its client is leaving: the gateway then closes it. */
  alive(): Promise<boolean>;
  /**
   * The client leaves: from now on the link is no target, its connection counts as disconnected (`client_closed`), no further dispatch is begun on
   * it, and what was not dispatched waits for the client's next link. Resolves, once nothing more will be written to the link, with the ids of the
   * commands that were dispatched on it and have not ended: their reports are still taken. May be asked again.
   */
  leave(): Promise<readonly string[]>;
  /** The socket took what had piled up: dispatching goes on. */
  drained(): void;
  /** The socket is gone. Idempotent. */
  closed(cause: DisconnectCause): Promise<void>;
}
