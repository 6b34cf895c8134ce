/** Shows the panel beside the timeline of a call: its record, the present state of its client, and its waiters. */
import { nodesHref, clientHref } from '../ui/links.tsx';
import { isSilent } from '../shell/facts.tsx';
import { Nil } from '../ui/empty.tsx';
import { FullId, ShortId } from '../ui/id.tsx';
import { Facts, Section } from '../ui/page.tsx';
import { ConnectionMark } from '../ui/status.tsx';
import { Since, Time } from '../ui/time.tsx';
import { WAIT_FOR } from '../ui/words.ts';
import type { CallDetails } from './types.ts';

export function CallAside({ call }: { readonly call: CallDetails }) {
  return (
    <aside aria-label="Beside the call">
      {call.outcome === 'OUTCOME_UNKNOWN' && <BeforeAgain call={call} />}
      <Record call={call} />
      <ClientNow call={call} />
      <Waiters call={call} />
    </aside>
  );
}

function BeforeAgain({ call }: { readonly call: CallDetails }) {
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

function Record({ call }: { readonly call: CallDetails }) {
  const { delivery } = call;
  if (!delivery) return null;
  const trace = call.history.nodes.find(({ traceId }) => traceId !== null)?.traceId ?? null;
  return (
    <Section title="Record">
      <Facts
        rows={[
          ['Client', <a href={clientHref(call)}>{`${call.userId} / ${call.clientId}`}</a>],
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
              <a href={nodesHref()}>{delivery.nodeId}</a>
            ),
          ],
          delivery.recoveredFromNodeId === null ? null : ['Recovered from', delivery.recoveredFromNodeId],
          ['Deadline', <Time at={delivery.deadline} exact />],
          delivery.reason === null ? null : ['Reason', <code>{delivery.reason}</code>],
          trace === null ? null : ['Trace', <FullId id={trace} what="trace id" />],
        ]}
      />
    </Section>
  );
}

function ClientNow({ call }: { readonly call: CallDetails }) {
  const { connection, clientId, delivery } = call;
  return (
    <Section title={`${clientId} now`} about="need not be as it was then">
      {connection ? (
        <Facts
          rows={[
            ['Status', <ConnectionMark status={connection.status} recorded={isSilent(connection.nodeId)} />],
            ['Node', connection.nodeId],
            [
              'Instance',
              connection.instanceId === delivery?.boundInstanceId ? 'the same' : <ShortId id={connection.instanceId} />,
            ],
            ['In flight', `${connection.inFlight}, ${connection.queued === 0 ? 'none' : connection.queued} queued`],
          ]}
        />
      ) : (
        <p class="soft">Not connected.</p>
      )}
    </Section>
  );
}

function Waiters({ call }: { readonly call: CallDetails }) {
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
