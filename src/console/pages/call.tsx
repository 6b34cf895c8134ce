/** Shows the page of one call: what is proven about it and by which evidence, its progress, and a way to cancel it. */
import type { ComponentChildren } from 'preact';
import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import {
  CallPageDocument,
  CallUpdatesDocument,
  CancelCallDocument,
  type CallPageQuery,
  type CancelState,
} from '../../../generated/console.ts';
import { reasonText } from '../../protocol/visible-text.ts';
import { useLive, useQuery, type Query } from '../api/query.ts';
import { accepted, request } from '../api/request.ts';
import { clientHref, pagePath, queryPath, userHref } from '../base.ts';
import { commandLine, curlLine } from '../invoke/command-line.ts';
import { openInvoke } from '../invoke/open.tsx';
import { LiveNotice, NodeLink, isAdmin, isSilent, traceHref, viewer } from '../shell/facts.tsx';
import { Menu, ReasonDialog } from '../ui/dialogs.tsx';
import {
  CutNotice,
  Empty,
  ErrorNotice,
  Facts,
  Information,
  Loading,
  Nil,
  PageHead,
  Section,
  type Crumbs,
} from '../ui/page.tsx';
import { useLatest } from '../ui/table.tsx';
import {
  CommandMark,
  ConnectionMark,
  CopyAction,
  FullId,
  OutcomeMark,
  ShortId,
  Since,
  StageMark,
  Time,
  Until,
} from '../ui/values.tsx';
import { EXECUTION, WAIT_FOR, day, duration, plural } from '../ui/words.ts';
import { caseAsJson, caseAsMarkdown, traceIdOf, CallTimeline, type CallDetails } from './timeline.tsx';
import { ActionName } from './columns.tsx';
import { MessagesTable, ResultReveal } from './history.tsx';

type Part = { readonly call: CallDetails };

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
  useLive(CallUpdatesDocument, {
    variables: { userId, clientId, commandId },
    skip: isGone || !found || found.outcome !== null,
    onData: ({ commandUpdates: update }) => {
      if (update.progress !== null) setProgress((was) => [...was.slice(-(PROGRESS_MAX - 1)), update.progress]);
      else if (update.stage !== found?.delivery?.stage) query.changed();
      return update.missed;
    },
    onStale: query.again,
    onEnd: query.again,
  });
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

const COPIED =
  'The line was copied without the arguments, which this page does not read. Write them in place of ARGUMENTS, as JSON: “Reveal…” below shows them, for a reason. As it is, the line runs nothing.';

const GONE = 'The relay no longer has a record of this call. This is what was last known.';

type CaseProps = Part & {
  /** Whether the relay no longer has a record of the call. `call` is then the last known answer. */
  readonly isGone: boolean;
  readonly query: Query<CallPageQuery>;
  readonly progress: readonly unknown[];
};

