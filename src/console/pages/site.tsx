/** Shows the page of one site, with its sessions and their grants. */
import { useRoute } from 'preact-iso';
import { SitePageDocument } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { isAdmin } from '../shell/facts.tsx';
import { AsOf } from '../ui/as-of.tsx';
import { Empty, Loading } from '../ui/empty.tsx';
import { clientHref } from '../ui/links.tsx';
import { ErrorNotice } from '../ui/notice.tsx';
import { Facts, PageHead, Section } from '../ui/page.tsx';
import { StateMark } from '../ui/status.tsx';
import { Time } from '../ui/time.tsx';
import { SiteSessions } from './sessions.tsx';
import type { SiteDetails } from './types.ts';

export function SitePage() {
  const { owner = '', site: siteId = '' } = useRoute().params;
  const query = useQuery(SitePageDocument, { owner, siteId });
  const site = query.data?.site;
  return (
    <>
      <PageHead
        title={site?.title ?? siteId}
        crumbs={[{ href: pagePath('sites'), text: 'Sites' }]}
        acts={<AsOf queries={[query]} />}
      >
        {site ? `${siteId}, of ${owner}` : ''}
      </PageHead>
      <ErrorNotice query={query} what="this site" />
      {!query.data && query.loading && <Loading what="this site" />}
      {query.data && !site && (
        <Empty title="There is no such site">
          <p>It was never registered, or its owner removed it.</p>
        </Empty>
      )}
      {site && (
        <>
          <SiteFacts site={site} owner={owner} />
          <SiteSessions site={site} canEnd={!isAdmin.value} onChange={query.again} />
        </>
      )}
    </>
  );
}

function SiteFacts({ site, owner }: { readonly site: SiteDetails; readonly owner: string }) {
  const { clientId, eventNames, actions, capabilityProfile } = site;
  return (
    <Section title="Definition">
      <Facts
        rows={[
          [
            'Host',
            <>
              {site.hostConnected ? (
                <StateMark shape="up">Connected</StateMark>
              ) : (
                <StateMark shape="down">Not connected</StateMark>
              )}{' '}
              {clientId && <a href={clientHref({ userId: owner, clientId })}>{clientId}</a>}
            </>,
          ],
          ['Mode', site.mode],
          ['Events', eventNames.length === 0 ? 'any name' : eventNames.join(', ')],
          ['Actions', capabilityProfile.actionInvocation ? actions.join(', ') || 'none' : 'viewers may invoke none'],
          ['Sharing', capabilityProfile.sharing ? 'sessions may be shared' : 'sessions may not be shared'],
          site.registeredAt === null ? null : ['Registered', <Time at={site.registeredAt} />],
        ]}
      />
    </Section>
  );
}
