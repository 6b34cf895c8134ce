/** Binds a client to its link, and handles the client's reports and the end of the link. */
import { requireUser, type UserPrincipal } from '../auth/principal.ts';
import type { ConnectResult } from '../connections/connection-store.ts';
import type { ClientType, Connection, DisconnectCause, LinkEnd } from '../connections/connection.ts';
import { refuseOlderHello } from '../connections/hello-order.ts';
import type { ContextReport, ReportOutcome } from '../contexts/context.ts';
import type { Deps } from '../deps.ts';
import { fail, isStoreUnavailable } from '../errors.ts';
import { clientKeyText, commandKeyText, id, keyOf, type ClientKey, type CommandKey } from '../ids.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { orElse, thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { CommandRecorder } from './command-recorder.ts';
import type { Command } from './command.ts';
import { beginResumeSpans, noteReport } from './dispatch-spans.ts';
import type { Dispatcher } from './dispatcher.ts';
import { answerLeaving } from './leaving.ts';
import { linkClosed, linkOpened, publishChange } from './link-events.ts';
import { Advertised } from './advertised-bytes.ts';
import { closeReplaced, holdAgain, type LinkQueue } from './link-queue.ts';
import type { ClientLink, HelloRequest } from './client-link.ts';
import type { NodeQuestions } from './node-questions.ts';
import { giveUpLater, kickElsewhere } from './replaced-links.ts';
import { ENTRY_BYTES, type StoreRetryQueue } from './retry-queue.ts';
import type { End, FinishResult, Received, ReportResult } from './command-store.ts';

type LinkDeps = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  readonly recorder: CommandRecorder;
  readonly retryQueue: StoreRetryQueue;
  readonly isDraining: () => boolean;
  readonly questions: NodeQuestions;
};

type SessionDeps = LinkDeps & { readonly advertised: Advertised };

/** Creates the object that binds clients to links. A client is bound to one link at a time: the newest. */
export function createLinks(given: LinkDeps) {
  const { deps } = given;
  const { connections } = deps.backend;
  const advertised = new Advertised(deps);
  const parts = { ...given, advertised };
  answerLeaving(given);
  return {
    /**
     * Binds the client to this link. Throws `forbidden`, `draining`, `invalid_argument`, `share_exceeded`, `store_full`,
     * `store_unavailable`, or `stale_instance` if the same instance has opened a later link.
     */
    async open(requester: UserPrincipal, hello: HelloRequest, link: ClientLink): Promise<LinkSession> {
      if (parts.isDraining()) fail('draining', 'This node takes no new links.');
      const helloAt = deps.clock.now() - Math.floor(hello.readMsAgo ?? 0);
      const { userId, scopes } = requireUser(requester, 'connect');
      const client: ClientKey = { userId, clientId: id('client_id', hello.clientId) };
      const { clientType, places = false, metadata, actions, resumes = null } = hello;
      const instanceId = id('instance_id', hello.instanceId);
      const result = await advertised.open(client, hello, () =>
        connections.connect({
          ...client,
          instanceId,
          nodeId: deps.nodeId,
          clientType,
          host: scopes.has('host'),
          places,
          linkAttempt: resumes?.attempt,
          helloAt,
          metadata,
          actions,
        }),
      );
      try {
        return await bind(parts, client, { result, link, received: resumes?.received });
      } catch (error) {
        advertised.closed(client);
        throw error;
      }
    },
  };
}

/**
 * A client that the store has connected: its new link, and the commands that it received over earlier links. `received`
 * is undefined if its hello did not say.
 */
type Bound = {
  readonly result: ConnectResult;
  readonly link: ClientLink;
  readonly received: Received | undefined;
};

/** Assigns the client's commands to its new link. */
async function bind(parts: SessionDeps, client: ClientKey, { result, link, received }: Bound): Promise<LinkSession> {
  const { deps, dispatcher, recorder } = parts;
  const { connection } = result;
  const { instanceId, epoch, places = false } = connection;
  // By now the store may have connected a later link of the client. A later attempt always gets a higher epoch.
  refuseOlderThan(dispatcher.find(client), connection);
  const tells = received !== undefined && { tellsReceived: true };
  const binding = { nodeId: deps.nodeId, instanceId, epoch, ...(places && { places }), ...tells };
  const { linkQueue, previous } = dispatcher.attach(client, binding, link);
  if (previous) closeReplaced(previous, instanceId);
  if (!previous) kickElsewhere(parts, result);
  const rebound = await deps.backend.commands.rebind(client, binding, 'up', received);
  const { requeued, unfinished, orphaned, unreceived } = rebound;
  const { again = [], ended = [] } = unreceived ?? {};
  for (let i = 0; i < requeued + again.length; i++) deps.metrics.count('commands_recovered');
  for (const command of unfinished) linkQueue.window.set(command.commandId, keyOf(command));
  holdAgain(linkQueue, again, deps.clock.now());
  for (const command of ended) recorder.ended(command);
  beginResumeSpans(deps, linkQueue, unfinished);
  giveUpLater(parts, orphaned);
  linkOpened(deps, result);
  return new ClientSession(parts, { linkQueue, result, unfinished });
}

