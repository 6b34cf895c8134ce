/** The types of calls (requests, invocations, receipts, preflights), and the check of an invocation's input. */
import type { WireCancelState } from '../../protocol/codes.ts';
import type { CallerLabel } from '../auth/caller-label.ts';
import {
  errorOfMark,
  isTerminal,
  type Command,
  type CommandMark,
  type Outcome,
  NO_DIGEST,
} from '../commands/command.ts';
import type { WaitFor } from '../commands/waiter.ts';
import type { PendingWait, WaiterFilter } from '../commands/waiter-store.ts';
import type { Connection } from '../connections/connection.ts';
import { type Code, collectInputErrors, fail, invalid, optional } from '../errors.ts';
import { type ClientKey, type CommandKey, id, isId, isName, isTrace, isWithin, name, trace, within } from '../ids.ts';
import {
  type JsonText,
  canonicalText,
  forEachName,
  isEmptyObject,
  isObjectText,
  longerThan,
  trustJson,
} from '../json.ts';
import type { GivenFilter } from '../cursors.ts';
import type { TraceContext, TraceFields } from '../trace-context.ts';
import { CONNECT_WITHIN_MS, DIGEST_BYTES, MAX_FRAME_BYTES, RESPOND_WITHIN_MS } from '../limits.ts';
import type { Pause } from '../pauses/pause.ts';
import type { Crypto } from '../ports.ts';

/** The trace that a request belongs to. */
export type TracedRequest = {
  readonly [Name in keyof TraceFields]?: TraceFields[Name] | undefined;
} & {
  /**
   * The trace context from the headers of the HTTP request. It is used if both `traceId` and `parentSpanId` are absent.
   */
  readonly trace?: TraceContext | undefined;
  /** Called with the span of this request, if the relay traces. Must not throw. */
  readonly onSpan?: ((span: TraceContext) => void) | undefined;
};

export type InvokeRequest = ClientKey &
  TracedRequest &
  CallerSide & {
    readonly action: string;
    /** The params as a JSON text, which is forwarded without change. Anything but an object is refused. */
    readonly params: JsonText | null;
    readonly commandId?: string | null | undefined;
    readonly instanceId?: string | null | undefined;
    /** If this is set, the command may run in this context only. */
    readonly contextId?: string | null | undefined;
    /**
     * The program that calls. If this is set, the command id may have the prefix that is reserved for programs of this
     * kind.
     */
    readonly callerLabel?: CallerLabel | undefined;
    /**
     * The token of an agent's request that must get the answer, if the call admits a new command: see
     * `AdmitQuestion.owedBy`.
     */
    readonly owedBy?: string | undefined;
    readonly waitFor?: WaitFor | null | undefined;
    readonly connectWithinMs?: number | null | undefined;
    readonly respondWithinMs?: number | null | undefined;
  };

/** The callbacks and the signal that a caller passes for the time of its wait. */
export type CallerSide = {
  /** Is aborted when the caller hangs up. That ends the wait, never the command. */
  readonly signal?: HangUp | undefined;
  readonly onAdmitted?: OnStage | undefined;
  readonly onStage?: OnStage | undefined;
  /**
   * Called with each report of progress that reaches this node during the wait, in the order of their numbers. Reports
   * may be missing. Must not throw.
   */
  readonly onProgress?: ((progress: ReportedProgress) => void) | undefined;
};

/**
 * A report of progress. `number`: how many reports the client had made about the command by then, including those that
 * the client dropped; null if the client does not number its reports.
 */
export type ReportedProgress = {
  readonly commandId: string;
  readonly payload: JsonText;
  readonly number: number | null;
};

