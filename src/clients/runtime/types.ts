/** Defines the public interface of `callboard/runtime`. Contains types only. */
import type { WireClientType } from '../../protocol/fields.ts';
import type { ActionSchema, ActionSpec, InputOf, JsonSchema, OutputOf, Params, ParamsOr } from '../link/actions.ts';
import type { LinkOptions } from '../link/link.ts';
import type { LinkStatus, Welcome } from '../link/link-status.ts';
import type { TraceApi } from '../link/spans.ts';
import type { ReportedContext, ReportedWindow, ReportChanges } from './reports.ts';

/** The cooperative site and session through which a command was invoked. */
export type SiteCall = { readonly sessionId: string; readonly siteId: string };

/** What a handler receives about the command that it runs. */
export type Call = {
  readonly commandId: string;
  readonly action: string;
  /**
   * The original JSON text of the params. It keeps digits that a parsed number may lose, and contains the two members
   * that the relay adds for a site's call.
   */
  readonly paramsText: string;
  /**
   * A signal that is aborted when the command is cancelled, at its deadline, after its action's `timeoutMs`, or when
   * the runtime closes.
   */
  readonly signal: AbortSignal;
  /**
   * The time at which the signal is aborted, in epoch milliseconds of the local clock. It is the arrival plus the
   * remaining time that the relay gave, or the end of `timeoutMs` if that is earlier.
   */
  readonly deadline: number;
  /** The trace that the relay gave: that of its own span if the relay traces, otherwise the caller's. */
  readonly traceId: string | null;
  /** The parent span that the relay gave: its own span if the relay traces, otherwise the caller's. */
  readonly parentSpanId: string | null;
  /** The flags of W3C Trace Context, as two hexadecimal digits. */
  readonly traceFlags: string | null;
  /** The list of the header `tracestate` of W3C Trace Context. */
  readonly traceState: string | null;
  /** The cooperative site and session of the call; null for an ordinary command. */
  readonly site: SiteCall | null;
  /**
   * The context in which the command must run, and in no other: one that `reportContexts` reports, in its first life.
   * Null: the call named none. Only a runtime with the option `places` gets such commands.
   */
  readonly contextId: string | null;
  remainingMs(): number;
  /**
   * Reports progress as JSON: as evidence, and to callers that asked for it. Best effort: returns false when it was not
   * sent (the command has ended, no link, over 1 MiB of unsent bytes in the socket, over 50 a second, not JSON, or
   * larger than a frame). Callers see how many reports they missed. The last report is sent before the end whatever the
   * rate.
   */
  progress(value: unknown): boolean;
};

/**
 * Runs a command. `params` already match the action's schema, if it has one. The value that the handler returns or
 * resolves to is the command's result, as JSON; undefined counts as null, and `rawJson(text)` is sent unchanged. An
 * error that it throws fails the command: see ActionError and ActionCancelled. If a handler returns after a cancel, its
 * command has completed.
 */
export type Handler<P = Params, R = unknown> = (params: P, call: Call) => Returned<R>;
/** An unknown result says nothing about what a handler may return. */
type Returned<R> = unknown extends R ? unknown : R | Promise<R>;

/** An action as one value, for the option `actions`. */
export type Action = ActionSpec & { readonly name: string; readonly run: Handler };

/** The command that a Judge decides on. */
export type ActionRequest = Omit<Call, 'remainingMs' | 'progress'> & { readonly params: Params };

export type Verdict = boolean | { readonly allow: boolean; readonly message?: string };
/** Decides before a handler runs. A refusal is anything but `true` or `{ allow: true }`, including an error. */
export type Judge = (request: ActionRequest) => Verdict | Promise<Verdict>;

/**
 * An end that the relay will never receive. `reason`: `outbox_full`, `closed`, or the code with which the relay refused
 * it.
 */
export type Drop = { readonly commandId: string; readonly reason: string };

