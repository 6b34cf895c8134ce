/** Defines the public types of `callboard/runtime`. */
import type { WireClientType } from '../../protocol/fields.ts';
import type { ActionSchema, ActionSpec, InputOf, JsonSchema, OutputOf, Params, ParamsOr } from '../link/actions.ts';
import type { LinkOptions } from '../link/link.ts';
import type { LinkStatus, Welcome } from '../link/link-status.ts';
import type { TraceApi } from '../link/spans.ts';
import type { ReportedContext, ReportedWindow, ReportChanges } from './reports.ts';

/** The cooperative site and the session through which a command was invoked. */
export type SiteCall = { readonly sessionId: string; readonly siteId: string };

/** What a handler gets to know about its command. */
export type Call = {
  readonly commandId: string;
  readonly action: string;
  /**
   * The original JSON text of the params. It preserves digits that parsed numbers may lose. If the command was invoked
   * through a site, it contains the two members that the relay added.
   */
  readonly paramsText: string;
  /**
   * A signal that is aborted when the command is cancelled, at its deadline, after the action's `timeoutMs`, or when
   * the runtime closes.
   */
  readonly signal: AbortSignal;
  /**
   * The time at which the signal will be aborted, in epoch milliseconds of the local clock: the arrival of the command
   * plus the remaining time that the relay gave, or the end of `timeoutMs` if this is earlier.
   */
  readonly deadline: number;
  /** The trace id that the relay sent: that of its own span if the relay traces, and the caller's otherwise. */
  readonly traceId: string | null;
  /** The parent span id that the relay sent: that of its own span if the relay traces, and the caller's otherwise. */
  readonly parentSpanId: string | null;
  /** The flags of W3C Trace Context, as two hexadecimal digits. */
  readonly traceFlags: string | null;
  /** The `tracestate` of W3C Trace Context. */
  readonly traceState: string | null;
  /** The site and the session through which the command was invoked; null for all other commands. */
  readonly site: SiteCall | null;
  /**
   * The context in which the command must run: one that `reportContexts` reports, in its first life. Null if the call
   * named none. Only a runtime with the option `places` gets commands with a context.
   */
  readonly contextId: string | null;
  remainingMs(): number;
  /**
   * Reports progress, as a JSON value. The relay stores it as evidence, and sends it to callers that requested
   * progress. Best effort: returns false if the report was not sent, because the command has ended, there is no link,
   * the socket has more than 1 MiB of unsent bytes, there were more than 50 reports within a second, or the value is
   * not JSON or larger than a frame. Callers see how many reports they missed. The last report is sent before the end
   * even if the rate was exceeded.
   */
  progress(value: unknown): boolean;
};

/**
 * Runs a command. If the action has a schema, `params` match it. The command's result is the value that the handler
 * returns or resolves to, as JSON; undefined counts as null, and `rawJson(text)` is sent unchanged. If the handler
 * throws, the command fails: see ActionError and ActionCancelled. If it returns after a cancel, the command has
 * completed.
 */
export type Handler<P = Params, R = unknown> = (params: P, call: Call) => Returned<R>;
/** What a handler may return: anything, if the type of the result is unknown. */
type Returned<R> = unknown extends R ? unknown : R | Promise<R>;

/** An action as one object, for the option `actions`. */
export type Action = ActionSpec & { readonly name: string; readonly run: Handler };

/** The command about which a Judge decides. */
export type ActionRequest = Omit<Call, 'remainingMs' | 'progress'> & { readonly params: Params };

export type Verdict = boolean | { readonly allow: boolean; readonly message?: string };
/**
 * Decides whether a command may run, before its handler runs. The command may run only if the answer is `true` or `{
 * allow: true }`; an error is a refusal.
 */
export type Judge = (request: ActionRequest) => Verdict | Promise<Verdict>;

/**
 * An end that the relay will never receive. `reason`: `outbox_full`, `closed`, or the code with which the relay refused
 * the end.
 */
export type Drop = { readonly commandId: string; readonly reason: string };

