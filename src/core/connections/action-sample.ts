/** Samples the actions that live clients advertise. */
import { tokenAllows, type InvocationTarget } from '../auth/policy.ts';
import { requireAdmin, type CallingPrincipal, type Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { filterText, name as checkName, type ClientKey } from '../ids.ts';
import { ACTION_SAMPLE, ACTION_SAMPLE_BYTES, ACTION_SAMPLE_CONNECTIONS, CLIENT_ACTIONS } from '../limits.ts';
import { thenDo } from '../maybe-promise.ts';
import { completenessOf, observed, type Completeness, type ObservedSource } from '../completeness.ts';
import type { DocumentReading } from '../document-reading.ts';
import { silentSources } from '../silent-nodes.ts';
import { SCAN_BUDGET, type Position } from '../page.ts';
import { ANY_CONNECTION } from './connection-filter.ts';
import { advertisedBytes, isLive, type Connection, type ActionAdvertisement } from './connection.ts';

export type Actions = ReturnType<typeof createActions>;

/** Creates the API of advertised actions. They describe capabilities and are never an authorization. */
export function createActions(deps: Deps) {
  return {
    /**
     * Reads a bounded sample of the actions that live connections advertise. Admin only. `name` selects one action, and
     * `text` those whose name contains it; null: all. `reading` is that of the document, so that several samples of it
     * read the connections once.
     */
    async sample(
      requester: Requester,
      name: string | null,
      reading?: DocumentReading,
      text: string | null = null,
    ): Promise<ActionSample> {
      requireAdmin(requester);
      const taken: Taken = { items: [], connections: 0, bytes: 0, cut: null };
      const wanted = name === null ? null : checkName('name', name);
      const part = text === null ? null : filterText(text);
      const isWanted = (given: string): boolean =>
        (wanted === null || given === wanted) && (part === null || given.toLowerCase().includes(part));
      const [gaps, silent] = await Promise.all([
        fill(deps, { taken, isWanted, reading }),
        silentSources(deps, 'connections'),
      ]);
      return answer(taken, [...gaps, ...silent], deps.clock.now());
    },
    /**
     * Whether the token and the policy let the caller invoke an action. Says nothing about the client, which may refuse
     * it for reasons of its own.
     */
    mayInvoke: (caller: CallingPrincipal, target: InvocationTarget): boolean =>
      tokenAllows(caller, target.action) && deps.policy.decide(caller, target).allowed,
    /**
     * Returns the completeness of a connection's own advertisements. For nested fields, after the connection was
     * authorized.
     */
    completeness: ({ actions, nodeId }: Connection) =>
      thenDo(silentSources(deps, 'actions', nodeId), (silent) => {
        const own = observed('actions', deps.clock.now(), actions.length);
        return completenessOf([{ ...own, nodeId, limit: CLIENT_ACTIONS }, ...silent]);
      }),
  };
}

/** The sample so far. `cut` names the source from which something was left out; null: nothing was left out. */
type Taken = {
  readonly items: AdvertisedAction[];
  connections: number;
  bytes: number;
  cut: 'connections' | 'actions' | null;
};

type Filling = {
  readonly taken: Taken;
  /** Whether the sample has the action with this name. */
  readonly isWanted: (name: string) => boolean;
  readonly reading: DocumentReading | undefined;
};

/**
 * Fills the sample from the live connections, in the order of the store, and ends at the first item that has to be left
 * out. Once the sample is full, reading continues only to find out whether anything is left out. After SCAN_BUDGET rows
 * the sample counts as cut. Returns the gaps that the store reported.
 */
async function fill(deps: Deps, { taken, isWanted, reading }: Filling): Promise<readonly ObservedSource[]> {
  const gaps: ObservedSource[] = [];
  let after: Position | null = null;
  for (let seen = 0; seen < SCAN_BUDGET; seen += ACTION_SAMPLE_CONNECTIONS) {
    const page = { first: ACTION_SAMPLE_CONNECTIONS, after };
    const scan = await deps.backend.connections.list(ANY_CONNECTION, page, reading);
    const now = deps.clock.now();
    gaps.push(...scan.gaps);
    for (const { row } of scan.rows) {
      if (taken.cut === null && isLive(row, now)) take(taken, row, isWanted);
    }
    if (taken.cut !== null || scan.next === null) return gaps;
    after = scan.next;
  }
  taken.cut = 'connections';
  return gaps;
}

/** Adds the matching actions of a connection to the sample. A connection without a matching action does not count. */
function take(
  taken: Taken,
  { userId, clientId, instanceId, actions }: Connection,
  isWanted: Filling['isWanted'],
): void {
  const offered = actions.filter(({ name }) => isWanted(name));
  const room = ACTION_SAMPLE - taken.items.length;
  if (offered.length > room) taken.cut = 'actions';
  if (offered.length === 0 || room === 0) return;
  if (taken.connections === ACTION_SAMPLE_CONNECTIONS) return void (taken.cut = 'connections');
  taken.connections++;
  for (const action of offered.slice(0, room)) {
    taken.bytes += advertisedBytes(action);
    // The first advertisement is always taken, so that a large one does not make the sample empty.
    if (taken.bytes > ACTION_SAMPLE_BYTES && taken.items.length > 0) return void (taken.cut = 'actions');
    taken.items.push({ userId, clientId, instanceId, action });
  }
}

function answer({ items, connections, cut }: Taken, gaps: readonly ObservedSource[], asOf: number): ActionSample {
  const sourceOf = (source: 'connections' | 'actions', rows: number, limit: number): ObservedSource => ({
    ...observed(source, asOf, rows, cut === source ? limit : null),
    limit,
  });
  const completeness = completenessOf([
    sourceOf('connections', connections, ACTION_SAMPLE_CONNECTIONS),
    sourceOf('actions', items.length, ACTION_SAMPLE),
    ...gaps,
  ]);
  return { items, complete: completeness.complete, completeness };
}

export type AdvertisedAction = ClientKey & { readonly instanceId: string; readonly action: ActionAdvertisement };

export type ActionSample = {
  readonly items: readonly AdvertisedAction[];
  readonly complete: boolean;
  readonly completeness: Completeness;
};