/** Refuses a link if the client is already bound to a later link on this node. */
function refuseOlderThan(bound: LinkQueue | undefined, { epoch, instanceId }: Connection): void {
  if (!bound || bound.binding.epoch < epoch) return;
  if (bound.binding.instanceId === instanceId) refuseOlderHello();
  fail('instance_mismatch', 'Another instance of this client has connected since.');
}

// Handles what the client of one link reports, and the end of the link.

type Opened = {
  readonly linkQueue: LinkQueue;
  readonly result: ConnectResult;
  readonly unfinished: readonly Command[];
};

/** One open link, as the gateway uses it. All methods act in the name of the link's instance and epoch. */
export type LinkSession = Readonly<Pick<ClientSession, keyof ClientSession>>;

/**
 * The session of one client link. A class needs one object per session, and a set of closures would need several; there
 * may be ten thousand idle clients.
 */
class ClientSession {
  readonly clientType: ClientType;
  /** Whether the token of the hello allowed the client to host sites. */
  readonly host: boolean;
  /** The result of binding the client to the link; null after `begin`, to free memory. */
  result: ConnectResult | null;
  /**
   * The commands that were written to an earlier link of this instance and have not ended. The client is asked for
   * their reports on this link. Empty after `begin`.
   */
  unfinished: readonly Command[];
  readonly #parts: SessionDeps;
  readonly #linkQueue: LinkQueue;
  readonly #connectedAt: number;
  #open = true;
  #left: Promise<void> | null = null;

