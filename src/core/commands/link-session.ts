/** Handles what the client of one link reports, and the end of the link. */
import type { ConnectionChange } from '../backend.ts';
import {
  endCauseAt,
  linkRowId,
  type ClientType,
  type ConnectResult,
  type Connection,
  type DisconnectCause,
  type LinkDetails,
  type LinkEnd,
} from '../connections/connection.ts';
import { noteOpened } from '../connections/connections.ts';
import type { ContextReport, ReportOutcome } from '../contexts/context.ts';
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { LINK_STREAM, NO_PAYLOAD, type LinkMessageKind, type NewMessage } from '../history/message.ts';
import { clientKeyText, commandKeyText, id, type CommandKey } from '../ids.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { orElse, thenDo, type MaybePromise } from '../maybe-promise.ts';
import { ENTRY_BYTES, type DeliveryActs, type StoreRetryQueue } from './acts.ts';
import type { Advertised } from './advertised.ts';
import type { Command } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LinkQueue, LinkSession } from './link-queues.ts';
import type { NodeQuestions } from './nodes.ts';
import { noteReport } from './spans.ts';
import type { End, FinishResult, ReportResult } from './stores.ts';

export type LinkParts = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  readonly acts: DeliveryActs;
  readonly retryQueue: StoreRetryQueue;
  readonly isDraining: () => boolean;
  readonly questions: NodeQuestions;
};

export type SessionParts = LinkParts & { readonly advertised: Advertised };

type Opened = {
  readonly linkQueue: LinkQueue;
  readonly result: ConnectResult;
  readonly unfinished: readonly Command[];
};

/**
 * The session of one client link. It is a class and not a set of closures, so that each of ten thousand idle clients
 * holds one object.
 */
export class ClientSession implements LinkSession {
  readonly clientType: ClientType;
  readonly host: boolean;
  result: ConnectResult | null;
  unfinished: readonly Command[];
  readonly #parts: SessionParts;
  readonly #linkQueue: LinkQueue;
  readonly #connectedAt: number;
  #open = true;
  #left: Promise<void> | null = null;

  constructor(parts: SessionParts, { linkQueue, result, unfinished }: Opened) {
    this.#parts = parts;
    this.#linkQueue = linkQueue;
    this.clientType = result.connection.clientType;
    this.host = result.connection.host;
    this.#connectedAt = result.connection.connectedAt;
    this.result = result;
    this.unfinished = unfinished;
  }

  get clientId(): string {
    return this.#linkQueue.client.clientId;
  }

  begin(): void {
    const { isDraining, dispatcher } = this.#parts;
    const linkQueue = this.#linkQueue;
    const { unfinished } = this;
    // The result holds the client's previous connection, and nothing reads either of them later.
    this.result = null;
    this.unfinished = NONE;
    if (isDraining()) return linkQueue.link.close('node_drained', null);
    linkQueue.open = true;
    for (const { cancelRequestedAt, commandId } of unfinished)
      if (cancelRequestedAt !== null) linkQueue.link.sendCancel(commandId, null);
    dispatcher.pump(linkQueue);
  }

  ack(commandId: string): MaybePromise<ReportResult> {
    return this.#report(commandId, 'ack', null);
  }

  progress(commandId: string, payload: JsonText | null): MaybePromise<ReportResult> {
    return this.#report(commandId, 'progress', payload);
  }

  end(commandId: string, end: Omit<End, 'kept' | 'instanceId'>): MaybePromise<FinishResult> {
    const { acts, retryQueue, dispatcher } = this.#parts;
    const { instanceId } = this.#linkQueue.binding;
    const key = this.#keyOf(commandId);
    const { kind, payload, error, refused } = end;
    const run = (): MaybePromise<FinishResult> => acts.finish(key, { instanceId, kind, payload, error, refused });
    return thenDo(orRetry(retryQueue, key, { end, run }), (finished) => {
      dispatcher.free(key, finished.kind === 'unknown' ? null : finished.command);
      return finished;
    });
  }

