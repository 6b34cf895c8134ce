/** Shows the page of the actions that connected clients advertise. */
import { ActionSampleDocument, ActionsOfUserDocument, type ActionSampleQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { openInvoke } from '../invoke/open.tsx';
import { Sources, isAdmin, viewer } from '../shell/facts.tsx';
import { FilterBar, NoMatch, useUrlState, type Filter, useKeys } from '../ui/filters.tsx';
import { AsOf, ClientLink, Empty, ErrorNotice, Information, Loading, PageHead, Pager } from '../ui/page.tsx';
import { PAGE_SIZE, Table, type Column } from '../ui/table.tsx';
import { plural } from '../ui/words.ts';

const FILTERS: readonly Filter[] = [{ name: 'name', label: 'Name' }];

export function ActionsPage() {
  const { values, hrefWith } = useUrlState();
  const admin = isAdmin.value;
  const name = values['name'] ?? null;
  const ofAll = useQuery(ActionSampleDocument, { name }, { skip: !admin });
  const ofUser = useQuery(ActionsOfUserDocument, { userId: viewer.value?.userId ?? '' }, { skip: admin });
  const query = admin ? ofAll : ofUser;
  const found: readonly AdvertisedSample[] | undefined = admin ? ofAll.data?.actions.items : itemsOf(ofUser.data, name);
  const completeness = admin ? ofAll.data?.actions.completeness : ofUser.data?.connections.completeness;
  const groups = found && groupActions(found);
  const from = Math.max(0, Number(values['from'] ?? 0) || 0);
  const rows = groups?.slice(from, from + PAGE_SIZE);
  useKeys({ i: () => openInvoke({}) });
  return (
    <>
      <PageHead
        title="Actions"
        acts={
          <>
            <AsOf queries={[query]} />
            <button class="btn btn-primary" type="button" onClick={() => openInvoke({})}>
              Invoke an action
            </button>
          </>
        }
      >
        What connected clients say they can run. Saying so is no permission: each call may still be refused.
      </PageHead>
      <FilterBar what="actions" filters={FILTERS} bare="name" />
      <ErrorNotice query={query} what="actions" />
      <Sources completeness={completeness} held="Actions of its clients are shown" />
      {ofAll.data && !ofAll.data.actions.complete && (
        <Information>
          <b>This is a sample.</b> An action that is missing here may still be advertised: filter by its exact name.
        </Information>
      )}
      {!groups && query.loading && <Loading what="actions" />}
      {groups && rows && rows.length > 0 && (
        <>
          <Table caption="Actions by name" columns={ACTION_COLUMNS} rows={rows} keyOf={(group) => group.name} />
          <Pager
            first={from > 0 ? hrefWith({ from: null }) : null}
            next={groups.length > from + PAGE_SIZE ? hrefWith({ from: String(from + PAGE_SIZE) }) : null}
            size={PAGE_SIZE}
            isCut={groups.length > rows.length}
          >
            {rows.length} shown of {plural(groups.length, 'action')}, from {plural(found.length, 'advertisement')}.
          </Pager>
        </>
      )}
      {groups && groups.length === 0 && (name === null ? <NoActions /> : <NoMatch what="action" filters={FILTERS} />)}
    </>
  );
}

function itemsOf(
  data: { readonly connections: { readonly nodes: readonly UserClient[] } } | null,
  name: string | null,
) {
  return data?.connections.nodes.flatMap(({ userId, clientId, instanceId, actions }) =>
    actions.items
      .filter((action) => name === null || action.name === name)
      .map((action) => ({ userId, clientId, instanceId, action })),
  );
}

type UserClient = Omit<AdvertisedSample, 'action'> & {
  readonly actions: { readonly items: readonly AdvertisedSample['action'][] };
};

function NoActions() {
  return (
    <Empty title="No client advertises an action">
      <p>
        A client advertises what it handles when it connects: <code>runtime.handle(name, spec, handler)</code>.
      </p>
    </Empty>
  );
}

// Groups the advertised actions by name, and shows each group as a row.

type ActionGroup = {
  readonly name: string;
  readonly summary: string | null;
  readonly versions: readonly string[];
  /** The clients that advertise the action, in the order of the sample. */
  readonly clients: readonly AdvertisedSample[];
};

/** Returns the groups in the order of their names. */
function groupActions(items: readonly AdvertisedSample[]): readonly ActionGroup[] {
  return [...Map.groupBy(items, ({ action }) => action.name)]
    .map(([name, clients]) => ({
      name,
      summary: clients.find(({ action }) => action.summary !== null)?.action.summary ?? null,
      versions: [...new Set(clients.map(({ action }) => action.version).filter((version) => version !== null))],
      clients,
    }))
    .sort((one, other) => one.name.localeCompare(other.name));
}

/** The number of clients that a row names. The others are only counted. */
const NAMED = 3;

const ACTION_COLUMNS: readonly Column<ActionGroup>[] = [
  { head: 'Action', class: 'c-1', names: true, cell: ({ name }) => name },
  { head: 'What it does', class: 'why c-3 c-wide', cell: ({ summary }) => summary ?? '' },
  { head: 'Version', class: 'nw c-off', cell: ({ versions }) => versions.join(', ') },
  { head: 'Advertised by', class: 'c-5 c-wide', cell: ({ clients }) => <Clients clients={clients} /> },
  {
    head: 'Invoke',
    quietHead: true,
    class: 'r c-2',
    cell: ({ name, clients }) => (
      <button
        class="btn btn-s"
        type="button"
        aria-label={`Invoke ${name}…`}
        onClick={() => openInvoke(startOf(name, clients))}
      >
        Invoke…
      </button>
    ),
  },
];

/** Returns what the invoke drawer starts with. With a single client, that client is chosen. */
function startOf(action: string, clients: readonly AdvertisedSample[]) {
  const [only] = clients;
  return clients.length === 1 && only ? { action, userId: only.userId, clientId: only.clientId } : { action };
}

function Clients({ clients }: { readonly clients: readonly AdvertisedSample[] }) {
  const more = clients.length - NAMED;
  return (
    <>
      {clients.slice(0, NAMED).map((client, at) => (
        <span key={`${client.userId}/${client.clientId}`}>
          {at > 0 && ', '}
          <ClientLink {...client} />
        </span>
      ))}
      {more > 0 && ` and ${more} more`}
    </>
  );
}

// Defines the types that several files of the actions page use. Contains types only.

type AdvertisedSample = ActionSampleQuery['actions']['items'][number];
