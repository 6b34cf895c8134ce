/**
 * Calls of agents: chooses the client, recognises repeated calls, waits for a bounded time with progress, and cancels a
 * call whose agent has hung up.
 */
import type { HangUp, Invocation, InvokeRequest } from '../core/calls/call.ts';
import type { RepeatDecision } from '../core/calls/repeats.ts';
import { isTerminal, type Command } from '../core/commands/command.ts';
import { isLive, type Connection } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import { isId, type CommandKey } from '../core/ids.ts';
import type { JsonText } from '../core/json.ts';
import {
  AGENT_CLIENTS,
  AGENT_HUNG_UP_MS,
  AGENT_PROGRESS_MS,
  AGENT_SHOWN_CLIENTS,
  AGENT_WAIT_MS,
  PAGE_MAX,
} from '../core/limits.ts';
import type { Cancel, Log } from '../core/ports.ts';
import type { CallerLabel, UserPrincipal } from '../core/auth/principal.ts';
import type { TraceContext } from '../core/trace-context.ts';
import { noteCommand, spanNoter, type RequestNotes } from '../web/exchange.ts';
import { answerOf, failedResult, refusal, refusedCall, refusedRepeat, type ToolResult } from './results.ts';
import { clientText, passing, type ArgumentNames, type Offer } from './tools.ts';

/** One request of an agent. */
export type AgentRequest = {
  readonly requester: UserPrincipal;
  /** The program of the agent, as it describes itself; null: it did not. */
  readonly host: AgentHost | null;
  readonly trace: TraceContext | undefined;
  readonly notes: RequestNotes | undefined;
  /** Is aborted when the agent hangs up. */
  readonly signal: AbortSignal;
  /** Reads the connected clients of the requester's user, once for the whole request. */
  readonly clients: () => Promise<LiveClients>;
  /** The key with which the host tells repeated calls apart; null: it gave none. */
  readonly idempotencyKey: string | null;
  /** Sends progress. Null: the agent did not ask for it. Never throws. */
  readonly progress: ((seconds: number, message: string) => void) | null;
  /** Called with each command whose end the answer tells. */
  readonly tells: (key: CommandKey) => void;
};

/** Connected clients of a user. `more`: there may be more than these AGENT_CLIENTS. */
export type LiveClients = { readonly clients: readonly Connection[]; readonly more: boolean };

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

/** The most characters of a report of progress that is passed on. */
const PROGRESS_CHARS = 200;

export type Calls = ReturnType<typeof createCalls>;

export function createCalls(core: Core, log: Log) {
  const abandoned = new Set<Cancel>();
  /** Cancels a command whose agent has hung up, unless an identical call waits for it by then. */
  const abandon = (requester: UserPrincipal, key: CommandKey): void => {
    const cancelTimer = core.clock.after(AGENT_HUNG_UP_MS, () => {
      abandoned.delete(cancelTimer);
      cancelUnlessAwaited(core, requester, key).catch((error: unknown) => {
        // The deadline of the command ends it.
        log.debug({ err: error }, 'a command of an agent that hung up was not cancelled');
      });
    });
    abandoned.add(cancelTimer);
  };
  return {
    /** Invokes an action and waits for its end, for at most AGENT_WAIT_MS. */
    async invoke(request: AgentRequest, call: AgentCall): Promise<ToolResult> {
      const chosen = await chooseClient(core, request, call);
      if ('refused' in chosen) return chosen.refused;
      const { clientId, harmless } = chosen;
      const decision = await decide(core, request, { ...call, clientId, harmless });
      if ('content' in decision) return decision;
      try {
        return await invokeAs(core, request, { call, clientId, decision, abandon });
      } catch (error) {
        return failedResult(error, { log, about: { action: call.action }, call: 'begun', names: call.names });
      }
    },
    /** Waits for a command, for at most `withinMs`. Null: the requester has no such command. */
    async await(request: AgentRequest, key: CommandKey, withinMs: number): Promise<Invocation | null> {
      const wait = new Patience(core, request, withinMs);
      const { trace, notes } = request;
      const found = await core.rpc
        .await(request.requester, {
          ...{ ...key, withinMs, trace, callerLabel: labelOf(request), onSpan: spanNoter(notes) },
          ...wait.side,
        })
        .finally(() => wait.end());
      return found && noteCommand(notes, found);
    },
    /** Forgets the calls whose agents have hung up: their deadlines end them. */
    close(): void {
      for (const cancel of abandoned) cancel();
      abandoned.clear();
    },
  };
}

// Chooses the client that runs an action.