function Case({ call, isGone, query, progress }: CaseProps) {
  const [cancelling, setCancelling] = useState(false);
  const [cancelled, setCancelled] = useState<CancelState | null>(null);
  const [copied, setCopied] = useState(false);
  const { userId, clientId, action, commandId } = call;
  return (
    <>
      <PageHead
        title={action}
        crumbs={crumbsOf(userId, clientId)}
        acts={
          <>
            <CopyMenu call={call} asOf={query.asOf} onLine={() => setCopied(true)} />
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
      {copied && <Information>{COPIED}</Information>}
      {cancelled && <Information>{CANCEL_WORDS[cancelled]}</Information>}
      <CutNotice completeness={call.history.completeness} />
      <CallHead call={call} />
      <div class="case">
        <div>
          <CallTimeline call={call} />
          <CallProgress reports={progress} />
          <CallMessages call={call} />
        </div>
        <aside aria-label="Beside the call">
          {call.outcome === 'OUTCOME_UNKNOWN' && <BeforeAgain call={call} />}
          <Record call={call} />
          <ClientNow call={call} />
          <Waiters call={call} />
        </aside>
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

type CopyProps = Part & {
  /** When the relay answered, in epoch milliseconds. */
  readonly asOf: number | null;
  /** Called when a line was copied that runs the action. */
  readonly onLine: () => void;
};

/** Shows the menu that copies the case, or a line that runs the action of the call. */
function CopyMenu({ call, asOf, onLine }: CopyProps) {
  const { userId, clientId, action } = call;
  const trace = traceIdOf(call);
  const file = () => ({
    call,
    address: location.href,
    asOf: asOf ?? Date.now(),
    traceHref: trace && traceHref(trace),
  });
  const lineOf = (write: typeof curlLine): string => {
    onLine();
    return write({ userId, clientId, action });
  };
  return (
    <Menu text="Copy">
      <CopyAction text={() => caseAsMarkdown(file())}>Copy as Markdown for the ticket</CopyAction>
      <CopyAction text={() => caseAsJson(file())}>Copy as JSON</CopyAction>
      <CopyAction text={() => lineOf(curlLine)}>Copy as curl</CopyAction>
      <CopyAction text={() => lineOf(commandLine)}>Copy as command line</CopyAction>
    </Menu>
  );
}

function NoRecord({ user }: { readonly user: string }) {
  return (
    <Empty
      title="No record of this command"
      acts={
        <a class="btn" href={queryPath('history', { user })}>
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

function crumbsOf(userId: string, clientId: string): Crumbs {
  const client = { href: clientHref({ userId, clientId }), text: clientId };
  if (!isAdmin.value) return [{ href: pagePath('clients'), text: 'Clients' }, client];
  return [{ href: pagePath('calls'), text: 'Calls' }, { href: userHref(userId), text: userId }, client];
}

// Shows what is beside the timeline of a call: its record, the present state of its client, and its waiters.

function BeforeAgain({ call }: Part) {
  return (
    <Section title="Before you call again" class="next">
      <ol>
        <li class="soft">A new call has a new id, so {call.action} can run twice.</li>
        {(call.delivery?.lateResults ?? 0) > 0 && (
          <li class="soft">The late result says what the client believes. Revealing it is written to the audit log.</li>
        )}
      </ol>
    </Section>
  );
}

function Record({ call }: Part) {
  const { delivery } = call;
  if (!delivery) return null;
  const trace = traceIdOf(call);
  return (
    <Section title="Record">
      <Facts
        rows={[
          ['Client', <a href={clientHref(call)}>{`${call.userId} / ${call.clientId}`}</a>],
          ['Action', <ActionName name={call.action} />],
          delivery.contextId === null ? null : ['Context', <FullId id={delivery.contextId} what="context id" />],
          [
            'Instance',
            delivery.boundInstanceId === null ? (
              <Nil why="none: it was never written" />
            ) : (
              <ShortId id={delivery.boundInstanceId} />
            ),
          ],
          ['Scope', delivery.scopeId],
          [
            'Node',
            delivery.nodeId === null ? (
              <Nil why="none: its client was not connected" />
            ) : (
              <NodeLink nodeId={delivery.nodeId} />
            ),
          ],
          delivery.recoveredFromNodeId === null ? null : ['Recovered from', delivery.recoveredFromNodeId],
          ['Deadline', <Time at={delivery.deadline} exact />],
          trace === null ? null : ['Trace', <Trace id={trace} />],
        ]}
      />
    </Section>
  );
}

/** Shows the id of a trace, and a link to it if the relay names where traces are shown. */
function Trace({ id }: { readonly id: string }) {
  const href = traceHref(id);
  return (
    <>
      <FullId id={id} what="trace id" />
      {href !== null && (
        <div>
          <a class="btn btn-s" href={href} target="_blank" rel="noreferrer">
            Open the trace
          </a>
        </div>
      )}
    </>
  );
}

function ClientNow({ call }: Part) {
  const { connection, clientId, delivery } = call;
  return (
    <Section title={`${clientId} now`} about="it may have changed since the call">
      {connection ? (
        <Facts
          rows={[
            ['Status', <ConnectionMark status={connection.status} recorded={isSilent(connection.nodeId)} />],
            ['Node', connection.nodeId],
            [
              'Instance',
              connection.instanceId === delivery?.boundInstanceId ? 'the same' : <ShortId id={connection.instanceId} />,
            ],
            ['In flight', `${connection.inFlight}, and ${connection.queued === 0 ? 'none' : connection.queued} queued`],
          ]}
        />
      ) : (
        <p class="soft">Not connected.</p>
      )}
    </Section>
  );
}

function Waiters({ call }: Part) {
  return (
    <Section title="Waiters">
      {call.waiters.length === 0 ? (
        <p class="soft">None: no caller waits for this call.</p>
      ) : (
        <Facts
          rows={call.waiters.map((waiter) => [
            waiter.callerNodeId,
            <>
              for {WAIT_FOR[waiter.waitFor]}, since <Since at={waiter.createdAt} />
            </>,
          ])}
        />
      )}
    </Section>
  );
}

function CallHead({ call }: Part) {
  const { delivery, outcome } = call;
  const isExpired = outcome === 'EXPIRED';
  // If the relay ended the call, the sentence says why. Its error would only repeat that.
  const isEndedByRelay = isExpired || (outcome === 'OUTCOME_UNKNOWN' && delivery?.reason != null);
  return (
    <div class="case-head">
      <div>
        <p>
          {delivery ? (
            <CommandMark stage={delivery.stage} outcome={outcome} />
          ) : (
            outcome && <OutcomeMark outcome={outcome} />
          )}
        </p>
        <p>{sentenceOf(call)}</p>
        {call.error && !isEndedByRelay && (
          <p class="soft">
            {call.error.message} <code>{call.error.code}</code>
          </p>
        )}
      </div>
      {delivery && (
        <Facts
          rows={[
            ['Last proven', <StageMark stage={delivery.lastProvenStage} />],
            isExpired ? null : ['Execution', EXECUTION[delivery.execution]],
            delivery.terminalAt === null
              ? ['Ends', <Until at={delivery.deadline} />]
              : [
                  'Ended',
                  <>
                    <Time at={delivery.terminalAt} exact />, after{' '}
                    {duration(Date.parse(delivery.terminalAt) - Date.parse(delivery.admittedAt))}
                  </>,
                ],
            delivery.lateResults > 0
              ? ['Since then', `${plural(delivery.lateResults, 'late result')}, kept as evidence`]
              : null,
          ]}
        />
      )}
    </div>
  );
}

function sentenceOf({ outcome, delivery, clientId }: CallDetails): ComponentChildren {
  if (!delivery) return 'Its record is no longer kept. What remains is in the retained messages below.';
  switch (outcome) {
    case 'COMPLETED':
      return `${clientId} reported that it completed.`;
    case 'FAILED':
      return delivery.execution === 'REFUSED_BY_CLIENT'
        ? `${clientId} refused it and did not run it.`
        : `${clientId} reported that it failed.`;
    case 'CANCELLED':
      return delivery.dispatchedAt === null
        ? 'It was cancelled before anything was written to the client.'
        : 'It was cancelled after it was written to the client, which reported that it stopped.';
    case 'EXPIRED':
      return `${delivery.reason ? `${reasonText(delivery.reason)}. ` : ''}Nothing was written to a client, so it did not run.`;
    case 'OUTCOME_UNKNOWN':
      return (
        <>
          The relay began to write this command to {clientId}
          {delivery.dispatchedAt && (
            <>
              {' '}
              at <Time at={delivery.dispatchedAt} exact />
            </>
          )}
          . {delivery.reason ? `${reasonText(delivery.reason)}.` : 'Then it had no answer.'}{' '}
          <strong>It may have run.</strong> Nothing after the last proven stage is known.
        </>
      );
    default:
      return RUNNING[delivery.stage](clientId);
  }
}

const RUNNING = {
  ADMITTED: (client: string) => `It is on record and waits for ${client} to connect. Nothing was written.`,
  QUEUED: (client: string) => `It is queued for the link of ${client}. Nothing was written.`,
  DISPATCHED: (client: string) =>
    `The relay began to write it to ${client}. That proves neither receipt nor execution.`,
  ACKNOWLEDGED: (client: string) => `${client} confirmed that it received it. That does not prove that it ran.`,
  TERMINAL: () => 'It ended.',
};

function CallMessages({ call }: Part) {
  const { nodes, pageInfo } = call.history;
  const first = nodes[0];
  return (
    <Section
      title="Retained messages"
      about={`${nodes.length}${pageInfo.hasNextPage ? ' and more' : ''} that name this command, oldest first${first ? `, since ${day(first.at)}` : ''}`}
    >
      <MessagesTable
        rows={nodes.map((row) => ({ ...row, userId: call.userId }))}
        caption="Retained messages of this call"
      />
      {call.outcome === 'COMPLETED' && <ResultReveal call={call} isExpired={call.resultExpired} />}
    </Section>
  );
}

// Shows the progress that the client has reported since the page was opened.

function CallProgress({ reports }: { readonly reports: readonly unknown[] }) {
  if (reports.length === 0) return null;
  return (
    <Section title="Progress" about="as the client reported it since this page was opened, newest last">
      <pre class="pre pre-wrap" tabIndex={0}>
        {reports.map((report) => JSON.stringify(report)).join('\n')}
      </pre>
    </Section>
  );
}

/** The sentence for each result of a cancellation. */
const CANCEL_WORDS: Readonly<Record<CancelState, string>> = {
  CANCELLED: 'Cancelled: it was never written to the client.',
  REQUESTED: 'The client was asked to stop it. It may have run already.',
  TOO_LATE: 'Too late to cancel: it had ended already.',
};

type CancelProps = Part & {
  readonly onClose: () => void;
  readonly onDone: (state: CancelState) => void;
};

function CancelDialog({ call, onClose, onDone }: CancelProps) {
  const { userId, clientId, commandId, action } = call;
  const cancel = async (reason: string | null): Promise<void> => {
    const { cancelCommand: answer } = await request(CancelCallDocument, {
      input: { userId, clientId, commandId, reason },
    });
    onDone(accepted(answer).state);
  };
  return (
    <ReasonDialog
      title={`Cancel ${action}`}
      hint="For the record and the client. At most 256 characters."
      confirm="Cancel the call"
      keep="Keep it"
      failed="It was not cancelled."
      act={cancel}
      onClose={onClose}
    >
      <p class="soft">
        If nothing was written to the client, it never will be. Otherwise the client is asked to stop, and it may have
        run already.
      </p>
    </ReasonDialog>
  );
}
