/**
 * The types of an agent's request: the call that it makes, the clients that it may call, and the program that the agent
 * runs in.
 */
import type { UserPrincipal } from '../core/auth/principal.ts';
import type { JsonText } from '../core/json.ts';
import type { TraceContext } from '../core/trace-context.ts';
import type { RequestNotes } from '../web/request-notes.ts';
import type { RunningCall } from './call-answer.ts';
import type { ArgumentNames } from './tool-arguments.ts';
import type { Turn } from './turn.ts';
import type { Connection } from '../core/connections/connection.ts';

/** One request of an agent. */
export type AgentRequest = {
  readonly requester: UserPrincipal;
  /** The program that the agent runs in, as that program describes itself; null if it does not. */
  readonly host: AgentHost | null;
  /**
   * The agent's session, or its program if it has no session. Calls are compared only with calls of the same agent, to
   * recognise repeated ones.
   */
  readonly agent: string;
  readonly trace: TraceContext | undefined;
  readonly notes: RequestNotes | undefined;
  /**
   * The call that this request makes. It records whether the agent still waits for the answer, and whether the answer
   * arrived.
   */
  readonly call: RunningCall;
  /** Reads the connected clients of the requester's user. They are read once for the whole request. */
  readonly clients: () => Promise<ReadClients>;
  /** Runs a part of the work when the user has its turn. */
  readonly turn: Turn;
  /** The key by which the agent's program marks calls as repetitions of each other; null if it sent none. */
  readonly idempotencyKey: string | null;
  /** Sends a progress notification. Never throws. Null: the agent did not ask for progress. */
  readonly progress: ((seconds: number, message: string) => void) | null;
};

export type AgentHost = { readonly name: string; readonly version: string | null };

/** The action that an agent calls, with the arguments of the call. */
export type AgentCall = {
  readonly action: string;
  readonly client: string | null;
  readonly contextId: string | null;
  readonly params: JsonText | null;
  readonly repeatOf: string | null;
  readonly respondWithinMs: number | null;
  /** The names that these arguments have in the called tool. Answers mention arguments by these names. */
  readonly names: ArgumentNames;
};

/** The connected clients of a user, up to AGENT_CLIENTS. `more`: whether the user may have further ones. */
export type LiveClients = { readonly clients: readonly Connection[]; readonly more: boolean };

/** The clients of a user, up to AGENT_CLIENTS. `rows`: the connected ones, and those that were connected recently. */
export type ReadClients = LiveClients & { readonly rows: readonly Connection[] };
