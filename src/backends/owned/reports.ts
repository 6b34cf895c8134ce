/**
 * Keeps the reports of clients on this process's links about their contexts and windows, and sends them again to a new
 * owner of the clients' partition, because the log contains no reports.
 */
import type { Backend } from '../../core/backend.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ContextReport, ReportOutcome, ReportedContext, ReportPart } from '../../core/contexts/context.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { orElse, promised, thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Clock, Log } from '../../core/ports.ts';
import { applyReport, emptyInstance, type ReportingInstance } from '../memory/contexts.ts';

type Stores = Pick<Backend, 'connections' | 'contexts'>;

/**
 * The reports of one link. `instance`: the accepted reports; null if there were none, as on most links. `pending`: the
 * reports without a known outcome, in order.
 */
type LinkReports = {
  readonly connection: Pick<Connection, 'userId' | 'clientId' | 'instanceId' | 'clientType' | 'epoch'>;
  readonly places: boolean;
  instance: ReportingInstance | null;
  readonly pending: Set<ContextReport>;
};

export class Reports {
  readonly #stores: Stores;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #log: Log;
  readonly #links = new Map<string, LinkReports>();

  /** `stores`: the stores that route each call to the owner of the client. */
  constructor(stores: Stores, { clock, log }: { readonly clock: Pick<Clock, 'now'>; readonly log: Log }) {
    this.#stores = stores;
    this.#clock = clock;
    this.#log = log;
  }

  /** The stores that links must use, so that reports are kept. */
  get stores(): Stores {
    const { connections, contexts } = this.#stores;
    return {
      connections: {
        ...connections,
        connect: (request) =>
          thenDo(connections.connect(request), (result) => {
            this.#connected(result.connection);
            return result;
          }),
        disconnect: (key, epoch, ...how) => {
          this.#forget(key, epoch);
          return connections.disconnect(key, epoch, ...how);
        },
      },
      contexts: { ...contexts, report: (key, epoch, report) => this.#report(key, epoch, report) },
    };
  }

  /** Reports again for the clients of these users, because another process owns their partition now. */
  again(concerns: (userId: string) => boolean): void {
    for (const link of this.#links.values())
      if (link.instance && concerns(link.connection.userId)) this.#repeat(link, link.instance);
  }

  #connected(connection: Connection): void {
    const { userId, clientId, instanceId, clientType, epoch } = connection;
    const places = connection.places === true;
    const name = clientKeyText(connection);
    const before = this.#links.get(name);
    // The rows of an instance outlive its link, so the same instance keeps them. A new instance has none.
    const instance = before?.connection.instanceId === instanceId ? before.instance : null;
    const link = { userId, clientId, instanceId, clientType, epoch };
    this.#links.set(name, { connection: link, places, instance, pending: new Set() });
  }

  #forget(key: ClientKey, epoch: number): void {
    const name = clientKeyText(key);
    if (this.#links.get(name)?.connection.epoch === epoch) this.#links.delete(name);
  }

  #report(key: ClientKey, epoch: number, report: ContextReport): MaybePromise<ReportOutcome> {
    const link = this.#links.get(clientKeyText(key));
    if (link?.connection.epoch !== epoch) return this.#stores.contexts.report(key, epoch, report);
    const instance = (link.instance ??= emptyInstance(link.connection));
    link.pending.add(report);
    const end = (outcome: ReportOutcome | null): void => {
      link.pending.delete(report);
      if (outcome === 'taken') applyReport(instance, report, { places: link.places, now: this.#clock.now() });
    };
    return orElse(
      () =>
        thenDo(this.#stores.contexts.report(key, epoch, report), (outcome) => {
          end(outcome);
          return outcome;
        }),
      (error) => {
        end(null);
        throw error;
      },
    );
  }

  /** Sends the accepted state, and then again all pending reports. Repeating reports in order is harmless. */
  #repeat({ connection, pending }: LinkReports, instance: ReportingInstance): void {
    const { userId, clientId, epoch } = connection;
    const client = { userId, clientId };
    for (const report of [...wholeOf(instance), ...pending])
      promised(() => this.#stores.contexts.report(client, epoch, report)).catch((error: unknown) => {
        this.#log.warn({ err: error, ...client }, 'what a client had reported could not be reported again');
      });
  }
}

/**
 * Returns the reports that bring the copy of another process to this state. The first one says which contexts have
 * left. None is a snapshot of all contexts: the other process may have handled a later report already, and a context
 * that the later report added must not leave because it is missing here.
 */
function wholeOf(instance: ReportingInstance): readonly ContextReport[] {
  const { contexts, windows, left, reportsContexts } = instance;
  const reports: ContextReport[] = [];
  if (left) reports.push({ contexts: changeOf([...left].map(closedContext), []), windows: null });
  const gone = [...(left ?? [])].filter((contextId) => contexts.get(contextId) === undefined);
  if (reportsContexts || windows.size > 0)
    reports.push({
      contexts: reportsContexts ? changeOf([...contexts.values()], gone) : null,
      windows: windows.size > 0 ? { snapshot: true, set: [...windows.values()], removed: [] } : null,
    });
  return reports;
}

function changeOf(set: readonly ReportedContext[], removed: readonly string[]): ReportPart<ReportedContext> {
  return { snapshot: false, set, removed };
}

function closedContext(contextId: string): ReportedContext {
  const nothing = { windowId: null, taskId: null, title: null, metadata: null };
  return { contextId, status: 'closed', ownership: 'worker', ...nothing };
}