  constructor(parts: SessionDeps, { linkQueue, result, unfinished }: Opened) {
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

  /**
   * Called when the client was welcomed: starts dispatching, and sends the cancels that the client missed. Nothing is
   * sent over the link before.
   */
  begin(): void {
    const { isDraining, dispatcher } = this.#parts;
    const linkQueue = this.#linkQueue;
    const { unfinished } = this;
    // Nothing reads these two later, and the result refers to the client's previous connection, so the memory is freed.
    this.result = null;
    this.unfinished = NONE;
    if (isDraining()) return linkQueue.link.close('node_drained', null);
    linkQueue.open = true;
    const cancels = linkQueue.cancels ?? new Map<string, string | null>();
    linkQueue.cancels = null;
    for (const { cancelRequestedAt, commandId } of unfinished)
      if (cancelRequestedAt !== null && !cancels.has(commandId)) cancels.set(commandId, null);
    for (const [commandId, reason] of cancels) linkQueue.link.sendCancel(commandId, reason);
    dispatcher.pump(linkQueue);
  }

  /**
   * Records an acknowledgement. If the store answers in the same tick, so do `ack`, `progress` and `end`, which may
   * then throw instead of rejecting.
   */
  ack(commandId: string): MaybePromise<ReportResult> {
    return this.#report(commandId, { kind: 'ack', payload: null });
  }

  /** Records a progress report. `number`: the number that the client gave the report; undefined if it gave none. */
  progress(commandId: string, payload: JsonText | null, number?: number): MaybePromise<ReportResult> {
    return this.#report(commandId, { kind: 'progress', payload, number });
  }

  end(commandId: string, end: Omit<End, 'kept' | 'instanceId'>): MaybePromise<FinishResult> {
    const { recorder, retryQueue, dispatcher } = this.#parts;
    const { instanceId } = this.#linkQueue.binding;
    const key = this.#keyOf(commandId);
    const { kind, payload, error, refused } = end;
    const run = (): MaybePromise<FinishResult> => recorder.finish(key, { instanceId, kind, payload, error, refused });
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

  /** Stores what the client reports about its contexts and windows. Either the whole report is stored or nothing. */
  async report(report: ContextReport): Promise<ReportOutcome> {
    const { deps } = this.#parts;
    const { client, binding } = this.#linkQueue;
    const outcome = await this.#parts.advertised.report(client, report, () =>
      deps.backend.contexts.report(client, binding.epoch, report),
    );
    deps.metrics.count('context_reports', outcome);
    return outcome;
  }

  /**
   * Records that the client is alive. Resolves to false if the client is no longer bound to this link; the gateway then
   * closes the link. Once the client is leaving, always resolves to true.
   */
  async alive(): Promise<boolean> {
    if (this.#left) return true;
    const { client, binding } = this.#linkQueue;
    return (await this.#parts.deps.backend.connections.touch(client, binding.epoch)) !== null;
  }

  /**
   * Publishes that the client is silent. Called once for each silence of STALE_MS. While the store is unavailable,
   * publishes nothing. Never rejects.
   */
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

  /** Called when the socket has written its backlog. Dispatching continues. */
  drained(): void {
    this.#parts.dispatcher.pump(this.#linkQueue);
  }

  /**
   * Handles a client that announces that it leaves. Its connection then counts as disconnected (`client_closed`). No
   * further dispatch begins on this link, and undispatched commands wait for the client's next link. Resolves when
   * nothing more will be written to the link, with the ids of the commands that were dispatched on it and have not
   * ended. Reports about these commands are still accepted. May be called again.
   */
  async leave(): Promise<readonly string[]> {
    this.#left ??= this.#leave().catch((error: unknown) => {
      this.#left = null;
      throw error;
    });
    await this.#left;
    return [...this.#linkQueue.window.keys()];
  }

  /** Called when the socket has closed. Idempotent. */
  async closed(cause: DisconnectCause, closeCode: number | null = null): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    const { deps, dispatcher, advertised } = this.#parts;
    dispatcher.detach(this.#linkQueue);
    const { client, binding } = this.#linkQueue;
    advertised.closed(client);
    // If the client left, `leave` records the disconnect with the cause that the client announced.
    const end: LinkEnd = { cause: this.#left ? 'client_closed' : cause, closeCode };
    linkClosed(deps, { ...client, ...binding, connectedAt: this.#connectedAt }, end);
    if (this.#left) await this.#left;
    else await this.#unbind(end);
  }

  /**
   * Unbinds the client after the store has answered all dispatches. If an answer is lost, only the bound link can ask
   * whether the dispatch was recorded.
   */
  async #leave(): Promise<void> {
    const { dispatcher } = this.#parts;
    await dispatcher.retire(this.#linkQueue);
    await this.#unbind({ cause: 'client_closed', closeCode: null });
    await dispatcher.written(this.#linkQueue);
  }

  /**
   * Records the end of the link, and parks the commands that were queued for it. If the store is unavailable, this
   * waits in the retry queue.
   */
  async #unbind({ cause, closeCode }: LinkEnd): Promise<void> {
    const { deps, dispatcher, retryQueue } = this.#parts;
    const { client, binding } = this.#linkQueue;
    const run = async (): Promise<void> => {
      const connection = await deps.backend.connections.disconnect(client, binding.epoch, cause, closeCode);
      // The client has a newer link on this node, so its commands stay queued.
      if (!connection || dispatcher.find(client)) return;
      await deps.backend.commands.rebind(client, binding, 'down');
      publishChange(deps, 'disconnected', { connection, cause });
    };
    await retryQueue.take({ lane: `${clientKeyText(client)} ${binding.epoch}`, bytes: ENTRY_BYTES, run });
  }

  #report(commandId: string, { kind, payload, number }: Reported): MaybePromise<ReportResult> {
    const linkQueue = this.#linkQueue;
    const { instanceId } = linkQueue.binding;
    const reported = this.#parts.recorder.report(this.#keyOf(commandId), { instanceId, kind, payload, number });
    if (linkQueue.spans === null) return reported;
    return thenDo(reported, (result) => {
      if (result.kind === 'recorded') noteReport(linkQueue, commandId, kind);
      return result;
    });
  }

  #keyOf(commandId: string): CommandKey {
    const known = this.#linkQueue.window.get(commandId);
    if (known) return known;
    const { userId, clientId } = this.#linkQueue.client;
    return { userId, clientId, commandId: id('command_id', commandId) };
  }
}

const NONE: readonly Command[] = [];

type Reported = Omit<Parameters<CommandRecorder['report']>[1], 'instanceId'>;

type Ending = { readonly end: { readonly payload: JsonText | null }; readonly run: () => MaybePromise<FinishResult> };

/**
 * Runs an act. If the store is unavailable, or if other acts wait in the retry queue, the act goes through the retry
 * queue. If the store answers in the same tick, so does this function.
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