/** The members of AbortSignal that a wait uses. Callers may pass an AbortSignal or a cheaper object. */
export interface HangUp {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * Receives the states of a command. An `onAdmitted` function is called once, with the command as it is when the wait
 * begins. If there is nothing to wait for, it is never called. An `onStage` function is called at the same time, and
 * again whenever the stage changes, until the wait or the command ends. It may miss a stage, but gets no stage twice.
 * Must not throw.
 */
export type OnStage = (command: Command) => void;

export type RefusedBy =
  'address' | 'policy' | 'pause' | 'arguments' | 'capacity' | 'target' | 'place' | 'conflict' | 'site' | 'relay';

/**
 * The answer to an invocation. `outcome`: the command ended. `pending`: the wait ended first, because the command
 * reached the stage that the caller waits for, or because the wait was given up; the waiter `rpcId` is then removed.
 */
export type Invocation =
  | {
      readonly kind: 'outcome' | 'pending';
      readonly command: Command;
      readonly rpcId: string | null;
      readonly result: JsonText | null;
    }
  /** The command ended, and the relay retains only its mark: the record and the result were removed. */
  | {
      readonly kind: 'ended';
      readonly key: CommandKey;
      readonly mark: CommandMark;
      readonly rpcId: null;
      readonly result: null;
    }
  | {
      readonly kind: 'refused';
      readonly code: Code;
      readonly message: string;
      readonly by: RefusedBy;
      readonly retryAfterMs: number | null;
      /** The command id of the invocation; null if its caller chose none. */
      readonly commandId: string | null;
      /** The resource that has no room. Present only for `share_exceeded` and `store_full`. */
      readonly share?: string | undefined;
      /** The pause that covers the call. Present only for `paused`. */
      readonly pause?: Pause | undefined;
    };

export type AwaitRequest = CommandKey &
  TracedRequest &
  CallerSide & {
    readonly callerLabel?: CallerLabel | undefined;
    readonly waitFor?: WaitFor | null | undefined;
    /** How long to wait, in milliseconds; 0 reads the record and registers no waiter. */
    readonly withinMs?: number | null | undefined;
  };

/**
 * The result of a cancel. `cancelled`: the command was not yet written to its client, and never will be. `requested`:
 * the client was asked to stop the command. `too_late`: the command had already ended.
 */
export type CancelReceipt = {
  readonly state: WireCancelState;
  readonly commandId: string;
  /** How the command ended; null while it is live. */
  readonly outcome: Outcome | null;
  /** The record of the command; null if only a mark of the ended command is retained. */
  readonly command: Command | null;
};

export type PendingQuery = GivenFilter<Omit<WaiterFilter, 'seen'>> & {
  /**
   * The instance that the requester believes to be live. A waiter that expects another instance is reported as a
   * mismatch.
   */
  readonly checkInstance?: string | null | undefined;
};

export type InstanceMismatch = {
  readonly expectedInstanceId: string;
  /** The instance that the client runs now; null: the client is not connected. */
  readonly observedInstanceId: string | null;
  readonly observedAt: number;
};

export type PendingRpc = PendingWait & { readonly ageMs: number; readonly instanceMismatch: InstanceMismatch | null };

export type PendingRpcAlert = {
  readonly over: boolean;
  readonly oldestAgeMs: number;
  readonly count: number;
  readonly oldest: PendingRpc | null;
  readonly at: number;
};

/** The span of an invocation, for the code that carries the invocation out. */
export interface CallSpan {
  /** The span as the command's record holds it. */
  readonly callSpan: string | null;
  /** The id of the trace; null if the trace is not recorded. */
  readonly traceId: string | null;
  /** Tells the span which connection the invocation found; null if the client is not connected. */
  target(live: Connection | null, action: string): void;
}

/** The part of a command's record that the answer to a caller contains. */
type CommandEnd = Pick<Command, 'commandId' | 'stage' | 'outcome' | 'execution' | 'error'> & {
  /** Null if only the mark of the ended command is retained. */
  readonly lastProvenStage: Command['lastProvenStage'] | null;
};

/**
 * The error of an answer whose result is no longer retained. The HTTP status is 200 all the same, because the answer
 * still says how the command ended.
 */
const RESULT_EXPIRED = { code: 'result_expired', message: 'The result is no longer retained.' } as const;

/** Returns the answer to an invocation whose command ended, if only the command's mark is retained. */
export function endedInvocation(key: CommandKey, mark: CommandMark): Invocation {
  return { kind: 'ended', key, mark, rpcId: null, result: null };
}

/**
 * Returns the part of the command's record that the answer contains. `error` is `result_expired` if the command
 * completed and its result is no longer retained.
 */
export function endOf(invocation: Exclude<Invocation, { kind: 'refused' }>): CommandEnd {
  if (invocation.kind === 'ended') return endOfMark(invocation.key, invocation.mark);
  const { command } = invocation;
  return command.resultExpired ? { ...command, error: RESULT_EXPIRED } : command;
}

function endOfMark({ commandId }: CommandKey, mark: CommandMark): CommandEnd {
  const { outcome, execution, resultExpired } = mark;
  const error = resultExpired ? RESULT_EXPIRED : errorOfMark(mark);
  return { commandId, stage: 'terminal', lastProvenStage: null, outcome, execution, error };
}

/** Returns the answer to a caller from the command's present record. */
export function invocation(command: Command, rpcId: string | null, result: JsonText | null): Invocation {
  return { kind: isTerminal(command) ? 'outcome' : 'pending', command, rpcId, result };
}

// The result of a preflight: what each check of an invocation would answer now.

/**
 * Every check of an invocation, in the order in which they run: first those of the relay, then those of the client's
 * runtime.
 */
export const PREFLIGHT_LAYERS = [
  ...(['identity', 'scope', 'address', 'input', 'policy', 'relay', 'action', 'waits'] as const),
  ...(['storage', 'conflict', 'pause', 'target', 'place', 'capacity', 'rate'] as const),
  ...(['client_arguments', 'client_authorizer', 'client_approval', 'client_lease'] as const),
] as const;
export type PreflightLayerName = (typeof PREFLIGHT_LAYERS)[number];

/**
 * What one check would answer. `unknown`: only a real invocation can show it. `skipped`: the check did not run, because
 * an earlier check refuses or because the check does not apply.
 */
export type PreflightVerdict = 'pass' | 'refuse' | 'unknown' | 'skipped';

export type PreflightLayer = {
  readonly layer: PreflightLayerName;
  readonly verdict: PreflightVerdict;
  /** The code with which this check would refuse the invocation; null if it would not refuse. */
  readonly code: Code | null;
  readonly message: string;
  /** The state that the check examined, as a JSON object; null if there is none that the requester may see. */
  readonly evidence: JsonText | null;
  /** Who makes the check: the relay, or the client after it has received the command. */
  readonly askedOf: 'relay' | 'client';
  /** When the evidence was read, in epoch milliseconds; null if the check did not run. */
  readonly observedAt: number | null;
};

/** The result of a preflight. A preflight reserves nothing, so a later invocation may be answered differently. */
export type Preflight = {
  /** Whether the relay would admit the command. The checks of the client are not included. */
  readonly wouldAdmit: Exclude<PreflightVerdict, 'skipped'>;
  /**
   * The first check that refuses; its code is the one with which the invocation would be refused. Null if no check
   * refuses.
   */
  readonly firstRefusal: PreflightLayer | null;
  /** The results of all checks, in the order of PREFLIGHT_LAYERS. */
  readonly layers: readonly PreflightLayer[];
  /**
   * The existing command with the same id. The invocation would wait for that command or get its outcome. Null in three
   * cases: no command has the id, the store would refuse the invocation, or only the command's mark is retained.
   */
  readonly command: Command | null;
  readonly asOf: number;
};

/** An invocation whose inputs were all checked, with defaults filled in. */
export type CheckedInvoke = TraceFields & {
  readonly clientId: string;
  readonly action: string;
  readonly commandId: string | null;
  readonly namedInstanceId: string | null;
  readonly contextId: string | null;
  readonly params: JsonText | null;
  readonly waitFor: WaitFor;
  readonly connectWithinMs: number;
  readonly respondWithinMs: number;
  readonly owedBy: string | undefined;
  /** The span of the call; null if the relay does not trace. */
  readonly span: CallSpan | null;
  /**
   * The digest by which two invocations with the same command id are compared; NO_DIGEST if the invocation has no
   * command id.
   */
  readonly digest: string;
};

/**
 * The reserved prefix of parameter names, in any letter case. The relay adds its own parameters under it, so callers
 * may not use it.
 */
const RESERVED = '__cooperative_site_';

/** The site, the session and the grant through which a call was made. */
type SitePart = { readonly siteId: string; readonly sessionId: string; readonly grantId: string };

/**
 * Checks an invocation. Throws `reserved_parameter`, `payload_too_large`, or one `invalid_argument` that names every wrong input. If the
 * call comes through a site, the relay appends its own parameters. The digest of such a call covers the session and the
 * grant, so that no viewer attaches to another viewer's command.
 */
export function checkInvoke(
  crypto: Crypto,
  request: InvokeRequest,
  { site = null, span = null }: { readonly site?: SitePart | null; readonly span?: CallSpan | null } = {},
): CheckedInvoke {
  if (!isValid(request)) throwInputErrors(request);
  const { clientId, action, params, commandId = null, contextId = null } = request;
  const { instanceId: namedInstanceId = null } = request;
  if (params !== null && holdsReserved(params))
    fail('reserved_parameter', `Parameter names that begin with "${RESERVED}" are reserved for the relay.`);
  // A body may be larger than a frame. The client receives the params in one frame, and need not accept a larger one.
  if (params !== null && longerThan(params, MAX_FRAME_BYTES))
    fail('payload_too_large', `The params may have at most ${MAX_FRAME_BYTES} bytes.`);
  return {
    clientId,
    action,
    commandId,
    namedInstanceId,
    contextId,
    params: site ? withSite(params, site) : params,
    waitFor: request.waitFor ?? 'completed',
    connectWithinMs: request.connectWithinMs ?? CONNECT_WITHIN_MS.default,
    respondWithinMs: request.respondWithinMs ?? RESPOND_WITHIN_MS.default,
    owedBy: request.owedBy,
    ...traceOf(request, span),
    span,
    digest:
      commandId === null
        ? NO_DIGEST
        : crypto.sha256(digestedText({ action, params, namedInstanceId, contextId }, site)),
  };
}

const NO_TRACE = { traceId: null, parentSpanId: null, traceFlags: null, traceState: null };

/**
 * Returns the trace ids that the invocation names. If it names none, returns the whole trace context of its request.
 * The two sources are never mixed. If both are absent, the invocation belongs to the trace of `span`.
 */
function traceOf(request: InvokeRequest, span: CallSpan | null): TraceFields {
  const { traceId = null, parentSpanId = null, traceFlags = null, traceState = null, trace: context } = request;
  if (traceId !== null || parentSpanId !== null) return { traceId, parentSpanId, traceFlags, traceState };
  if (context) return context;
  return span === null || span.traceId === null ? NO_TRACE : { ...NO_TRACE, traceId: span.traceId };
}

/** Whether the input is valid. Faster than `throwInputErrors`, because it collects no errors. */
function isValid(request: InvokeRequest): boolean {
  const { commandId, instanceId, contextId, traceId, parentSpanId, params } = request;
  return (
    isId(request.clientId) &&
    isName(request.action) &&
    isAbsentOr(isId, commandId) &&
    !isReservedId(commandId, request) &&
    isAbsentOr(isId, instanceId) &&
    isAbsentOr(isId, contextId) &&
    isWithin(request.connectWithinMs, CONNECT_WITHIN_MS) &&
    isWithin(request.respondWithinMs, RESPOND_WITHIN_MS) &&
    isAbsentOr(isTrace, traceId) &&
    isAbsentOr(isTrace, parentSpanId) &&
    (params === null || isObjectText(params))
  );
}

/** For each kind of caller label, the prefix of command ids that only calls with such a label may use. */
export const LABEL_IDS: Readonly<Record<CallerLabel['kind'], string>> = { mcp: 'mcp-' };

function isReservedId(
  commandId: string | null | undefined,
  { callerLabel }: Pick<InvokeRequest, 'callerLabel'>,
): boolean {
  return commandId?.startsWith(LABEL_IDS.mcp) === true && callerLabel?.kind !== 'mcp';
}

function isAbsentOr(holds: (text: string) => boolean, text: string | null | undefined): boolean {
  return text === null || text === undefined || holds(text);
}

/** Throws one `invalid_argument` that names every wrong input. */
function throwInputErrors({ params, ...request }: InvokeRequest): void {
  const { check, throwIfAny } = collectInputErrors();
  check(() => id('client_id', request.clientId));
  check(() => name('action', request.action));
  check(() => optional(request.commandId, (text) => id('command_id', text)));
  check(() =>
    isReservedId(request.commandId, request)
      ? invalid('command_id', `ids that begin with "${LABEL_IDS.mcp}" are reserved`)
      : null,
  );
  check(() => optional(request.instanceId, (text) => id('instance_id', text)));
  check(() => optional(request.contextId, (text) => id('context_id', text)));
  check(() => within('connect_within_ms', request.connectWithinMs, CONNECT_WITHIN_MS));
  check(() => within('respond_within_ms', request.respondWithinMs, RESPOND_WITHIN_MS));
  check(() => optional(request.traceId, (text) => trace('trace_id', text)));
  check(() => optional(request.parentSpanId, (text) => trace('parent_span_id', text)));
  check(() => params === null || isObjectText(params) || invalid('params', 'expected an object'));
  throwIfAny();
}

/**
 * Returns the text whose digest decides whether two invocations of one command id ask for the same. The text contains
 * action, params, named instance, named context, and for a call through a site its session and grant. Params of up to
 * DIGEST_BYTES are compared by meaning (`canonicalText`). Larger params are compared by their exact text, because
 * sorting their members would take long.
 */
function digestedText(
  given: Pick<CheckedInvoke, 'action' | 'params' | 'namedInstanceId' | 'contextId'>,
  site: SitePart | null,
): string {
  const { action, params, namedInstanceId, contextId } = given;
  const canonicalParams = params === null ? '{}' : longerThan(params, DIGEST_BYTES) ? params : canonicalText(params);
  // A list with a context has an odd number of elements, and a list without one an even number. So a call with a
  // context and a call without one never have the same list.
  const place = contextId === null ? [] : [contextId];
  const rest = [action, namedInstanceId, ...(site ? [site.sessionId, site.grantId] : []), ...place];
  return `${JSON.stringify(rest)}${canonicalParams}`;
}

/**
 * Whether the params have a member with a reserved name. Every spelling of such a name contains `__` or a `\u` escape,
 * so the names are scanned only if the text contains one of these.
 */
function holdsReserved(params: JsonText): boolean {
  if (!params.includes('__') && !params.includes('\\u')) return false;
  let found = false;
  forEachName(params, (name) => {
    found ||= isReserved(name);
  });
  return found;
}

/**
 * Whether a name begins with the reserved prefix, in any letter case. The search for `__` comes first, because it is
 * faster.
 */
function isReserved(key: string): boolean {
  return key.startsWith('__') && key.toLowerCase().startsWith(RESERVED);
}

/** Adds the relay's parameters at the end of the params. The text of the caller's own params is unchanged. */
function withSite(params: JsonText | null, { sessionId, siteId }: SitePart): JsonText {
  const own = `"${RESERVED}session_id":${JSON.stringify(sessionId)},"${RESERVED}id":${JSON.stringify(siteId)}}`;
  if (params === null || isEmptyObject(params)) return trustJson(`{${own}`);
  return trustJson(`${params.slice(0, params.lastIndexOf('}'))},${own}`);
}
