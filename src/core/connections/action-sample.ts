/** Samples the actions that connected clients advertise. */
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

/**
 * Creates the API of advertised actions. An advertised action describes what a client can do and authorizes nothing.
 */
export function createActions(deps: Deps) {
  return {
    /**
     * Returns a bounded sample of the actions that connected clients advertise. Admin only. `name` selects the action
     * with this name, and `text` those whose names contain it; null: all. `reading`: that of the document, so that
     * several samples in one document read the connections once.
     */
    async sample(
      requester: Requester,
      name: string | null,
      reading?: DocumentReading,
      text: string | null = null,
    ): Promise<ActionSample> {
      requireAdmin(requester);
      const sample: Sample = { items: [], connections: 0, bytes: 0, cut: null };
      const wanted = name === null ? null : checkName('name', name);
      const part = text === null ? null : filterText(text);
      const isWanted = (given: string): boolean =>
        (wanted === null || given === wanted) && (part === null || given.toLowerCase().includes(part));
      const [gaps, silent] = await Promise.all([
        fill(deps, { sample, isWanted, reading }),
        silentSources(deps, 'connections'),
      ]);
      return answer(sample, [...gaps, ...silent], deps.clock.now());
    },
    /** Whether the caller's token and the policy permit an action. The client itself may still refuse it. */
    mayInvoke: (caller: CallingPrincipal, target: InvocationTarget): boolean =>
      tokenAllows(caller, target.action) && deps.policy.decide(caller, target).allowed,
    /**
     * Returns the completeness of a connection's list of actions. Does not check whether the caller may see the
     * connection.
     */
    completeness: ({ actions, nodeId }: Connection) =>
      thenDo(silentSources(deps, 'actions', nodeId), (silent) => {
        const own = observed('actions', deps.clock.now(), actions.length);
        return completenessOf([{ ...own, nodeId, limit: CLIENT_ACTIONS }, ...silent]);
      }),
  };
}

/** The sample so far. `cut`: the source of which the sample contains only a part; null if it contains everything. */
type Sample = {
  readonly items: AdvertisedAction[];
  connections: number;
  bytes: number;
  cut: 'connections' | 'actions' | null;
};

type Filling = {
  readonly sample: Sample;
  /** Whether an action with this name belongs in the sample. */
  readonly isWanted: (name: string) => boolean;
  readonly reading: DocumentReading | undefined;
};

/**
 * Fills the sample from the connected clients, in the order of the store, and stops at the first item that does not
 * fit. When the sample is full, reading goes on only to find out whether there are more items. After SCAN_BUDGET rows,
 * the sample is marked as cut. Returns the gaps that the store reported.
 */
async function fill(deps: Deps, { sample, isWanted, reading }: Filling): Promise<readonly ObservedSource[]> {
  const gaps: ObservedSource[] = [];
  let after: Position | null = null;
  for (let seen = 0; seen < SCAN_BUDGET; seen += ACTION_SAMPLE_CONNECTIONS) {
    const page = { first: ACTION_SAMPLE_CONNECTIONS, after };
    const scan = await deps.backend.connections.list(ANY_CONNECTION, page, reading);
    const now = deps.clock.now();
    gaps.push(...scan.gaps);
    for (const { row } of scan.rows) {
      if (sample.cut === null && isLive(row, now)) take(sample, row, isWanted);
    }
    if (sample.cut !== null || scan.next === null) return gaps;
    after = scan.next;
  }
  sample.cut = 'connections';
  return gaps;
}

/** Adds the matching actions of a connection to the sample. A connection without a matching action is not counted. */
function take(
  sample: Sample,
  { userId, clientId, instanceId, actions }: Connection,
  isWanted: Filling['isWanted'],
): void {
  const offered = actions.filter(({ name }) => isWanted(name));
  const room = ACTION_SAMPLE - sample.items.length;
  if (offered.length > room) sample.cut = 'actions';
  if (offered.length === 0 || room === 0) return;
  if (sample.connections === ACTION_SAMPLE_CONNECTIONS) return void (sample.cut = 'connections');
  sample.connections++;
  for (const action of offered.slice(0, room)) {
    sample.bytes += advertisedBytes(action);
    // The first item is always added, so that one large item does not make the sample empty.
    if (sample.bytes > ACTION_SAMPLE_BYTES && sample.items.length > 0) return void (sample.cut = 'actions');
    sample.items.push({ userId, clientId, instanceId, action });
  }
}

function answer({ items, connections, cut }: Sample, gaps: readonly ObservedSource[], asOf: number): ActionSample {
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
