/** What an agent asks for in a call, which clients it may ask, and the program that it runs in. */
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
  /** The program of the agent, as it describes itself; null: it did not. */
  readonly host: AgentHost | null;
  /** The session of the agent, or without one its program: equal calls of another one do not concern this one. */
  readonly agent: string;
  readonly trace: TraceContext | undefined;
  readonly notes: RequestNotes | undefined;
  /** Whether the agent still awaits the answer, and what becomes of it. */
  readonly call: RunningCall;
  /** Reads the connected clients of the requester's user, once for the whole request. */
  readonly clients: () => Promise<ReadClients>;
  /** Runs a part of the work when it is the turn of the user. */
  readonly turn: Turn;
  /** The key with which the host tells repeated calls apart; null: it gave none. */
  readonly idempotencyKey: string | null;
  /** Sends progress. Null: the agent did not ask for it. Never throws. */
  readonly progress: ((seconds: number, message: string) => void) | null;
};

export type AgentHost = { readonly name: string; readonly version: string | null };

/** What an agent calls. */
export type AgentCall = {
  readonly action: string;
  readonly client: string | null;
  readonly contextId: string | null;
  readonly params: JsonText | null;
  readonly repeatOf: string | null;
  readonly respondWithinMs: number | null;
  /** The names that these arguments have in the tool that is called, for the texts of answers. */
  readonly names: ArgumentNames;
};

/** Connected clients of a user. `more`: there may be more than these AGENT_CLIENTS. */
export type LiveClients = { readonly clients: readonly Connection[]; readonly more: boolean };

/** The clients of a user that were read. `rows`: also those that were connected until lately. */
export type ReadClients = LiveClients & { readonly rows: readonly Connection[] };
