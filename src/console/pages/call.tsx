/**
 * Shows the page of one call: what is proven about it and by which evidence, its progress, and a button to cancel it.
 */
import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery, type Query } from '../api/query.ts';
import { accepted, request } from '../api/request.ts';
import { clientHref, pagePath, queryPath, userHref } from '../base.ts';
import { commandLine, curlLine } from '../invoke/command-line.ts';
import { openInvoke } from '../invoke/open.tsx';
import { LiveNotice, NodeLink } from '../shell/relay-notices.tsx';
import { isAdmin, isSilent, traceHref, viewer } from '../shell/facts.tsx';
import { Menu, ReasonDialog } from '../ui/dialogs.tsx';
import { CutNotice, Empty, ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { ActButton, Facts, Nil, PageHead, Section, type Crumbs } from '../ui/page.tsx';
import { useLatest } from '../ui/live-rows.tsx';
import { Since, Time, Until } from '../ui/times.tsx';
import {
  LinkButton,
  CommandMark,
  ConnectionMark,
  CopyAction,
  FullId,
  OutcomeMark,
  ShortId,
  StageMark,
} from '../ui/values.tsx';
import { duration } from '../ui/amounts.ts';
import { day } from '../ui/zones.ts';
import { WAIT_FOR, plural } from '../ui/text-format.ts';
import { caseAsJson, caseAsMarkdown, traceIdOf } from './case-file.ts';
import { CallTimeline } from './timeline.tsx';
import type { CallDetails } from './timeline-entries.ts';
import { ActionName } from './columns.tsx';
import { MessagesTable, ResultReveal } from './history.tsx';
import { callSentence, executionText } from './states.ts';
import { CallProgress, ProgressBar, useProgress, type ReportedCall } from './progress.tsx';

type Part = { readonly call: CallDetails };

export function CallPage() {
  const { user = '', client = '', command = '' } = useRoute().params;
  const viewerId = viewer.value?.userId ?? 'admin';
  // The component's state (the last known answer, an open dialog and its input) belongs to one call and one viewer. The
  // key creates a new component for another one.
  return (
    <OneCall key={`${viewerId} ${user}/${client}/${command}`} userId={user} clientId={client} commandId={command} />
  );
}

type CallIds = { readonly userId: string; readonly clientId: string; readonly commandId: string };

function OneCall(ids: CallIds) {
  const { userId, clientId, commandId } = ids;
  const query = useQuery(gql.CallPageDocument, { userId, clientId, commandId });
  const found = useLatest(query.data?.command);
  const isGone = query.data !== null && !query.data.command;
  const progress = useProgress(ids, {
    skip: isGone || !found || found.outcome !== null,
    stage: found?.delivery?.stage ?? null,
    query,
  });
  return (
    <>
      {!found && <PageHead title="Call" crumbs={crumbsOf(userId, clientId)} />}
      {found && <Case call={found} isGone={isGone} query={query} progress={progress} />}
      {!found && <ErrorNotice query={query} what="this call" />}
      {query.data === null && query.loading && <Loading what="this call" />}
      {query.data && !found && <NoRecord user={userId} />}
    </>
  );
}

const COPIED =
  'The line was copied without the arguments, which this page does not read. Write them in place of ARGUMENTS, as JSON: “Reveal…” below shows them, for a reason. As it is, the line runs nothing.';

const GONE = 'The relay no longer has a record of this call. This is what was last known.';

type CaseProps = Part & {
  /** Whether the relay no longer has a record of the call. If so, `call` is the last known answer. */
  readonly isGone: boolean;
  readonly query: Query<gql.CallPageQuery>;
  readonly progress: ReportedCall;
};

function Case({ call, isGone, query, progress }: CaseProps) {
  const [cancelling, setCancelling] = useState(false);
  const [cancelled, setCancelled] = useState<gql.CancelState | null>(null);
  const [copied, setCopied] = useState(false);
  const { userId, clientId, action, commandId } = call;
  return (
    <>
      <PageHead
        title={action}
        crumbs={crumbsOf(userId, clientId)}
        acts={[
          <CopyMenu call={call} asOf={query.asOf} onLine={() => setCopied(true)} />,
          call.outcome === null ? (
            <ActButton class="btn-danger" onClick={() => setCancelling(true)}>
              Cancel…
            </ActButton>
          ) : (
            <ActButton onClick={() => openInvoke({ userId, clientId, action })}>Call again…</ActButton>
          ),
        ]}
      >
        <FullId id={commandId} what="command id" />
      </PageHead>
      <ErrorNotice query={query} what="this call" />
      <LiveNotice />
      {isGone && <Information>{GONE}</Information>}
      {copied && <Information>{COPIED}</Information>}
      {cancelled && <Information>{CANCEL_WORDS[cancelled]}</Information>}
      <CutNotice completeness={call.history.completeness} />
      <CallHead call={call} progress={progress} />
      <div class="case">
        <div>
          <CallTimeline call={call} />
          <CallProgress call={call} progress={progress} />
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
  /** The time of the relay's answer, in epoch milliseconds. */
  readonly asOf: number | null;
  /** Called when the user has copied a command line that runs the action. */
  readonly onLine: () => void;
};

function CopyMenu({ call, asOf, onLine }: CopyProps) {
  const { userId, clientId, action } = call;
  const trace = traceIdOf(call);
  const file = () => ({ call, address: location.href, asOf: asOf ?? Date.now(), traceHref: trace && traceHref(trace) });
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
      acts={<LinkButton text={`Look in the history of ${user}`} href={queryPath('history', { user })} />}
    >
      It was never admitted, {isAdmin.value ? '' : 'it is not yours, '}or it ended more than an hour ago. Retained
      messages may still name it.
    </Empty>
  );
}

function crumbsOf(userId: string, clientId: string): Crumbs {
  const client = { href: clientHref({ userId, clientId }), text: clientId };
  if (!isAdmin.value) return [{ href: pagePath('clients'), text: 'Clients' }, client];
  return [{ href: pagePath('calls'), text: 'Calls' }, { href: userHref(userId), text: userId }, client];
}

// The facts beside the timeline of a call: its record, the present state of its client, and the callers that wait.

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
          delivery.queuedAt === null ? ['Connects by', <Time at={delivery.connectDeadline} exact />] : null,
          ['Deadline', <Time at={delivery.deadline} exact />],
          trace === null ? null : ['Trace', <Trace id={trace} />],
        ]}
      />
    </Section>
  );
}

