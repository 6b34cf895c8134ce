/** Shows the list of actions that connected clients advertise, and the page of one action. */
import { useRoute } from 'preact-iso';
import * as gql from '../../../generated/console.ts';
import { useQuery, type Query } from '../api/query.ts';
import { pagePath, queryPath } from '../base.ts';
import { InvokeAction, InvokeButton } from '../invoke/open.tsx';
import { Sources } from '../shell/relay-notices.tsx';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { useUrlState } from '../ui/url-state.ts';
import type { Filter } from '../ui/filters.tsx';
import { CutNotice, Empty, ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { AsOf, ClientLink, Facts, Nil, PageHead, Readouts, Section, Views } from '../ui/page.tsx';
import { List } from '../ui/list.tsx';
import { PAGE_SIZE, Table, nameColumn, column, labelled, quietColumn, type Column } from '../ui/table.tsx';
import { Prose } from '../ui/payload.tsx';
import { duration, percent, whole } from '../ui/amounts.ts';
import { plural } from '../ui/text-format.ts';
import { ActionName, CallsTable } from './columns.tsx';
import { FailureGroups, useFailures } from './failures.tsx';
import { WhoMayCall } from './permissions.tsx';

type AdvertisedSample = gql.ActionSampleQuery['actions']['items'][number];

const FILTERS: readonly Filter[] = [{ name: 'name', label: 'Name' }];

export function ActionsPage() {
  const { values } = useUrlState();
  const { query, found, completeness, isSample } = useAdvertised(values['name'] ?? null);
  const groups = groupActions(found ?? []);
  // The answer contains all groups, so the cursor of a page is the number of groups before it.
  const from = Math.max(0, Number(values['after'] ?? 0) || 0);
  const rows = groups.slice(from, from + PAGE_SIZE);
  const pageInfo = { hasNextPage: groups.length > from + PAGE_SIZE, endCursor: String(from + PAGE_SIZE) };
  return (
    <>
      <PageHead title="Actions" acts={[<AsOf queries={[query]} />, <InvokeButton />]}>
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
          isSample && (
            <Information>
              <b>This is a sample.</b> An action that is missing here may still be advertised: filter by its exact name.
            </Information>
          )
        }
        about={`${rows.length} shown of ${plural(groups.length, 'action')}, from ${plural(found?.length ?? 0, 'advertisement')}.`}
        isCut={groups.length > rows.length}
        empty={
          <Empty title="No client advertises an action">
            A client advertises what it handles when it connects: <code>runtime.handle(name, spec, handler)</code>.
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

/**
 * Reads the advertisements that the viewer may see, for one action or for all (null). `isSample`: whether some may be
 * missing.
 */
function useAdvertised(name: string | null) {
  const admin = isAdmin.value;
  const ofAll = useQuery(gql.ActionSampleDocument, { name }, { skip: !admin });
  const ofUser = useQuery(gql.ActionsOfUserDocument, { userId: viewer.value?.userId ?? '' }, { skip: admin });
  const found: readonly AdvertisedSample[] | undefined = admin ? ofAll.data?.actions.items : itemsOf(ofUser.data, name);
  return {
    query: admin ? ofAll : ofUser,
    found,
    completeness: admin ? ofAll.data?.actions.completeness : ofUser.data?.connections.completeness,
    isSample: ofAll.data?.actions.complete === false,
  };
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
  /** The clients that advertise the action, in the order of the answer. */
  readonly clients: readonly AdvertisedSample[];
};

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

/** The maximum number of clients that a row names. Any further clients are only counted. */
const NAMED = 3;

const COLUMNS: readonly Column<ActionGroup>[] = [
  nameColumn('Action', 'c-1', ({ name }) => <ActionName name={name} />),
  column('What it does', 'why c-3 c-wide', ({ summary }) => summary ?? ''),
  column('Version', 'nw c-off', ({ versions }) => versions.join(', ')),
  column('Advertised by', 'c-5 c-wide', ({ clients }) => <Clients clients={clients} />),
  {
    head: 'Invoke',
    quietHead: true,
    class: 'r c-2',
    // If there is only one client, it is already chosen in the drawer.
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

// The page of one action: how its calls ended and how long they took, who advertises it, and which params it takes.

export function ActionPage() {
  const { name = '' } = useRoute().params;
  return <OneAction key={name} name={name} />;
}

function OneAction({ name }: { readonly name: string }) {
  const { query, found, completeness, isSample } = useAdvertised(name);
  const { values } = useUrlState();
  const minutes = WINDOWS.find((candidate) => `${candidate}m` === values['window']) ?? WINDOW;
  const calls = useQuery(gql.ActionCallsDocument, { filter: filterOf(name, minutes) }, { skip: !isAdmin.value });
  const summary = found && groupActions(found)[0]?.summary;
  const only = found?.length === 1 ? found[0] : undefined;
  const start = { action: name, ...(only && { userId: only.userId, clientId: only.clientId }) };
  return (
    <>
      <PageHead
        title={name}
        crumbs={[{ href: pagePath('actions'), text: 'Actions' }]}
        acts={[<AsOf queries={isAdmin.value ? [query, calls] : [query]} />, <InvokeButton start={start} />]}
      >
        {summary ?? undefined}
      </PageHead>
      <ErrorNotice query={query} what="who advertises it" />
      <Sources completeness={completeness} held="Actions of its clients are shown" />
      {isAdmin.value && <ActionCalls name={name} minutes={minutes} query={calls} />}
      {!found && query.loading && <Loading what="who advertises it" />}
      {found && <Advertisers name={name} found={found} isSample={isSample} />}
    </>
  );
}

/** The time windows to choose from, in minutes. Records of ended calls are kept for an hour. */
const WINDOWS = [5, 15, 60] as const;
const WINDOW = 60;

type Measured = gql.ActionCallsQuery['delivery']['measured'];

/**
 * Returns the filter for the calls of an action in a window. Its beginning is rounded down to a minute, so that
 * repeated requests are equal.
 */
function filterOf(action: string, minutes: number): gql.DeliveryFilter {
  return { action, admittedAfter: new Date(Math.floor(Date.now() / 60_000 - minutes) * 60_000).toISOString() };
}

type ActionCallsProps = {
  readonly name: string;
  readonly minutes: number;
  readonly query: Query<gql.ActionCallsQuery>;
};

function ActionCalls({ name, minutes, query }: ActionCallsProps) {
  const { hrefWith } = useUrlState();
  const data = query.data?.delivery;
  const failures = useFailures(filterOf(name, minutes));
  const calls = queryPath('calls', { action: name, since: `${minutes}m` });
  return (
    <>
      <Views
        label="Window"
        views={WINDOWS.map((candidate) => ({
          name: candidate === WINDOW ? 'Last hour' : `Last ${candidate} min`,
          href: hrefWith({ window: candidate === WINDOW ? null : `${candidate}m` }),
          isCurrent: candidate === minutes,
        }))}
      />
      <ErrorNotice query={query} what="its calls" />
      <CutNotice completeness={data?.measured.completeness} />
      {!data && query.loading && <Loading what="its calls" />}
      {data && (
        <>
          <Readouts figures={callFigures(data.measured)} />
          <FailureGroups
            query={failures}
            when={minutes === WINDOW ? 'in the last hour' : `in the last ${minutes} min`}
            kept={{ action: name, since: `${minutes}m` }}
          />
          <Section title="Latest calls" about="admitted in this window" side={<a href={calls}>All calls of {name}</a>}>
            <CallsTable
              caption={`Latest calls of ${name}`}
              rows={data.latest.nodes}
              without={['Action']}
              none="No call of this action was admitted in this window."
            />
          </Section>
        </>
      )}
    </>
  );
}

/** Returns the figures of the calls that were read: all calls of the window, or only the latest ones. */
function callFigures({ nodes, pageInfo }: Measured) {
  const ended = nodes.filter(({ outcome }) => outcome !== null);
  const failed = ended.filter(({ outcome }) => outcome !== 'COMPLETED' && outcome !== 'CANCELLED').length;
  const times = ended.flatMap(({ durationMs }) => durationMs ?? []).sort((a, b) => a - b);
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
  return [
    {
      name: 'Calls',
      value: pageInfo.hasNextPage ? `${whole(nodes.length)}+` : whole(nodes.length),
      about: pageInfo.hasNextPage
        ? 'the figures are of the latest ones'
        : `${whole(nodes.length - ended.length)} running`,
    },
    {
      name: 'Failed, expired or unknown',
      value: ended.length === 0 ? '–' : percent(failed / ended.length),
      about: `${whole(failed)} of ${plural(ended.length, 'end')}`,
      isOver: failed > 0,
    },
    {
      name: 'Admission to end, p50',
      value: p50 === null ? '–' : duration(p50),
      about: `of ${plural(times.length, 'end')}`,
    },
    {
      name: 'Admission to end, p99',
      value: p99 === null ? '–' : duration(p99),
      about: `of ${plural(times.length, 'end')}`,
    },
  ];
}

/**
 * Returns the smallest of the sorted values that this fraction of them does not exceed; null if there are no values.
 */
const quantile = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;

type AdvertisersProps = {
  readonly name: string;
  readonly found: readonly AdvertisedSample[];
  readonly isSample: boolean;
};

/** The maximum number of advertising clients that the page lists. */
const LISTED = 40;

function Advertisers({ name, found, isSample }: AdvertisersProps) {
  const { values, hrefWith } = useUrlState();
  const versions = [...Map.groupBy(found, ({ action }) => action.version ?? '')].sort(
    (a, b) => b[1].length - a[1].length,
  );
  const [version, clients] = versions.find(([own]) => own === values['version']) ?? versions[0] ?? ['', []];
  const [first] = clients;
  if (!first)
    return (
      <Section title="Advertised by">
        <p class="soft">
          No connected client advertises this action{isSample ? ' in the part that was read' : ''}. A call needs a
          client that does, or one that connects in time.
        </p>
      </Section>
    );
  return (
    <div class="case">
      <Section
        title="Advertised by"
        about={`${plural(found.length, 'client')}${isSample ? ' in the part that was read' : ''}`}
        side={isAdmin.value && <a href={queryPath('clients', { action: name })}>All of these clients</a>}
      >
        {versions.length > 1 && (
          <Views
            label="Versions"
            views={versions.map(([own, some]) => ({
              name: own === '' ? 'No version' : `Version ${own}`,
              href: hrefWith({ version: own }),
              isCurrent: own === version,
              count: whole(some.length),
            }))}
          />
        )}
        <Table
          caption={`Clients that advertise ${name}`}
          columns={[
            nameColumn('Client', 'c-1', (row: AdvertisedSample) => <ClientLink {...row} />),
            labelled('Version', 'nw c-3', ({ action }: AdvertisedSample) => action.version ?? <Nil why="none" />),
            quietColumn('Invoke', 'r c-2', ({ userId, clientId }: AdvertisedSample) => (
              <InvokeAction userId={userId} clientId={clientId} action={name} />
            )),
          ]}
          rows={clients.slice(0, LISTED)}
          keyOf={({ userId, clientId }) => `${userId}/${clientId}`}
          look="mid"
        />
        {clients.length > LISTED && <p class="quiet">{`${LISTED} of ${plural(clients.length, 'client')}.`}</p>}
      </Section>
      <aside aria-label="Beside the clients">
        <WhoMayCall userId={first.userId} action={name} />
        <Takes name={name} client={first} />
      </aside>
    </div>
  );
}

type Details = NonNullable<gql.ActionDetailsQuery['connection']>['actions']['items'][number];

function Takes({ name, client: { userId, clientId } }: { readonly name: string; readonly client: AdvertisedSample }) {
  const query = useQuery(gql.ActionDetailsDocument, { userId, clientId });
  const details = query.data?.connection?.actions.items.find((action) => action.name === name);
  return (
    <Section title="What it takes" about={`as ${clientId} says`}>
      <ErrorNotice query={query} what="what it takes" />
      {details && (
        <>
          {details.description !== null && (
            <p class="soft">
              <Prose text={details.description} />
            </p>
          )}
          <Facts rows={factsOf(details)} />
          {details.schema === null ? (
            <p class="soft">It advertises no schema: any JSON value may be sent.</p>
          ) : (
            <pre class="pre pre-wrap payload-text" tabIndex={0} aria-label={`Schema of ${name}`}>
              {JSON.stringify(details.schema, null, 2)}
            </pre>
          )}
        </>
      )}
    </Section>
  );
}

function factsOf({ version, checksArguments, guards, effects }: Details) {
  const said = [
    effects?.readOnly && 'changes nothing',
    effects?.destructive && 'may delete or overwrite',
    effects?.idempotent && 'may be repeated',
    effects?.openWorld && 'reaches beyond the client',
  ].filter((text) => typeof text === 'string');
  const before = [guards?.approval && 'a person approves each call', guards?.lease && 'one call at a time'].filter(
    (text) => typeof text === 'string',
  );
  return [
    ['Version', version ?? <Nil why="none" />] as const,
    checksArguments === null
      ? null
      : (['Arguments', checksArguments ? 'The client checks them' : 'The client does not check them'] as const),
    said.length === 0 ? null : (['Effects', said.join(', ')] as const),
    before.length === 0 ? null : (['Before it runs', before.join(', ')] as const),
  ];
}
