/** Shows the page of the actions that connected clients advertise. */
import { ActionSampleDocument, ActionsOfUserDocument, type ActionSampleQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { InvokeAction, InvokeButton } from '../invoke/open.tsx';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { useUrlState, type Filter } from '../ui/filters.tsx';
import { AsOf, ClientLink, Empty, Information, PageHead } from '../ui/page.tsx';
import { List, PAGE_SIZE, type Column } from '../ui/table.tsx';
import { plural } from '../ui/words.ts';

type AdvertisedSample = ActionSampleQuery['actions']['items'][number];

const FILTERS: readonly Filter[] = [{ name: 'name', label: 'Name' }];

export function ActionsPage() {
  const { values } = useUrlState();
  const admin = isAdmin.value;
  const name = values['name'] ?? null;
  const ofAll = useQuery(ActionSampleDocument, { name }, { skip: !admin });
  const ofUser = useQuery(ActionsOfUserDocument, { userId: viewer.value?.userId ?? '' }, { skip: admin });
  const query = admin ? ofAll : ofUser;
  const found: readonly AdvertisedSample[] | undefined = admin ? ofAll.data?.actions.items : itemsOf(ofUser.data, name);
  const completeness = admin ? ofAll.data?.actions.completeness : ofUser.data?.connections.completeness;
  const groups = groupActions(found ?? []);
  // The answer has all groups, so the cursor of a page is the number of groups before it.
  const from = Math.max(0, Number(values['after'] ?? 0) || 0);
  const rows = groups.slice(from, from + PAGE_SIZE);
  const pageInfo = { hasNextPage: groups.length > from + PAGE_SIZE, endCursor: String(from + PAGE_SIZE) };
  return (
    <>
      <PageHead
        title="Actions"
        acts={
          <>
            <AsOf queries={[query]} />
            <InvokeButton />
          </>
        }
      >
        What connected clients say they can run. Saying so is no permission: each call may still be refused.
      </PageHead>
      <List
        one="action"
        many="actions"
        query={query}
        list={found && completeness && { nodes: rows, pageInfo, completeness }}
        filters={FILTERS}
        bare="name"
        held="Actions of its clients are shown"
        notices={
          ofAll.data &&
          !ofAll.data.actions.complete && (
            <Information>
              <b>This is a sample.</b> An action that is missing here may still be advertised: filter by its exact name.
            </Information>
          )
        }
        about={`${rows.length} shown of ${plural(groups.length, 'action')}, from ${plural(found?.length ?? 0, 'advertisement')}.`}
        isCut={groups.length > rows.length}
        empty={
          <Empty title="No client advertises an action">
            <p>
              A client advertises what it handles when it connects: <code>runtime.handle(name, spec, handler)</code>.
            </p>
          </Empty>
        }
        caption="Actions by name"
        columns={COLUMNS}
        rows={rows}
        keyOf={(group) => group.name}
      />
    </>
  );
}

function itemsOf(
  data: { readonly connections: { readonly nodes: readonly UserClient[] } } | null,
  name: string | null,
) {
  return data?.connections.nodes.flatMap(({ userId, clientId, actions }) =>
    actions.items
      .filter((action) => name === null || action.name === name)
      .map((action) => ({ userId, clientId, action })),
  );
}

type UserClient = Omit<AdvertisedSample, 'action'> & {
  readonly actions: { readonly items: readonly AdvertisedSample['action'][] };
};

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

const COLUMNS: readonly Column<ActionGroup>[] = [
  { head: 'Action', class: 'c-1', names: true, cell: ({ name }) => name },
  { head: 'What it does', class: 'why c-3 c-wide', cell: ({ summary }) => summary ?? '' },
  { head: 'Version', class: 'nw c-off', cell: ({ versions }) => versions.join(', ') },
  { head: 'Advertised by', class: 'c-5 c-wide', cell: ({ clients }) => <Clients clients={clients} /> },
  {
    head: 'Invoke',
    quietHead: true,
    class: 'r c-2',
    // With a single client, that client is chosen.
    cell: ({ name, clients }) => <InvokeAction {...(clients.length === 1 && clients[0])} action={name} />,
  },
];

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