export type RuntimeOptions = LinkOptions & {
  /** The id by which callers name this client: 1 to 128 of A-Z a-z 0-9 . _ : @ ~ -. */
  readonly clientId: string;
  /** `browser`, `console`, `mobile` or `web`. */
  readonly clientType: WireClientType;
  /**
   * The id of one run of this client; generated when absent. Two runs must never use the same id. A new run replaces
   * the previous run of the same client.
   */
  readonly instanceId?: string;
  /**
   * Whether the handlers run a command that names a context (`call.contextId`) there and nowhere else. Then callers may
   * name the contexts that `reportContexts` reports. The runtime refuses a command whose context is gone. Default
   * false: the relay refuses such calls.
   */
  readonly places?: boolean;
  /** Facts about this client for operators: any JSON of at most 16 KiB and 190 levels. Default null. */
  readonly metadata?: unknown;
  /** The actions to begin with. `handle` adds more. */
  readonly actions?: readonly Action[];
  /**
   * The local authorizer, called for every command before `approve`. A refusal ends the command with `client_denied`.
   * If it throws, the command is refused and `onError` receives the error. Absent: every command is allowed.
   */
  readonly authorize?: Judge;
  /**
   * Called for each command of an action with `approval`. A refusal ends the command with `approval_denied`. The
   * callback may take until the deadline of the command; then `request.signal` is aborted. If it throws, the command is
   * refused and `onError` receives the error. Absent: such commands are refused.
   */
  readonly approve?: Judge;
  /** Receives ends that the relay will never receive. `onError` receives what this callback throws. */
  readonly onDrop?: (drop: Drop) => void;
  /** Called when `paused` of the runtime changes. `onError` receives what this callback throws. */
  readonly onPaused?: (paused: Paused | null) => void;
  /**
   * The `trace` object of `@opentelemetry/api`, to record a span for each command. While a handler runs, that span is
   * active, so the spans that the handler starts are its children.
   */
  readonly tracing?: TraceApi;
};

/** A cooperative site. The defaults: no title, any event name, no actions, and viewers may only receive events. */
export type SiteDefinition = {
  readonly siteId: string;
  /** The title for people: at most 256 characters. */
  readonly title?: string | null;
  /** The event names that may be published; any name when empty. */
  readonly eventNames?: readonly string[];
  /** The actions of this client that viewers may invoke. */
  readonly actions?: readonly string[];
  /** Whether viewers may invoke `actions`, and whether a session may be shared with others. Each default false. */
  readonly capabilityProfile?: { readonly actionInvocation?: boolean; readonly sharing?: boolean };
};

/** What becomes of the calls that a pause of the client covers. */
export type PauseOptions = {
  /** Commands that were not dispatched: `keep` (default) lets them wait, and perhaps expire; `cancel` ends them. */
  readonly queued?: 'keep' | 'cancel';
  /** Commands that run: `leave` (default) lets them run; `cancel` aborts their signals. */
  readonly running?: 'leave' | 'cancel';
};

/**
 * A pause that covers all calls of the client. `by`: who set it, `admin`, `user` or `client` with a space and the name.
 * `until`: epoch milliseconds, by the relay's clock; null: until somebody resumes.
 */
export type Paused = { readonly by: string; readonly reason: string; readonly until: number | null };

export interface SiteRegistration {
  readonly siteId: string;
  /**
   * Resolves when the relay has accepted this definition, or a later one of the same site; pending while there is no
   * link. Rejects with SiteRefusedError, or with LinkClosedError when the runtime closes. An unhandled rejection of
   * this promise raises no error.
   */
  readonly registered: Promise<void>;
  /** Removes the site, as `removeSite` does. */
  remove(): Promise<void>;
}