export type RuntimeOptions = LinkOptions & {
  /** The id by which callers name this client: 1 to 128 of the characters A-Z a-z 0-9 . _ : @ ~ -. */
  readonly clientId: string;
  /** `browser`, `console`, `mobile` or `web`. */
  readonly clientType: WireClientType;
  /**
   * The id of this run of the client; if absent, the runtime makes one. No two runs may have the same id. A new run
   * replaces the previous run of the same client.
   */
  readonly instanceId?: string;
  /**
   * Whether the handlers support commands that name a context (`call.contextId`): they run such a command in that
   * context only. Callers may then name the contexts that `reportContexts` reports, and the runtime refuses a command
   * if its context is gone. Default false: the relay refuses calls that name a context.
   */
  readonly places?: boolean;
  /** Facts about this client for operators: any JSON of at most 16 KiB and 190 levels. Default null. */
  readonly metadata?: unknown;
  /** The initial actions. `handle` adds more. */
  readonly actions?: readonly Action[];
  /**
   * The local authorizer. It is called for every command, before `approve`. A refusal ends the command with
   * `client_denied`. If it throws, the command is refused and `onError` receives the error. Absent: every command is
   * allowed.
   */
  readonly authorize?: Judge;
  /**
   * The approver. It is called for each command of an action with `approval`, and may ask a person. A refusal ends the
   * command with `approval_denied`. It may take until the command's deadline; then `request.signal` is aborted. If it
   * throws, the command is refused and `onError` receives the error. Absent: commands of such actions are refused.
   */
  readonly approve?: Judge;
  /** Receives each end that the relay will never receive. If it throws, `onError` receives the error. */
  readonly onDrop?: (drop: Drop) => void;
  /** Called when `paused` of the runtime changes. If it throws, `onError` receives the error. */
  readonly onPaused?: (paused: Paused | null) => void;
  /**
   * The `trace` object of `@opentelemetry/api`. If set, a span is recorded for each command. The span is active while
   * the handler runs, so spans that the handler starts are its children.
   */
  readonly tracing?: TraceApi;
};

/** A cooperative site. Defaults: no title, any event name, no actions, and viewers may only receive events. */
export type SiteDefinition = {
  readonly siteId: string;
  /** The title for people: at most 256 characters. */
  readonly title?: string | null;
  /** The names of the events that may be published; empty: any name. */
  readonly eventNames?: readonly string[];
  /** The actions of this client that viewers may invoke. */
  readonly actions?: readonly string[];
  /** Whether viewers may invoke `actions`, and whether sessions may be shared with others. Both default to false. */
  readonly capabilityProfile?: { readonly actionInvocation?: boolean; readonly sharing?: boolean };
};

/** What happens to the commands that a pause of the client covers. */
export type PauseOptions = {
  /** Commands that were not dispatched. `keep` (default): they wait, and may expire. `cancel`: they are cancelled. */
  readonly queued?: 'keep' | 'cancel';
  /** Running commands. `leave` (default): they continue. `cancel`: their signals are aborted. */
  readonly running?: 'leave' | 'cancel';
};

/**
 * A pause that covers all calls of the client. `by`: who set it: `admin`, `user` or `client`, then a space and the
 * name. `until`: epoch milliseconds by the relay's clock; null: until someone resumes.
 */
export type Paused = { readonly by: string; readonly reason: string; readonly until: number | null };

export interface SiteRegistration {
  readonly siteId: string;
  /**
   * Resolves when the relay has accepted this definition or a later one of the same site. Pending while there is no
   * link. Rejects with SiteRefusedError, or with LinkClosedError when the runtime closes. If the program does not
   * handle the rejection, no error is raised.
   */
  readonly registered: Promise<void>;
  /** Removes the site, as `removeSite` does. */
  remove(): Promise<void>;
}

