import type { WireClientType } from '../../protocol/fields.ts';
import type { Clock } from '../link/clock.ts';
import type { ErrorSink } from '../link/guard.ts';
import type { SocketConstructor } from '../link/socket.ts';
import type { LinkStatus, Welcome } from '../link/status.ts';
import type { TokenSource } from '../link/token.ts';
import type { ReportedContext, ReportedWindow } from './report-rows.ts';
import type { ReportChanges } from './report-shelf.ts';

/** The params of a command, already valid by the action's schema where it has one. */
export type Params = Readonly<Record<string, unknown>>;

/** The cooperative site and session that a command came through. */
export type SiteCall = { readonly sessionId: string; readonly siteId: string };

/** One run of a handler. */
export type Call = {
  readonly commandId: string;
  readonly action: string;
  /** The params as they were written: JSON text with the digits that a number may have lost, and with the relay's own two members of a site's call. */
  readonly paramsText: string;
  /** Aborted when the command is cancelled, when its deadline passes, when its action's `timeoutMs` is over, or when the runtime closes. */
  readonly signal: AbortSignal;
  /** Epoch milliseconds of the local clock: the relay's remaining time, counted from the arrival, or the end of `timeoutMs` if that is earlier. */
  readonly deadline: number;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  /** Null for an ordinary command. */
  readonly site: SiteCall | null;
  remainingMs(): number;
  /** Tells something meanwhile, as JSON. Best effort: false when it was dropped (no link, socket behind, not JSON, too large). */
  progress(value: unknown): boolean;
};

/**
 * What it returns (or resolves to) is the command's result, as JSON; undefined counts as null, and `rawJson(text)` is sent as that text. What it throws fails the command: see
 * ActionError and ActionCancelled. A handler that was cancelled and returns all the same has completed.
 */
export type Handler = (params: Params, call: Call) => unknown;

/** What is advertised, and how the action is guarded here. */
export type ActionSpec = {
  readonly summary?: string;
  readonly description?: string;
  readonly version?: string;
  /** JSON Schema 2020-12. Params that do not match are refused (`arguments_invalid`) before anything else is asked. */
  readonly schema?: Readonly<Record<string, unknown>> | boolean;
  /** Any JSON. */
  readonly metadata?: unknown;
  /** One command at a time: another one meanwhile is refused (`lease_busy`). */
  readonly lease?: boolean;
  /** How long the handler may run, in milliseconds, besides the command's own deadline. Then its signal is aborted (`client_timeout`). */
  readonly timeoutMs?: number;
  /** `approve` is asked for each command. Without such a callback, each is refused (`approval_denied`). */
  readonly approval?: boolean;
};

export type Action = ActionSpec & { readonly name: string; readonly run: Handler };

/** What a judge is asked about. */
export type ActionRequest = Omit<Call, 'remainingMs' | 'progress'> & { readonly params: Params };

export type Verdict = boolean | { readonly allow: boolean; readonly message?: string };
/** Asked before a handler runs. What it throws counts as a no. */
export type Judge = (request: ActionRequest) => Verdict | Promise<Verdict>;

/** An end that the relay will never get: `outbox_full`, `closed`, or the code by which the relay refused it. */
export type Drop = { readonly commandId: string; readonly reason: string };

export type RuntimeOptions = {
  /** `ws://` or `wss://`, the relay's `/connect`. */
  readonly url: string;
  /** A function is asked before each connection and each renewal; a constant that the relay turns down closes the runtime. */
  readonly token: TokenSource;
  readonly clientId: string;
  readonly clientType: WireClientType;
  /** One run of this client. Made anew unless given; never give the same to two runs. */
  readonly instanceId?: string;
  readonly metadata?: unknown;
  readonly actions?: readonly Action[];
  /** The local authorizer: a no is `client_denied`. */
  readonly authorize?: Judge;
  /** Asked for actions with `approval`: a no is `approval_denied`. It may take as long as the command has. */
  readonly approve?: Judge;
  readonly onStatus?: (status: LinkStatus) => void;
  readonly onDrop?: (drop: Drop) => void;
  /** What went wrong without anybody to tell: a callback or the token function threw, the relay refused a frame. */
  readonly onError?: ErrorSink;
  readonly WebSocket?: SocketConstructor;
  readonly clock?: Clock;
  /** 0 (included) to 1 (excluded). */
  readonly random?: () => number;
};

