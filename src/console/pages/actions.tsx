/** Shows the page of the actions that connected clients advertise. */
import { ActionSampleDocument, ActionsOfUserDocument } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { openInvoke } from '../invoke/open.tsx';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { useKeys } from '../shell/keys.ts';
import { Sources } from '../shell/sources.tsx';
import { AsOf } from '../ui/as-of.tsx';
import { Empty, Loading } from '../ui/empty.tsx';
import { FilterBar, type Filter, NoMatch } from '../ui/filters.tsx';
import { plural } from '../ui/format.ts';
import { ErrorNotice, Information } from '../ui/notice.tsx';
import { PageHead, Pager } from '../ui/page.tsx';
import { PAGE_SIZE } from '../ui/page-size.ts';
import { Table } from '../ui/table.tsx';
import { useUrlState } from '../ui/url-state.ts';
import { ACTION_COLUMNS, groupActions } from './groups.tsx';
import type { AdvertisedSample } from './types.ts';

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