export interface Runtime extends AsyncDisposable {
  /** The address of the link: the one in use or, while there is no link, the one that is tried next. */
  readonly url: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly status: LinkStatus;
  /** The pause that covers all calls of this client, as the relay last reported; null if there is none. */
  readonly paused: Paused | null;
  /**
   * The number of commands in progress: those that wait for authorization or approval, and those whose handlers run.
   */
  readonly running: number;
  /** The number of ends that the relay has not acknowledged. */
  readonly unacknowledged: number;
  /** Starts connecting. From then on the runtime reconnects by itself. Further calls do nothing. */
  connect(): void;
  /**
   * Resolves when the runtime is connected; at once if it already is. Rejects with LinkClosedError when the link is
   * closed permanently.
   */
  ready(): Promise<Welcome>;
  /** Calls the listener at each later change of the status. Returns a function that removes the listener. */
  onStatus(listener: (status: LinkStatus) => void): () => void;
  /**
   * Adds an action and advertises it, with explicit types: `handle<P, R>(...)`. The type `P` of the params is checked
   * at run time only if the spec has a schema.
   */
  handle<P extends object = never, R = unknown>(
    name: [P] extends [never] ? never : string,
    spec: ActionSpec,
    run: Handler<NoInfer<P>, NoInfer<R>>,
  ): () => void;
  /**
   * Adds an action and advertises it. The types of the handler's params and result come from the schemas of the spec.
   * Throws TypeError if the name is invalid or in use, if a schema cannot be used, if `timeoutMs` is invalid, if the
   * advertisement is too large, or if there are too many actions. Returns a function that removes the action; its
   * running commands continue.
   */
  handle<const S extends ActionSchema = JsonSchema, const R extends ActionSchema = JsonSchema>(
    name: string,
    spec: ActionSpec<S, R>,
    run: Handler<ParamsOr<OutputOf<S>>, InputOf<R>>,
  ): () => void;
  /**
   * Hosts a cooperative site: registers it now, and again after each `welcome`. A second call for the same site
   * replaces its definition. If the relay refuses a definition, the previous one stays valid. The token needs the scope
   * `host`. Throws TypeError for an invalid id.
   */
  site(definition: SiteDefinition): SiteRegistration;
  /**
   * Removes a site and its sessions at the relay, even if another run registered the site. Resolves when the relay has
   * done so. Pending while there is no link. Rejects with SiteRefusedError (for example `not_found`) or
   * LinkClosedError.
   */
  removeSite(siteId: string): Promise<void>;
  /**
   * Sets the execution contexts of this client. A list replaces all of them; an object contains only the changes. The
   * runtime stores the current state, reports a snapshot to the relay after each `welcome`, and otherwise reports
   * changes. All changes in one turn of the event loop go into one report. Throws TypeError if a member is wrong, with
   * its name, or if there are more than 1000 contexts; the state is then unchanged. If callers may name a context, its
   * id must be new: `newContextId()` makes one.
   */
  reportContexts(contexts: readonly ReportedContext[] | ReportChanges<ReportedContext>): void;
  /** Sets the browser windows of this client, like `reportContexts`: at most 100. */
  reportWindows(windows: readonly ReportedWindow[] | ReportChanges<ReportedWindow>): void;
  /**
   * Pauses all calls of this client, because its person wants to stop. From now on, the runtime refuses each new
   * command with `paused`. When the promise resolves, the relay holds back or refuses all calls on every node, until
   * `resume()` is called, or until the user or an administrator ends the pause. `reason`: 1 to 256 characters, which
   * callers see. The pause outlives this run. Without a link, the promise is pending. Rejects with PauseRefusedError
   * (`not_supported`: the relay's store has no pauses, so nothing is paused), or with LinkClosedError.
   */
  pause(reason: string, options?: PauseOptions): Promise<void>;
  /**
   * Ends the pause that `pause` set, in this run or an earlier one. Does nothing if there is none. Rejects like
   * `pause`.
   */
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
   * are lost. If there is no link and nothing left to report, it closes at once. Never rejects. Further calls return
   * the same promise.
   */
  close(options?: { readonly withinMs?: number }): Promise<void>;
}
