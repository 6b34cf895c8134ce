/** Shows the overview: whether calls get through now, and what needs a person's attention. */
import { OverviewDocument, OverviewSeriesDocument } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { openInvoke } from '../invoke/open.tsx';
import { SCOPE_COLUMNS, shareOf } from '../nodes/scopes.tsx';
import { useKeys } from '../shell/keys.ts';
import { PauseButton } from '../shell/live-notice.tsx';
import { Sources } from '../shell/sources.tsx';
import { Loading } from '../ui/empty.tsx';
import { callHref } from '../ui/links.tsx';
import { ErrorNotice } from '../ui/notice.tsx';
import { PageHead, Section } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { WAIT_COLUMNS } from '../waits/columns.tsx';
import { Ends } from './ends.tsx';
import { OverviewPlots } from './plots.tsx';
import { RangeBar, useRange } from './range.tsx';
import { Readouts } from './readouts.tsx';
import { SERIES_NAMES } from './series.ts';
import type { OverviewData } from './types.ts';

/** The pause after each answer before the overview is read again, in milliseconds. */
const EVERY_MS = 3_000;
const WAITS_SHOWN = ['Stage', 'Action', 'Client', 'Waits'];
/** The number of admission scopes that the page shows: the fullest ones. */
const SCOPES_SHOWN = 5;

export function OverviewPage() {
  const query = useQuery(OverviewDocument, {}, { everyMs: EVERY_MS });
  const { span, windowSeconds, stepSeconds, everyMs } = useRange();
  const plots = useQuery(OverviewSeriesDocument, { names: SERIES_NAMES, windowSeconds, stepSeconds }, { everyMs });
  useKeys({ i: () => openInvoke({}) });
  return (
    <>
      <PageHead
        title="Overview"
        acts={
          <>
            <PauseButton />
            <button class="btn btn-primary" type="button" onClick={() => openInvoke({})}>
              Invoke an action
            </button>
          </>
        }
      />
      <ErrorNotice query={query} what="the overview" />
      <Sources completeness={query.data?.delivery.nodes.completeness} />
      {!query.data && query.loading && <Loading what="the overview" />}
      {query.data && (
        <>
          <Readouts data={query.data} />
          <Ends data={query.data} />
          <ErrorNotice query={plots} what="the time series" />
          <RangeBar />
          {plots.data && <OverviewPlots series={plots.data.series} span={span} isLoading={plots.loading} />}
          <div class="cols">
            <LongestWaits data={query.data} />
            <FullestScopes data={query.data} />
          </div>
        </>
      )}
    </>
  );
}

function LongestWaits({ data }: { readonly data: OverviewData }) {
  const { nodes } = data.pendingRpcs;
  const { count } = data.pendingRpcCount;
  return (
    <Section
      title="Who waits longest"
      about={count > 0 ? `${nodes.length} of ${count}` : undefined}
      side={<a href={pagePath('waits')}>All waits</a>}
    >
      {nodes.length === 0 ? (
        <p class="soft">No caller waits. Every caller has its answer.</p>
      ) : (
        <Table
          caption="The longest waits"
          columns={WAIT_COLUMNS.filter(({ head }) => WAITS_SHOWN.includes(head))}
          rows={nodes}
          keyOf={({ rpcId }) => rpcId}
          hrefOf={callHref}
        />
      )}
    </Section>
  );
}

function FullestScopes({ data }: { readonly data: OverviewData }) {
  const fullest = [...data.delivery.tenants.nodes]
    .sort((one, other) => shareOf(other) - shareOf(one) || other.reservedCommands - one.reservedCommands)
    .slice(0, SCOPES_SHOWN);
  return (
    <Section
      title="Fullest admission scopes"
      about="held now, of what each may hold at once"
      side={<a href={pagePath('capacity')}>All scopes</a>}
    >
      {fullest.length === 0 ? (
        <p class="soft">No scope holds a reservation: every admitted command has ended.</p>
      ) : (
        <Table
          caption="The fullest scopes"
          columns={SCOPE_COLUMNS}
          rows={fullest}
          keyOf={({ scopeId }) => scopeId}
          look="small"
        />
      )}
    </Section>
  );
}
