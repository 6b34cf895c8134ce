/** The interface between core and the gateway for one client link. Types only. */
import type { ActionAdvertisement, ClientType, Connection, DisconnectCause } from '../connections/connection.ts';
import type { ConnectResult } from '../connections/store.ts';
import type { ContextReport, ReportOutcome } from '../contexts/store.ts';
import type { TerminalError } from '../history/message.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { TraceFields } from '../trace-context.ts';
import type { Command } from './command.ts';
import type { FinishResult, ReportResult } from './commands.ts';

/**
 * A client's socket as core sees it; the gateway implements it. No method may throw. After `close` the methods do
 * nothing.
 */
export interface ClientLink {
  /**
   * Writes the command. Called at most once per command, and only after its dispatch is recorded. `trace`: the trace
   * that the client's own spans belong to; null: the one that the caller gave.
   */
  sendCommand(command: Command, params: JsonText | null, remainingMs: number, trace: TraceFields | null): void;
  sendCancel(commandId: string, reason: string | null): void;
  /** Returns the number of bytes that the socket has not accepted yet. */
  backlog(): number;
  /**
   * Sends the cause and closes. `instanceId`: the successor of a replaced instance. As with any close,
   * `LinkSession.closed` is called in the end.
   */
  close(cause: DisconnectCause, instanceId: string | null): void;
}

/** One open link as the gateway uses it. All methods are bound to the link's instance and epoch. */
export interface LinkSession {
  readonly clientId: string;
  readonly clientType: ClientType;
  /** Whether the token of the hello allowed the client to host sites. */
  readonly host: boolean;
  /** What binding the link changed; null once `begin` was called. */
  readonly result: ConnectResult | null;
  /**
   * Commands that were written to an earlier link of this instance and have not ended. The client is asked for their
   * reports on this link. Empty once `begin` was called.
   */
  readonly unfinished: readonly Command[];
  /**
   * Called when the client has been welcomed: dispatching begins, and cancels that the client missed are sent. Before
   * this, nothing is sent over the link.
   */
  begin(): void;
  /**
   * Records an acknowledgement. This method and the two after it answer in the same tick if the store does, and then
   * also throw in that tick.
   */
  ack(commandId: string): MaybePromise<ReportResult>;
  progress(commandId: string, payload: JsonText | null): MaybePromise<ReportResult>;
  end(
    commandId: string,
    end: {
      readonly kind: 'result' | 'error' | 'cancelled';
      readonly payload: JsonText | null;
      readonly error: TerminalError | null;
      readonly refused: boolean;
    },
  ): MaybePromise<FinishResult>;
  advertise(actions: readonly ActionAdvertisement[]): Promise<Connection | null>;
  /** Stores what the client reports of its contexts and windows: all of it is accepted, or nothing. */
  report(report: ContextReport): Promise<ReportOutcome>;
  /**
   * Records a sign of life. Resolves to false if the client is no longer bound to this link; the gateway then closes the
   * link. Always true once the client is leaving.
   */
  alive(): Promise<boolean>;
  /**
   * Publishes that the client is silent. Called once for each silence of STALE_MS. Never rejects; nothing is published
   * while the store is unavailable.
   */
  silent(): Promise<void>;
  /**
   * Handles a client that leaves. Its connection then counts as disconnected (`client_closed`). No further dispatch
   * begins on this link, and undispatched commands wait for the client's next link. Resolves once nothing more will be
   * written to the link. Returns the ids of the commands that were dispatched on it and have not ended; their reports
   * are still accepted. May be called again.
   */
  leave(): Promise<readonly string[]>;
  /** Called when the socket has accepted its backlog: dispatching continues. */
  drained(): void;
  /** Called when the socket has closed. Idempotent. */
  closed(cause: DisconnectCause, closeCode?: number | null): Promise<void>;
}