/** A cooperative site as its host defines it. Left out: no title, any event name, no action, and viewers may only listen. */
export type SiteDefinition = {
  readonly siteId: string;
  readonly title?: string | null;
  /** The names that may be published; empty: any. */
  readonly eventNames?: readonly string[];
  /** The actions of this client that viewers may invoke. */
  readonly actions?: readonly string[];
  readonly capabilityProfile?: { readonly actionInvocation?: boolean; readonly sharing?: boolean };
};

export interface SiteRegistration {
  readonly siteId: string;
  /**
   * Resolves when the relay took the definition (or a later one of the same site), pending while there is no link. Rejects with
   * SiteRefusedError, or with LinkClosedError when the runtime closes; left alone, neither is an unhandled rejection.
   */
  readonly registered: Promise<void>;
  /** As `removeSite`. */
  remove(): Promise<void>;
}

export interface Runtime extends AsyncDisposable {
  /** The relay's `/connect`, as given. */
  readonly url: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly status: LinkStatus;
  /** Commands whose handlers run. */
  readonly running: number;
  /** Ends that the relay has not taken yet. */
  readonly unacknowledged: number;
  /** Starts to connect, once; from then on it comes back by itself. */
  connect(): void;
  /** Resolves when connected, at once if so; rejects with LinkClosedError when closed for good. */
  ready(): Promise<Welcome>;
  /** Each change from now on. Returns what ends it. */
  onStatus(listener: (status: LinkStatus) => void): () => void;
  /**
   * Adds an action and advertises it. Throws TypeError for a wrong name, one that is taken, a schema that does not compile, or too much.
   * Returns what removes it: commands that run go on.
   */
  handle(name: string, spec: ActionSpec, run: Handler): () => void;
  /**
   * Hosts a cooperative site from now on: registers it, and again after each `welcome`. The same site again replaces its definition. A
   * definition that the relay refuses gives way to the one before it. The token needs the scope `host`. Throws TypeError for a wrong id.
   */
  site(definition: SiteDefinition): SiteRegistration;
  /**
   * Removes a site and its sessions at the relay, also one that another run registered. Resolves when the relay did so, pending while there
   * is no link; rejects with SiteRefusedError (`not_found`, say) or LinkClosedError.
   */
  removeSite(siteId: string): Promise<void>;
  /**
   * Says where this client can execute something: all of it (a list), or what changed. The present state is kept here and told to the relay, a
   * snapshot after each `welcome` and changes otherwise, those of one turn at once. Throws TypeError that names the wrong member, or for more
   * than 1000 contexts, and then nothing has changed.
   */
  reportContexts(contexts: readonly ReportedContext[] | ReportChanges<ReportedContext>): void;
  /** As `reportContexts`, of browser windows: at most 100. */
  reportWindows(windows: readonly ReportedWindow[] | ReportChanges<ReportedWindow>): void;
  /** A token to ask the relay over HTTP with, from the same source as the link's. Rejects with what that throws. */
  token(): Promise<string>;
  /**
   * Leaves in good order: the relay is asked to dispatch nothing more to this client, commands that it had dispatched before still run, and once
   * the relay has taken their ends the link is closed. Commands that were queued go on with the client's next link. What is not done after
   * `withinMs` milliseconds (default 10000) is aborted, and its end is lost. Without a link, and with nothing left to report, it closes at once.
   * Never rejects; calling it again gives the same promise.
   */
  close(options?: { readonly withinMs?: number }): Promise<void>;
}