function Trace({ id }: { readonly id: string }) {
  const href = traceHref(id);
  return (
    <>
      <FullId id={id} what="trace id" />
      {href !== null && (
        <div>
          <LinkButton look="btn-s" text="Open the trace" href={href} target="_blank" rel="noreferrer" />
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

function lastFact({ queuedAt, connectDeadline, deadline, clientId }: NonNullable<CallDetails['delivery']>) {
  if (queuedAt !== null) return ['Ends', <Until at={deadline} />] as const;
  const text = (
    <>
      <Time at={connectDeadline} />, unless {clientId} connects
    </>
  );
  return ['Expires', text] as const;
}

function CallHead({ call, progress }: Part & { readonly progress: ReportedCall }) {
  const { delivery, outcome } = call;
  const isExpired = outcome === 'EXPIRED';
  // If the relay ended the call, the sentence already states the reason, which the error would only repeat.
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
        <p>
          {callSentence({ ...call, reports: progress.count })}
          {outcome === 'OUTCOME_UNKNOWN' && <strong> It may have run.</strong>}
        </p>
        <ProgressBar progress={progress} />
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
            ['Execution', executionText(delivery.execution, outcome !== null)],
            delivery.terminalAt === null
              ? lastFact(delivery)
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

const CANCEL_WORDS: Readonly<Record<gql.CancelState, string>> = {
  CANCELLED: 'Cancelled: it was never written to the client.',
  REQUESTED: 'The client was asked to stop it. It may have run already.',
  TOO_LATE: 'Too late to cancel: it had ended already.',
};

type CancelProps = Part & { readonly onClose: () => void; readonly onDone: (state: gql.CancelState) => void };

function CancelDialog({ call, onClose, onDone }: CancelProps) {
  const { userId, clientId, commandId, action } = call;
  const cancel = async (reason: string | null): Promise<void> => {
    const { cancelCommand: answer } = await request(gql.CancelCallDocument, {
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
