/** The interface between core and the gateway for one client link. Types only. */
import type { ActionAdvertisement, ClientType, DisconnectCause } from '../connections/connection.ts';
import type { JsonText } from '../json.ts';
import type { TraceFields } from '../trace-context.ts';
import type { Command } from './command.ts';
import type { Received } from './command-store.ts';

/**
 * A client's socket. Core calls it, and the gateway implements it. No method may throw. After `close`, the methods do
 * nothing.
 */
export interface ClientLink {
  /**
   * Writes the command to the socket. Called at most once per command and link, and only after the dispatch is
   * recorded. `trace`: the trace context that the client's own spans belong to; null: the one that the caller gave.
   */
  sendCommand(command: Command, params: JsonText | null, remainingMs: number, trace: TraceFields | null): void;
  sendCancel(commandId: string, reason: string | null): void;
  /** Returns the number of bytes that the socket has not accepted yet. */
  backlog(): number;
  /**
   * Tells the client why the link closes, and closes it. `instanceId`: the instance that replaces the client's; null if
   * none does. `mayReturn`: whether the client may connect again although its link was replaced. After the close,
   * `LinkSession.closed` is called.
   */
  close(cause: DisconnectCause, instanceId: string | null, mayReturn?: boolean): void;
}

export type HelloRequest = {
  readonly clientId: string;
  readonly instanceId: string;
  readonly clientType: ClientType;
  /** Whether the client supports commands that name a context: it runs such a command in that context only. */
  readonly places?: boolean;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
  /** What the client reports about its earlier links; null or absent if it reports nothing. */
  readonly resumes?: Resumes | null;
  /** How many milliseconds ago the relay read the hello. Checking the client's token may take a while. Absent: 0. */
  readonly readMsAgo?: number;
};

/**
 * What a client reports about its earlier links. `attempt`: the number of this connection attempt. It grows with each
 * attempt, and among the links of one instance the link with the highest number wins. `received`: the commands that
 * arrived over earlier links and whose ends the client has not reported yet. The client has closed its earlier sockets,
 * so no other command can still arrive.
 */
export type Resumes = { readonly attempt: number; readonly received: Received };