/** Reads the live connections of the requester's user, up to AGENT_CLIENTS. */
export async function liveClients({ connections, clock }: Core, requester: UserPrincipal): Promise<LiveClients> {
  const found: Connection[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Core['connections']['list']>> = await connections.list(
      requester,
      { userId: requester.userId },
      { first: PAGE_MAX, after },
    );
    found.push(...page.nodes);
    after = page.hasNextPage ? page.cursors.end() : null;
  } while (after !== null && found.length < AGENT_CLIENTS);
  const now = clock.now();
  return { clients: found.filter((connection) => isLive(connection, now)), more: after !== null };
}

/** Returns what these clients advertise. */
export function offersOf({ clients }: LiveClients): readonly Offer[] {
  return clients.flatMap(({ clientId, clientType, actions }) =>
    actions.map((action) => ({ clientId, clientType, action })),
  );
}

type Chosen = { readonly clientId: string; readonly harmless: boolean } | { readonly refused: ToolResult };

async function chooseClient(core: Core, request: AgentRequest, call: AgentCall): Promise<Chosen> {
  const { requester } = request;
  const { action, client, contextId, names } = call;
  const { userId } = requester;
  if (client !== null) {
    if (!isId(client))
      return {
        refused: refusal('invalid_argument', `${names.client ?? 'client'}: this is no id of a client.`, SEE_CLIENTS),
      };
    const [connection = null] = await core.connections.many([{ userId, clientId: client }]);
    return { clientId: client, harmless: isHarmless(connection, action) };
  }
  const { clients, more } = await request.clients();
  const offering = clients.filter(
    ({ actions, clientType }) =>
      actions.some(({ name }) => name === action) && core.actions.mayInvoke(requester, { userId, clientType, action }),
  );
  const reporting = contextId === null || offering.length < 2 ? null : await having(core, offering, contextId);
  const [first, ...others] = reporting ?? offering;
  // A client that was not looked at may offer the action too.
  if (first && others.length === 0 && !more) return { clientId: first.clientId, harmless: isHarmless(first, action) };
  if (offering.length === 0 && !more) return { refused: noClient(action) };
  const report = reporting && reporting.length > 0;
  return { refused: ambiguous(call, { clients: report ? reporting : offering, more, report }) };
}

export const SEE_CLIENTS = 'list_clients shows the clients and their contexts.';

/** Returns the clients that report this context. */
async function having(core: Core, clients: readonly Connection[], contextId: string): Promise<readonly Connection[]> {
  if (!isId(contextId)) return [];
  const rows = await core.contexts.many(clients.map(({ userId, clientId }) => ({ userId, clientId, contextId })));
  return clients.filter((_, i) => rows[i] != null);
}

function isHarmless(connection: Connection | null, action: string): boolean {
  const effects = connection?.actions.find(({ name }) => name === action)?.effects;
  return effects?.idempotent === true || effects?.readOnly === true;
}

/** The beginning of a sentence which says that none of these clients offers something. */
export function noneOf({ more }: LiveClients): string {
  return more ? `None of the first ${AGENT_CLIENTS} clients` : 'No connected client';
}

function noClient(action: string): ToolResult {
  return refusal(
    'not_connected',
    `No connected client offers the action "${action}" to you.`,
    'Wait until a client is connected (list_clients), or find another action (find_actions).',
  );
}

/** Clients that offer an action. `report`: whether they report the context that the call names; null: not looked up. */
type Candidates = LiveClients & { readonly report: boolean | null };

function ambiguous({ action, names }: AgentCall, { clients, more, report }: Candidates): ToolResult {
  const shown = clients
    .slice(0, AGENT_SHOWN_CLIENTS)
    .map(({ clientId, clientType }) => `"${clientId}" (${clientType})`);
  const others = clients.length > shown.length ? ` and ${clients.length - shown.length} more` : '';
  const list = shown.length === 0 ? '' : ` (${shown.join(', ')}${others})`;
  const that = report === true ? `"${action}" and report this context` : `"${action}"`;
  const says = [
    `Clients that offer the action ${that}: ${clients.length}${list}.`,
    ...(report === false ? ['None of them reports this context.'] : []),
    ...(more ? [`Only the first ${AGENT_CLIENTS} clients of the user were searched.`] : []),
  ];
  return refusal('ambiguous_client', says.join(' '), `To choose a client, ${passing(names, 'client')}. ${SEE_CLIENTS}`);
}

// Recognises repeated calls.

type Addressed = AgentCall & { readonly clientId: string; readonly harmless: boolean };
type Run = Extract<RepeatDecision, { readonly kind: 'new' | 'attach' }>;

/** Returns the command that the call is to run or to attach to, or the refusal of a repeated call. */
async function decide(core: Core, request: AgentRequest, call: Addressed): Promise<Run | ToolResult> {
  const { requester, idempotencyKey } = request;
  if (idempotencyKey !== null) return { kind: 'new', commandId: idempotencyKey };
  const { userId } = requester;
  const decision = await core.rpc.repeats.decide(requester, { ...call, userId });
  const { names } = call;
  if (decision.kind === 'refused') return refusedRepeat(decision.earlier, call);
  if (decision.kind === 'foreign') {
    const name = names.repeat_of ?? 'repeat_of';
    const message = `${name}: no earlier call of this action with the same arguments has this id.`;
    return refusal('invalid_argument', message, `Leave ${name} out for a call that is new.`);
  }
  return decision;
}