  async advertise(actions: Connection['actions']): Promise<Connection | null> {
    const { deps } = this.#parts;
    const { client, binding } = this.#linkQueue;
    const connection = await this.#parts.advertised.advertise(client, actions, () =>
      deps.backend.connections.advertise(client, binding.epoch, actions),
    );
    if (connection) publishChange(deps, 'actions_changed', { connection, cause: null });
    return connection;
  }

  async report(report: ContextReport): Promise<ReportOutcome> {
    const { deps } = this.#parts;
    const { client, binding } = this.#linkQueue;
    const outcome = await this.#parts.advertised.report(client, report, () =>
      deps.backend.contexts.report(client, binding.epoch, report),
    );
    deps.metrics.count('context_reports', outcome);
    return outcome;
  }

  async alive(): Promise<boolean> {
    if (this.#left) return true;
    const { client, binding } = this.#linkQueue;
    return (await this.#parts.deps.backend.connections.touch(client, binding.epoch)) !== null;
  }

  async silent(): Promise<void> {
    const { deps } = this.#parts;
    const { client, binding } = this.#linkQueue;
    try {
      const [connection] = await deps.backend.connections.get([client]);
      if (connection?.epoch !== binding.epoch || connection.disconnectedAt !== null) return;
      publishChange(deps, 'stale', { connection, cause: null });
    } catch (error) {
      if (!isStoreUnavailable(error)) deps.log.warn({ err: error }, 'could not publish that a link is silent');
    }
  }

  drained(): void {
    this.#parts.dispatcher.pump(this.#linkQueue);
  }

  async leave(): Promise<readonly string[]> {
    this.#left ??= this.#leave().catch((error: unknown) => {
      this.#left = null;
      throw error;
    });
    await this.#left;
    return [...this.#linkQueue.window];
  }

  async closed(cause: DisconnectCause, closeCode: number | null = null): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    const { deps, dispatcher, advertised } = this.#parts;
    dispatcher.detach(this.#linkQueue);
    const { client, binding } = this.#linkQueue;
    advertised.closed(client);
    // For a client that left, the disconnect is already recorded: it announced the end that its socket now has.
    const end: LinkEnd = { cause: this.#left ? 'client_closed' : cause, closeCode };
    linkClosed(deps, { ...client, ...binding, connectedAt: this.#connectedAt }, end);
    if (this.#left) await this.#left;
    else await this.#unbind(end);
  }

  /**
   * Unbinds once the store has answered every dispatch. If an answer is lost, only the bound link can ask whether the
   * dispatch was recorded.
   */
  async #leave(): Promise<void> {
    const { dispatcher } = this.#parts;
    await dispatcher.retire(this.#linkQueue);
    await this.#unbind({ cause: 'client_closed', closeCode: null });
    await dispatcher.written(this.#linkQueue);
  }

  /**
   * Records the end of the link and parks the commands that were queued for it. While the store is unavailable, this
   * waits in the retry queue.
   */
  async #unbind({ cause, closeCode }: LinkEnd): Promise<void> {
    const { deps, dispatcher, retryQueue } = this.#parts;
    const { client, binding } = this.#linkQueue;
    const run = async (): Promise<void> => {
      const connection = await deps.backend.connections.disconnect(client, binding.epoch, cause, closeCode);
      // A newer link of the client is bound, so its commands are not parked.
      if (!connection || dispatcher.find(client)) return;
      await deps.backend.commands.rebind(client, binding, 'down');
      publishChange(deps, 'disconnected', { connection, cause });
    };
    await retryQueue.take({ lane: `${clientKeyText(client)} ${binding.epoch}`, bytes: ENTRY_BYTES, run });
  }

  #report(commandId: string, kind: 'ack' | 'progress', payload: JsonText | null): MaybePromise<ReportResult> {
    const linkQueue = this.#linkQueue;
    const { instanceId } = linkQueue.binding;
    const reported = this.#parts.acts.report(this.#keyOf(commandId), { instanceId, kind, payload });
    if (linkQueue.spans === null) return reported;
    return thenDo(reported, (result) => {
      if (result.kind === 'recorded') noteReport(linkQueue, commandId, kind);
      return result;
    });
  }

  #keyOf(commandId: string): CommandKey {
    const { userId, clientId } = this.#linkQueue.client;
    return { userId, clientId, commandId: id('command_id', commandId) };
  }
}

const NONE: readonly Command[] = [];

type Ending = { readonly end: { readonly payload: JsonText | null }; readonly run: () => MaybePromise<FinishResult> };

/**
 * Runs an act. Answers in the same tick if the store does. If the store is unavailable, or other acts wait in the retry
 * queue, the act goes through the retry queue.
 */
function orRetry(
  retryQueue: StoreRetryQueue,
  key: CommandKey,
  { end: { payload }, run }: Ending,
): MaybePromise<FinishResult> {
  const keep = (): Promise<FinishResult> => {
    const bytes = ENTRY_BYTES + (payload === null ? 0 : utf8Length(payload));
    return retryQueue.take({ lane: commandKeyText(key), bytes, run: async () => run() });
  };
  if (retryQueue.size > 0) return keep();
  return orElse(run, (error) => {
    if (isStoreUnavailable(error)) return keep();
    throw error;
  });
}

// Publishes and logs that a client link opened or closed.

/** Publishes the event and writes the log line of a client link that opened on this node. */
export function linkOpened(deps: Deps, { kind, connection, previous }: ConnectResult): void {
  const latest = kind === 'replaced' ? (connection.predecessors[0] ?? null) : null;
  const replaced = latest && { replaced: latest.instanceId, cause: latest.cause };
  deps.metrics.count('links_opened', 'client');
  noteOpened(deps, connection, previous !== null);
  deps.log.info({ ...namesOf(connection), kind, ...replaced }, 'link opened');
  publishChange(deps, kind, { connection, cause: latest?.cause ?? null });
}

/**
 * Writes the log line of a client link that closed on this node. `durationMs`: how long it was open. The event is
 * published later, once the store has recorded the disconnect.
 */
function linkClosed({ log, clock, metrics }: Deps, connection: ClosedLink, end: LinkEnd): void {
  const { cause, closeCode } = end;
  const durationMs = Math.max(0, clock.now() - connection.connectedAt);
  metrics.count('links_closed', cause);
  log.info({ ...namesOf(connection), cause, closeCode, durationMs }, 'link closed');
}

type ClosedLink = LinkNames & Pick<Connection, 'connectedAt'>;

type Changed = { readonly connection: Connection; readonly cause: DisconnectCause | null };

function publishChange({ backend, clock }: Deps, change: ConnectionChange, changed: Changed): void {
  backend.bus.publish('connections', { change, ...changed, at: clock.now() });
}

type LinkNames = Pick<Connection, 'userId' | 'clientId' | 'instanceId' | 'epoch' | 'nodeId'>;

function namesOf({ userId, clientId, instanceId, epoch, nodeId }: LinkNames) {
  return { userId, clientId, instanceId, epoch, nodeId };
}

// Builds the rows of a user's link history: one for each client link that opened, and one for each that ended.

/**
 * Returns the row of a link that opened. `previous`: the client's earlier row, live or remembered; null if there is
 * none.
 */
export function openedRow(connection: Connection, previous: Connection | null): NewMessage {
  const cause = previous && endCauseAt(previous, connection.connectedAt);
  return rowOf(connection, 'link_opened', {
    cause,
    closeCode: null,
    openMs: null,
    previousInstanceId: previous?.instanceId ?? null,
  });
}

/** Returns the row of a link that ended at `endedAt` (epoch milliseconds). */
export function endedRow(connection: Connection, { cause, closeCode }: LinkEnd, endedAt: number): NewMessage {
  const openMs = Math.max(0, endedAt - connection.connectedAt);
  const kind = cause === 'replaced' ? 'link_replaced' : 'link_closed';
  return rowOf(connection, kind, { cause, closeCode, openMs, previousInstanceId: null });
}

type Changing = Pick<LinkDetails, 'cause' | 'closeCode' | 'openMs' | 'previousInstanceId'>;

function rowOf(connection: Connection, kind: LinkMessageKind, changing: Changing): NewMessage {
  const { userId, clientId, instanceId, clientType, nodeId, epoch } = connection;
  return {
    ...NO_PAYLOAD,
    id: linkRowId(kind, epoch),
    userId,
    suffix: LINK_STREAM,
    kind,
    clientId,
    instanceId,
    commandId: null,
    traceId: null,
    parentSpanId: null,
    error: null,
    link: { clientType, nodeId, epoch, ...changing },
  };
}