export interface Runtime extends AsyncDisposable {
  /** The address of the link: of several, the one in use, or the one that is tried next. */
  readonly url: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly status: LinkStatus;
  /** The pause that covers all calls of this client, as the relay last said; null: none does. */
  readonly paused: Paused | null;
  /** The number of commands in progress: those being authorized or approved, and those whose handlers run. */
  readonly running: number;
  /** The number of ends that the relay has not acknowledged. */
  readonly unacknowledged: number;
  /** Starts connecting. Afterwards the runtime reconnects by itself; further calls do nothing. */
  connect(): void;
  /** Resolves when connected, at once if it already is. Rejects with LinkClosedError when closed permanently. */
  ready(): Promise<Welcome>;
  /** Calls the listener for each later status change. Returns a function that removes the listener. */
  onStatus(listener: (status: LinkStatus) => void): () => void;
  /**
   * Adds an action and advertises it, with types by hand: `handle<P, R>(...)`. Only a schema makes sure that the params
   * are of type `P`.
   */
  handle<P extends object = never, R = unknown>(
    name: [P] extends [never] ? never : string,
    spec: ActionSpec,
    run: Handler<NoInfer<P>, NoInfer<R>>,
  ): () => void;
  /**
   * Adds an action and advertises it. The schemas of the spec give the types of the handler's params and result. Throws
   * TypeError for a name that is invalid or in use, a schema that cannot be applied, an invalid `timeoutMs`, an
   * advertisement that is too large, or too many actions. Returns a function that removes the action; its running
   * commands continue.
   */
  handle<const S extends ActionSchema = JsonSchema, const R extends ActionSchema = JsonSchema>(
    name: string,
    spec: ActionSpec<S, R>,
    run: Handler<ParamsOr<OutputOf<S>>, InputOf<R>>,
  ): () => void;
  /**
   * Hosts a cooperative site: registers it now and again after each `welcome`. A second call for the same site replaces
   * its definition. If the relay refuses a definition, the previous one stays in force. The token needs the scope
   * `host`. Throws TypeError for an invalid id.
   */
  site(definition: SiteDefinition): SiteRegistration;
  /**
   * Removes a site and its sessions at the relay, even a site that another run registered. Resolves when the relay has
   * done so; pending while there is no link. Rejects with SiteRefusedError (for example `not_found`) or
   * LinkClosedError.
   */
  removeSite(siteId: string): Promise<void>;
  /**
   * Sets the execution contexts of this client. A list replaces all of them; an object has only the changes. The
   * runtime keeps the current state. It reports a snapshot to the relay after each `welcome`, and changes at other
   * times. All changes of one event-loop turn go into one report. Throws TypeError, naming the wrong member, or for
   * more than 1000 contexts; the state is then unchanged. A context that callers may name needs an id that no earlier
   * context had: `newContextId()` makes one.
   */
  reportContexts(contexts: readonly ReportedContext[] | ReportChanges<ReportedContext>): void;
  /** Like `reportContexts`, for browser windows: at most 100. */
  reportWindows(windows: readonly ReportedWindow[] | ReportChanges<ReportedWindow>): void;
  /**
   * Stops the calls of this client, because the person at it says so. From now on the runtime refuses each new command
   * with `paused`, and once the promise has resolved, the relay holds back or refuses all, on every node, until
   * `resume()`, or until the user or an administrator ends the pause. Callers read the reason, 1 to 256 characters. The
   * pause outlives this run. Without a link the promise is pending. Rejects with PauseRefusedError (`not_supported`: the
   * store of the relay has no pauses; then nothing is paused), or with LinkClosedError.
   */
  pause(reason: string, options?: PauseOptions): Promise<void>;
  /** Ends what `pause` began, in this run or an earlier one; nothing if there is nothing to end. Rejects as `pause` does. */
  resume(): Promise<void>;
  /**
   * Resolves with a token for HTTP requests to the relay, from the link's token source. Rejects with what the source
   * throws.
   */
  token(): Promise<string>;
  /**
   * Shuts down gracefully. The runtime asks the relay to dispatch nothing more, lets dispatched commands run, and
   * closes the link when the relay has acknowledged their ends. Queued commands wait for the client's next link. After
   * `withinMs` milliseconds (default 10000), commands that still run are aborted, and ends that are not acknowledged
   * are lost. Without a link and with nothing left to report, it closes at once. Never rejects; further calls return
   * the same promise.
   */
  close(options?: { readonly withinMs?: number }): Promise<void>;
}