// Invokes and waits.

type Invoking = {
  readonly call: AgentCall;
  readonly clientId: string;
  readonly decision: Run;
  readonly abandon: (requester: UserPrincipal, key: CommandKey) => void;
};

async function invokeAs(core: Core, request: AgentRequest, invoking: Invoking): Promise<ToolResult> {
  const { call, clientId, decision, abandon } = invoking;
  const { requester, notes } = request;
  const { commandId } = decision;
  const key = { userId: requester.userId, clientId, commandId };
  const wait = new Patience(core, request, AGENT_WAIT_MS);
  const asked = { ...invokeRequest(request, call, key), ...wait.side };
  const invocation = noteCommand(notes, await core.rpc.invoke(requester, asked).finally(() => wait.end()));
  if (invocation.kind === 'refused') return refusedCall(invocation, call.names);
  if (invocation.kind === 'pending' && request.signal.aborted) abandon(requester, key);
  if (hasEnded(invocation)) request.tells(key);
  const attachedTo = decision.kind === 'attach' ? decision.earlier : null;
  return answerOf(invocation, { clientId, commandId, attachedTo, now: core.clock.now(), names: call.names });
}

/** Builds core's request: the only place that names the members of a call through the bridge. */
function invokeRequest(request: AgentRequest, call: AgentCall, key: CommandKey): InvokeRequest {
  const { action, params, contextId, respondWithinMs } = call;
  const { trace, notes } = request;
  const asked = { ...key, action, params, contextId, respondWithinMs, callerLabel: labelOf(request) };
  return { ...asked, trace, onSpan: spanNoter(notes), waitFor: 'completed' };
}

/**
 * Returns the label of the agent's program, which records name. Only calls with this label may use ids that begin with
 * `mcp-`.
 */
function labelOf({ host }: AgentRequest): CallerLabel {
  return { kind: 'mcp', name: host?.name ?? 'unnamed', version: host?.version ?? null };
}

/** The wait of an agent: it ends when its time is over or the agent hangs up, and sends progress in the meantime. */
class Patience implements HangUp {
  readonly #listeners = new Set<() => void>();
  readonly #signal: AbortSignal;
  #cancels: Cancel[];
  #over = false;
  #stage: Command['stage'] | null = null;
  #progress: string | null = null;
  readonly #tellsProgress: boolean;

  constructor({ clock }: Core, { signal, progress }: AgentRequest, withinMs: number) {
    const since = clock.monotonic();
    this.#signal = signal;
    this.#tellsProgress = progress !== null;
    this.#cancels = [clock.after(withinMs, this.#expire)];
    if (progress) {
      const seconds = (): number => Math.round((clock.monotonic() - since) / 1000);
      this.#cancels.push(clock.every(AGENT_PROGRESS_MS, () => progress(seconds(), this.#message())));
    }
    signal.addEventListener('abort', this.#expire, { once: true });
  }

  get aborted(): boolean {
    return this.#over || this.#signal.aborted;
  }

  /** What a call of core passes on to this wait. Progress costs a subscription, so it is named only if it is wanted. */
  get side(): Pick<InvokeRequest, 'signal' | 'onStage' | 'onProgress'> {
    if (!this.#tellsProgress) return { signal: this };
    return {
      signal: this,
      onStage: ({ stage }) => void (this.#stage = stage),
      onProgress: ({ payload }) => void (this.#progress = payload),
    };
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  /** Stops the timers. */
  end(): void {
    for (const cancel of this.#cancels) cancel();
    this.#cancels = [];
    this.#signal.removeEventListener('abort', this.#expire);
  }

  readonly #expire = (): void => {
    this.#over = true;
    for (const listener of [...this.#listeners]) listener();
  };

  #message(): string {
    const stage = this.#stage ?? 'waiting';
    return this.#progress === null ? stage : `${stage}: ${clientText(this.#progress, PROGRESS_CHARS)}`;
  }
}

/** Cancels what was not handed to the client, and asks the client to cancel what was. */
async function cancelUnlessAwaited(core: Core, requester: UserPrincipal, key: CommandKey): Promise<void> {
  const [waits = []] = await core.rpc.ofCommands([key]);
  if (waits.length === 0) await core.rpc.cancel(requester, key, 'The agent hung up.');
}

/** Whether the answer to a request about this command tells how it ended. */
export function hasEnded(invocation: Invocation): boolean {
  if (invocation.kind === 'ended') return true;
  return invocation.kind !== 'refused' && isTerminal(invocation.command);
}
