/** The interface between core and the gateway for one client link. Types only. */
import type { ActionAdvertisement, ClientType, DisconnectCause } from '../connections/connection.ts';
import type { JsonText } from '../json.ts';
import type { TraceFields } from '../trace-context.ts';
import type { Command } from './command.ts';
import type { Received } from './command-store.ts';

/**
 * A client's socket as core sees it; the gateway implements it. No method may throw. After `close` the methods do
 * nothing.
 */
export interface ClientLink {
  /**
   * Writes the command. Called at most once per command and link, and only after its dispatch is recorded. `trace`:
   * the trace that the client's own spans belong to; null: the one that the caller gave.
   */
  sendCommand(command: Command, params: JsonText | null, remainingMs: number, trace: TraceFields | null): void;
  sendCancel(commandId: string, reason: string | null): void;
  /** Returns the number of bytes that the socket has not accepted yet. */
  backlog(): number;
  /**
   * Sends the cause and closes. `instanceId`: the successor of a replaced instance. `mayReturn`: the client may connect
   * again although the link is replaced. As with any close, `LinkSession.closed` is called in the end.
   */
  close(cause: DisconnectCause, instanceId: string | null, mayReturn?: boolean): void;
}

export type HelloRequest = {
  readonly clientId: string;
  readonly instanceId: string;
  readonly clientType: ClientType;
  /** Whether the client knows places: it runs a command that names a context there and nowhere else. */
  readonly places?: boolean;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
  /** What the client says of its earlier links; null or absent: it says nothing. */
  readonly resumes?: Resumes | null;
  /** How long ago the relay read the hello, in milliseconds: its token took so long. Absent: now. */
  readonly readMsAgo?: number;
};

/**
 * What a client says of its earlier links. `attempt`: the number of this attempt to connect, which grows with each. Of
 * the links of one instance the one with the greatest attempt wins. `received`: the commands that arrived over earlier
 * links and whose ends it still has to report. Nothing else can arrive any more, because the client has given up its
 * earlier sockets.
 */
export type Resumes = { readonly attempt: number; readonly received: Received };
