/** Shows the page of one call: what is proven about it, since when, and by which evidence. */
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import {
  CallPageDocument,
  CallUpdatesDocument,
  type CallPageQuery,
  type CancelState,
} from '../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery, type Query } from '../api/query.ts';
import { pagePath } from '../base.ts';
import { openInvoke } from '../invoke/open.tsx';
import { commandLine, curlLine } from '../invoke/lines.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { LiveNotice } from '../shell/live-notice.tsx';
import { Empty, Loading } from '../ui/empty.tsx';
import { CopyAction, FullId } from '../ui/id.tsx';
import { useLatest } from '../ui/latest.ts';
import { clientHref, userHref } from '../ui/links.tsx';
import { CutNotice, ErrorNotice, Information } from '../ui/notice.tsx';
import { PageHead } from '../ui/page.tsx';
import { CallAside } from './aside.tsx';
import { CANCEL_WORDS, CancelDialog } from './cancel.tsx';
import { CallHead } from './head.tsx';
import { CallMessages } from './messages.tsx';
import { CallProgress } from './progress.tsx';
import { CallTimeline } from './timeline.tsx';
import type { CallDetails } from './types.ts';

export function CallPage() {
  const { user = '', client = '', command = '' } = useRoute().params;
  const viewerId = viewer.value?.userId ?? 'admin';
  // The key differs for each call and viewer, because the last known answer, an open dialog and its input belong to one
  // call and one viewer.
  return (
    <OneCall key={`${viewerId} ${user}/${client}/${command}`} userId={user} clientId={client} commandId={command} />
  );
}

type CallIds = { readonly userId: string; readonly clientId: string; readonly commandId: string };

function OneCall(ids: CallIds) {
  const { userId, clientId, commandId } = ids;
  const query = useQuery(CallPageDocument, { userId, clientId, commandId });
  const found = useLatest(query.data?.command);
  const isGone = query.data !== null && !query.data.command;
  const [progress, setProgress] = useState<readonly unknown[]>([]);
  useLive(
    CallUpdatesDocument,
    { userId, clientId, commandId },
    {
      skip: isGone || !found || found.outcome !== null,
      onData: ({ commandUpdates: update }) => {
        if (update.progress !== null) setProgress((was) => [...was.slice(-(PROGRESS_MAX - 1)), update.progress]);
        else if (update.stage !== found?.delivery?.stage) query.changed();
        return update.missed;
      },
      onStale: query.again,
      onEnd: query.again,
    },
  );
  return (
    <>
      {!found && <PageHead title="Call" crumbs={crumbsOf(userId, clientId)} />}
      {found && <Case call={found} {...{ isGone, query, progress }} />}
      {!found && <ErrorNotice query={query} what="this call" />}
      {query.data === null && query.loading && <Loading what="this call" />}
      {query.data && !found && <NoRecord user={userId} />}
    </>
  );
}

/** The number of progress reports that the page keeps. */
const PROGRESS_MAX = 50;

const GONE = 'The relay keeps the record of this call no longer. This is what was last known.';

type CaseProps = {
  readonly call: CallDetails;
  /** Whether the relay no longer has a record of the call. `call` is then the last known answer. */
  readonly isGone: boolean;
  readonly query: Query<CallPageQuery>;
  readonly progress: readonly unknown[];
};

function Case({ call, isGone, query, progress }: CaseProps) {
  const [cancelling, setCancelling] = useState(false);
  const [cancelled, setCancelled] = useState<CancelState | null>(null);
  const { userId, clientId, action, commandId } = call;
  return (
    <>
      <PageHead
        title={action}
        crumbs={crumbsOf(userId, clientId)}
        acts={
          <>
            <CopyAction text={() => curlLine({ userId, clientId, action })}>Copy as curl</CopyAction>
            <CopyAction text={() => commandLine({ userId, clientId, action })}>Copy as command line</CopyAction>
            {call.outcome === null ? (
              <button class="btn btn-danger" type="button" onClick={() => setCancelling(true)}>
                Cancel…
              </button>
            ) : (
              <button class="btn" type="button" onClick={() => openInvoke({ userId, clientId, action })}>
                Call again…
              </button>
            )}
          </>
        }
      >
        <FullId id={commandId} what="command id" />
      </PageHead>
      <ErrorNotice query={query} what="this call" />
      <LiveNotice />
      {isGone && <Information>{GONE}</Information>}
      {cancelled && <Information>{CANCEL_WORDS[cancelled]}</Information>}
      <CutNotice completeness={call.history.completeness} />
      <CallHead call={call} />
      <div class="case">
        <div>
          <CallTimeline call={call} />
          <CallProgress reports={progress} />
          <CallMessages call={call} />
        </div>
        <CallAside call={call} />
      </div>
      {cancelling && (
        <CancelDialog
          call={call}
          onClose={() => setCancelling(false)}
          onDone={(state) => (setCancelled(state), query.again())}
        />
      )}
    </>
  );
}

function NoRecord({ user }: { readonly user: string }) {
  return (
    <Empty
      title="No record of this command"
      acts={
        <a class="btn" href={pagePath(`history?user=${encodeURIComponent(user)}`)}>
          Look in the history of {user}
        </a>
      }
    >
      <p>
        It was never admitted, {isAdmin.value ? '' : 'it is not yours, '}or it ended more than an hour ago. Retained
        messages may still name it.
      </p>
    </Empty>
  );
}

function crumbsOf(userId: string, clientId: string): readonly { readonly href: string; readonly text: string }[] {
  const client = { href: clientHref({ userId, clientId }), text: clientId };
  if (!isAdmin.value) return [{ href: pagePath('clients'), text: 'Clients' }, client];
  return [{ href: pagePath('calls'), text: 'Calls' }, { href: userHref(userId), text: userId }, client];
}
