/**
 * Records what happens to commands: reports, ends and deadlines, with the payloads, hints, counters and tracing spans
 * that belong to each. Also has the retry queue, which keeps calls to the store while it is unavailable.
 */
import { BoundedMap } from '../collections.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, isStoreUnavailable } from '../errors.ts';
import { isLarge, type PayloadStorage } from '../history/payload-storage.ts';
import type { StoredPayload } from '../history/message.ts';
import { commandKeyText, keyOf, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import {
  PROGRESS_ROW_MS,
  RETRY_QUEUE_BYTES,
  RETRY_QUEUE_ENTRIES,
  RETRY_QUEUE_LANES,
  RETRY_QUEUE_MS,
  SIGHTINGS_PER_COMMAND,
} from '../limits.ts';
import { promised, thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { Cancel, SpanAttributes, SpanEnd, Tracing } from '../ports.ts';
import { DECLINED, isSampled, readTraceparent, type TraceContext, type TraceFields } from '../trace-context.ts';
import { endMessageId, isTerminal, type Command, type Outcome, type SettleResult, type Settlement } from './command.ts';
import type { LinkQueue } from './links.ts';
import type { End, FinishResult, Report, ReportResult } from './stores.ts';

/**
 * Records what happens to commands. `report` and `finish` store a large payload before the row that refers to it. After
 * a change, each act publishes a hint to the watchers of the command and updates the counters.
 */
export type DeliveryActs = {
  report(key: CommandKey, report: ClientReport): MaybePromise<ReportResult>;
  finish(key: CommandKey, end: Omit<End, 'kept'>): MaybePromise<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): Promise<SettleResult>;
  /** Counts and publishes the end of a command that an act on its client has ended. */
  ended(command: Command): void;
  /** Publishes to the watchers of a command that the command changed. */
  hint(key: CommandKey, reported?: Pick<ClientReport, 'payload' | 'number'>): void;
};

/** What a client reports of a command. `number`: the number that the client gave a report of progress, if it did. */
type ClientReport = Omit<Report, 'kept'> & { readonly number?: number | undefined };

export function createActs(deps: Deps, keeper: PayloadStorage): DeliveryActs {
  const { backend, metrics, clock, events } = deps;
  const { commands, bus } = backend;
  const reports = createStoredReports(deps, keeper);
  const hint: DeliveryActs['hint'] = (key, reported) => {
    if (!bus.hasSubscribers('command')) return;
    const hinted = { key, progress: reported?.payload ?? null };
    const { number } = reported ?? {};
    bus.publish(`command:${commandKeyText(key)}`, number === undefined ? hinted : { ...hinted, number });
  };
  const ended = (command: Command): void => {
    reports.forget(command);
    const { outcome, admittedAt, terminalAt } = command;
    metrics.count('commands_ended', outcome ?? undefined);
    if (outcome !== null && terminalAt !== null)
      metrics.observe('command_seconds', terminalAt - admittedAt, outcome, command);
    events.emit('ended', command);
  };
  const acknowledged = (command: Command): void => {
    const { dispatchedAt, acknowledgedAt } = command;
    metrics.count('commands_acknowledged');
    if (dispatchedAt !== null && acknowledgedAt !== null)
      metrics.observe('ack_seconds', acknowledgedAt - dispatchedAt, undefined, command);
  };
  return {
    hint,
    ended(command) {
      ended(command);
      hint(keyOf(command));
    },
    report(key, report) {
      const { instanceId, kind, payload } = report;
      // Progress may be the first report of a client, which acknowledges the command too.
      const before = kind === 'progress' ? clock.now() : Infinity;
      return thenDo(reports.ofReport(key, report), (kept) =>
        thenDo(commands.report(key, { instanceId, kind, payload, kept }), (result) => {
          if (result.kind === 'ignored' && kept) keeper.discard(kept);
          if (result.kind !== 'recorded') return result;
          if (kind === 'ack') acknowledged(result.command);
          if (kind === 'ack' || isFirstSign(result.command, before)) events.emit('acknowledged', result.command);
          hint(key, kind === 'progress' ? report : undefined);
          return result;
        }),
      );
    },
    finish(key, end) {
      const { instanceId, kind, payload, error, refused } = end;
      return thenDo(reports.ofEnd(key, end), (kept) =>
        thenDo(commands.finish(key, { instanceId, kind, payload, kept, error, refused }), (result) => {
          if (result.kind === 'duplicate' || result.kind === 'unknown') keeper.discard(kept);
          if (result.kind === 'finished') ended(result.command);
          if (result.kind === 'late') metrics.count('late_results');
          if (result.kind === 'fenced') metrics.count('fenced_results');
          if (result.kind === 'late' || result.kind === 'fenced') {
            events.emit('late', result.command);
            recordLateResult(deps, result.command);
          }
          if (result.kind !== 'unknown') hint(key);
          return result;
        }),
      );
    },
    async settle(key, settlement) {
      const result = await commands.settle(key, settlement);
      if (result.kind === 'settled') ended(result.command);
      if (result.kind === 'settled' || result.kind === 'requested') hint(key);
      return result;
    },
  };
}

/**
 * Whether the command was acknowledged at `reportedAt` or later, that is, by this report of progress: the first report
 * of a client acknowledges the command, whatever its kind.
 */
function isFirstSign({ acknowledgedAt }: Command, reportedAt: number): boolean {
  return acknowledgedAt !== null && acknowledgedAt >= reportedAt;
}

/**
 * Brings the reports of clients into the form that history keeps. A large payload is stored only if a row will refer to
 * it; otherwise a client could fill the store with unrequested payloads.
 */
type StoredReports = {
  ofEnd(key: CommandKey, end: Omit<End, 'kept'>): MaybePromise<StoredPayload>;
  /** Prepares the payload of a report. Null: the report makes no row. */
  ofReport(key: CommandKey, report: Omit<Report, 'kept'>): MaybePromise<StoredPayload | null>;
  /** Forgets when large progress of this command was last stored. Called when the command has ended. */
  forget(key: CommandKey): void;
};

/**
 * The most commands for which the time of the last large progress report is remembered. A command that is forgotten
 * early may have more than one such row a second.
 */
const REMEMBERED = 10_000;

function createStoredReports({ backend, clock }: Deps, keeper: PayloadStorage): StoredReports {
  /** The commands with a large progress report in the last PROGRESS_ROW_MS. */
  const spilled = new BoundedMap<string, true>({ most: REMEMBERED, ttl: { ms: PROGRESS_ROW_MS, clock } });
  const find = async (key: CommandKey): Promise<Command | null> => (await backend.commands.get([key]))[0] ?? null;
  const largeEnd = async (key: CommandKey, end: Omit<End, 'kept'>): Promise<StoredPayload> => {
    const command = await find(key);
    return command && makesRow(command, end) ? keeper.keepAnyway(end.payload, key.userId) : keeper.note(end.payload);
  };
  const largeProgress = async (key: CommandKey, report: Omit<Report, 'kept'>): Promise<StoredPayload | null> => {
    const command = await find(key);
    const text = commandKeyText(key);
    if (!command || isTerminal(command) || command.boundInstanceId !== report.instanceId || spilled.get(text))
      return null;
    spilled.set(text, true);
    return keeper.keepAnyway(report.payload, key.userId);
  };
  return {
    ofEnd: (key, end) => (large(end.payload) ? largeEnd(key, end) : keeper.note(end.payload)),
    ofReport(key, report) {
      if (report.kind === 'ack') return null;
      return large(report.payload) ? largeProgress(key, report) : keeper.note(report.payload);
    },
    forget(key) {
      if (spilled.size > 0) spilled.delete(commandKeyText(key));
    },
  };
}

/**
 * Predicts whether `CommandStore.finish` will write a row: a repeated end is counted and makes no row, and of late ends
 * only the first few make one.
 */
function makesRow({ sightings, commandId }: Command, end: Omit<End, 'kept'>): boolean {
  const messageId = endMessageId(commandId, end);
  return sightings.length < SIGHTINGS_PER_COMMAND && !sightings.some((seen) => seen.messageId === messageId);
}

function large(text: JsonText | null): text is JsonText {
  return text !== null && isLarge(text);
}

// Keeps calls that failed because the store was unavailable, and repeats them in order. They are kept in memory only.

/** The cost in bytes of keeping an entry, without its payload. */
export const ENTRY_BYTES = 512;

type RetryEntry<T> = {
  /** The name of the entry's lane. Entries of one lane never run at the same time. */
  readonly lane: string;
  readonly bytes: number;
  /** Calls the store. May be called several times until the store answers, so it must be idempotent. */
  readonly run: () => Promise<T>;
};

/** A queue of calls that the store did not answer because it was unavailable. */
export interface StoreRetryQueue {
  /**
   * Runs the entry, after those that already wait. While the store does not answer, the entry is kept and retried in
   * order. Rejects with `store_unavailable` if the entry must wait and there is no more room, or the queue was stopped.
   * Any other error of `run` is passed on without a retry.
   */
  take<T>(entry: RetryEntry<T>): Promise<T>;
  /** The number of waiting entries. */
  readonly size: number;
  /** Rejects all waiting entries. Nothing is retried afterwards. */
  stop(): void;
}

type Waiting = {
  readonly lane: string;
  readonly bytes: number;
  /** Runs the act. Returns false if the store is still unavailable. */
  attempt(): Promise<boolean>;
  reject(error: unknown): void;
};

export function createStoreRetryQueue({ clock, log }: Pick<Deps, 'clock' | 'log'>): StoreRetryQueue {
  let waiting: Waiting[] = [];
  let bytes = 0;
  let timer: Cancel | null = null;
  let stopped = false;
  const remove = (entries: ReadonlySet<Waiting>): void => {
    waiting = waiting.filter((entry) => !entries.has(entry));
    for (const entry of entries) bytes -= entry.bytes;
  };
  const replay = async (): Promise<void> => {
    while (waiting.length > 0 && !stopped) {
      const turn = firstOfLanes(waiting);
      const taken = await Promise.all(turn.map((entry) => entry.attempt()));
      remove(new Set(turn.filter((_, i) => taken[i])));
      if (taken.includes(false)) return;
    }
  };
  const again = (): void => {
    timer = null;
    void replay().then(() => {
      if (waiting.length > 0 && !stopped) timer = clock.after(RETRY_QUEUE_MS, again);
      else if (!stopped) log.info({}, 'all kept acts have reached the store');
    });
  };
  const keep = (entry: Waiting): void => {
    const full = waiting.length >= RETRY_QUEUE_ENTRIES || bytes + entry.bytes > RETRY_QUEUE_BYTES;
    if (full || stopped) return entry.reject(awayError());
    if (waiting.length === 0) {
      log.warn({}, 'the store is unavailable; acts are kept and retried');
      timer = clock.after(RETRY_QUEUE_MS, again);
    }
    waiting.push(entry);
    bytes += entry.bytes;
  };
  return {
    take({ run, lane, bytes: size }) {
      const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof run>>>();
      const attempt = async (): Promise<boolean> => {
        try {
          resolve(await run());
        } catch (error) {
          if (isStoreUnavailable(error)) return false;
          reject(error);
        }
        return true;
      };
      const entry = { lane, bytes: size, attempt, reject };
      if (waiting.length > 0) keep(entry);
      else void attempt().then((taken) => taken || keep(entry));
      return promise;
    },
    get size() {
      return waiting.length;
    },
    stop() {
      stopped = true;
      timer?.();
      for (const { reject } of waiting.splice(0)) reject(awayError());
      bytes = 0;
    },
  };
}

/** Returns the oldest entries, at most RETRY_QUEUE_LANES, up to the first entry whose lane repeats. */
function firstOfLanes(waiting: readonly Waiting[]): readonly Waiting[] {
  const lanes = new Set<string>();
  for (const { lane } of waiting) {
    if (lanes.has(lane) || lanes.size === RETRY_QUEUE_LANES) break;
    lanes.add(lane);
  }
  return waiting.slice(0, lanes.size);
}

function awayError(): CallboardError {
  return new CallboardError('store_unavailable', 'The store does not answer.', { retryAfterMs: RETRY_QUEUE_MS });
}

// Starts and ends the tracing spans of the commands that are written to one link.

type Parts = Pick<Deps, 'tracing' | 'nodeId'>;

/** Returns the span of the call that admitted the command; null if it was not traced. */
export function callSpanOf({ callSpan, traceState }: Pick<Command, 'callSpan' | 'traceState'>): TraceContext | null {
  return callSpan === null || callSpan === DECLINED ? null : readTraceparent(callSpan, traceState);
}

/** The trace fields that a client gets if a sampler declined the call and the caller gave no ids. */
const DECLINED_FIELDS: TraceFields = { traceId: null, parentSpanId: null, traceFlags: '00', traceState: null };

/**
 * Starts the span of a command that is written to the link. Returns the trace context that the client's own span
 * belongs to. Null: the client's span belongs to the context that the caller gave.
 */
export function beginDispatchSpan({ tracing }: Parts, linkQueue: LinkQueue, command: Command): TraceFields | null {
  if (tracing === null || command.callSpan === null) return null;
  if (command.callSpan === DECLINED) return command.traceId === null ? DECLINED_FIELDS : null;
  const context = begin(tracing, linkQueue, { command, name: SPAN_NAME.dispatch });
  // If the caller gave ids of its own, the client gets those and not the ids of the relay's trace.
  return command.traceId === null || command.traceId === context?.traceId ? context : null;
}

/**
 * Starts a span on a new link for each sampled command that was written to an earlier link of the client and goes on.
 */
export function beginResumeSpans({ tracing }: Parts, linkQueue: LinkQueue, commands: readonly Command[]): void {
  if (tracing === null) return;
  for (const command of commands) begin(tracing, linkQueue, { command, name: SPAN_NAME.resume });
}

type Begun = { readonly command: Command; readonly name: string };

function begin(tracing: Tracing, linkQueue: LinkQueue, { command, name }: Begun): TraceContext | null {
  const parent = callSpanOf(command);
  if (!parent || !isSampled(parent.traceFlags)) return parent;
  const span = tracing.start('client', name, parent);
  if (span.recorded) {
    linkQueue.spans ??= new Map();
    linkQueue.spans.set(command.commandId, { span, progressed: false });
  }
  return span.context ?? parent;
}

/** Notes that the client acknowledged the command, or that its first progress came. */
export function noteReport({ spans }: LinkQueue, commandId: string, kind: 'ack' | 'progress'): void {
  const open = spans?.get(commandId);
  if (!open) return;
  if (kind === 'ack') return open.span.event('acknowledged');
  if (!open.progressed) open.span.event('progress');
  open.progressed = true;
}

/**
 * Ends the span of a command. `command`: its record after the end. Null: another part of the relay ended the command,
 * so the record is read first.
 */
export function endDispatchSpan(deps: Deps, linkQueue: LinkQueue, key: CommandKey, command: Command | null): void {
  if (!linkQueue.spans?.has(key.commandId)) return;
  const end = (ended: Command | null): void => endWith(deps, linkQueue, key.commandId, ended);
  if (command) return end(command);
  promised(() => deps.backend.commands.get([key])).then(
    ([read = null]) => end(read),
    () => end(null),
  );
}

/** Ends the span of a command. `command` null: its record is no longer kept, or cannot be read. */
function endWith(parts: Parts, linkQueue: LinkQueue, commandId: string, command: Command | null): void {
  const open = linkQueue.spans?.get(commandId);
  if (!open || parts.tracing === null) return;
  linkQueue.spans?.delete(commandId);
  const about = subjectAttributes(parts.tracing, parts.nodeId, { ...linkQueue.client, commandId });
  if (!command) return open.span.end({ failed: false, attributes: about });
  const { failed, attributes } = outcomeEnd(command.outcome, command.error?.code ?? null);
  Object.assign(
    about,
    methodAttributes(command.action, hasKnownAction(command)),
    recordAttributes(command),
    attributes,
  );
  open.span.end({ failed, attributes: about });
}

/** Ends all spans of a link that is gone. The commands may go on over the client's next link. */
export function endLinkSpans(parts: Parts, { spans, client }: LinkQueue): void {
  if (!spans || parts.tracing === null) return;
  for (const [commandId, { span }] of spans) {
    const about = subjectAttributes(parts.tracing, parts.nodeId, { ...client, commandId });
    const end: SpanEnd = {
      failed: true,
      attributes: { ...about, [SPAN_ATTRIBUTE.linkClosed]: true, [SPAN_ATTRIBUTE.errorType]: 'link_closed' },
    };
    span.end(end);
  }
  spans.clear();
}

/**
 * Records a span for the first result that came after the end of its command, or from another instance. Further results
 * are only counted in the record, so that a client cannot add any number of spans to a trace.
 */
function recordLateResult({ tracing, nodeId }: Parts, command: Command): void {
  const call = callSpanOf(command);
  if (tracing === null || !call || !isSampled(call.traceFlags) || command.lateResults !== 1) return;
  const span = tracing.start('internal', SPAN_NAME.late, call);
  const { attributes } = outcomeEnd(command.outcome, command.error?.code ?? null);
  const about = subjectAttributes(tracing, nodeId, command);
  span.end({ failed: false, attributes: { ...about, ...recordAttributes(command), ...attributes } });
}

// The names and attributes of spans. Names that begin with `rpc.` and `error.` follow the semantic conventions 1.45 of
// OpenTelemetry, whose part about RPC is a release candidate. docs/tracing.md has the table.

export const SPAN_ATTRIBUTE = {
  system: 'rpc.system.name',
  method: 'rpc.method',
  methodOriginal: 'rpc.method_original',
  status: 'rpc.status_code',
  errorType: 'error.type',
  commandId: 'callboard.command_id',
  nodeId: 'callboard.node_id',
  clientType: 'callboard.client_type',
  stage: 'callboard.last_proven_stage',
  execution: 'callboard.execution',
  attempts: 'callboard.attempts',
  refusedBy: 'callboard.refused_by',
  callerTraceId: 'callboard.caller_trace_id',
  linkClosed: 'callboard.link_closed',
  userId: 'callboard.user_id',
  clientId: 'callboard.client_id',
} as const;

/**
 * The method that a span names if the client is not known to have the action. Callers may invent any number of actions,
 * so those would make too many different methods.
 */
export const OTHER_METHOD = '_OTHER';

/** The names of spans that are not named after an action. */
export const SPAN_NAME = {
  await: 'callboard.await',
  dispatch: 'callboard.dispatch',
  resume: 'callboard.resume',
  late: 'callboard.late_result',
} as const;

/** Returns the attributes of the node and the command, and of the user and the client if spans may name them. */
export function subjectAttributes(
  { namesUsers }: Tracing,
  nodeId: string,
  { userId, clientId, commandId }: { readonly [K in keyof CommandKey]?: string | undefined },
): SpanAttributes {
  const attributes: SpanAttributes = { [SPAN_ATTRIBUTE.system]: 'callboard', [SPAN_ATTRIBUTE.nodeId]: nodeId };
  if (commandId !== undefined) attributes[SPAN_ATTRIBUTE.commandId] = commandId;
  if (namesUsers && userId !== undefined) attributes[SPAN_ATTRIBUTE.userId] = userId;
  if (namesUsers && clientId !== undefined) attributes[SPAN_ATTRIBUTE.clientId] = clientId;
  return attributes;
}

/**
 * Returns the attributes that name the action. The method of an action that the client is not known to have is
 * OTHER_METHOD.
 */
export function methodAttributes(action: string, isKnown: boolean): SpanAttributes {
  if (isKnown) return { [SPAN_ATTRIBUTE.method]: action };
  return { [SPAN_ATTRIBUTE.method]: OTHER_METHOD, [SPAN_ATTRIBUTE.methodOriginal]: action };
}

/** Returns the attributes that the record of a command gives. */
export function recordAttributes(command: Command): SpanAttributes {
  const { lastProvenStage, execution, attempts, clientType } = command;
  const attributes: SpanAttributes = {
    [SPAN_ATTRIBUTE.stage]: lastProvenStage,
    [SPAN_ATTRIBUTE.execution]: execution,
    [SPAN_ATTRIBUTE.attempts]: attempts,
  };
  if (clientType !== null) attributes[SPAN_ATTRIBUTE.clientType] = clientType;
  return attributes;
}

/**
 * Whether the client is known to have the action: the client advertised the action at the admission, or acknowledged
 * the command.
 */
export function hasKnownAction({ clientType, acknowledgedAt }: Command): boolean {
  return clientType !== null || acknowledgedAt !== null;
}

/**
 * Returns the end of a command's span, with the attributes of its status and of the type of its error. The status of a
 * live command is `pending`.
 */
export function outcomeEnd(outcome: Outcome | null, errorCode: string | null): SpanEnd {
  const failed = outcome === 'failed' || outcome === 'expired' || outcome === 'outcome_unknown';
  const attributes: SpanAttributes = { [SPAN_ATTRIBUTE.status]: outcome ?? 'pending' };
  if (failed) attributes[SPAN_ATTRIBUTE.errorType] = errorCode ?? outcome;
  return { failed, attributes };
}
