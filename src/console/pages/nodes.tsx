/**
 * Shows the nodes of the deployment: whether they report, what they hold and have counted, and a button that drains
 * each.
 */
import { useState } from 'preact/hooks';
import { NodesDocument } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { viewer } from '../shell/facts.tsx';
import { PauseButton } from '../shell/live-notice.tsx';
import { Loading } from '../ui/empty.tsx';
import { age, plural, whole } from '../ui/format.ts';
import { CutNotice, ErrorNotice } from '../ui/notice.tsx';
import { PageHead } from '../ui/page.tsx';
import { Shape } from '../ui/shape.tsx';
import { StateMark } from '../ui/status.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { now } from '../api/visible.ts';
import { Ago, Since } from '../ui/time.tsx';
import { NodeCounters } from './counters.tsx';
import { DrainDialog } from './drain.tsx';
import type { NodeRow } from './types.ts';

/** The pause before the page is read again, in milliseconds. Nodes report every two seconds. */
const EVERY_MS = 2_000;

export function NodesPage() {
  const query = useQuery(NodesDocument, {}, { everyMs: EVERY_MS });
  const [draining, setDraining] = useState<NodeRow | null>(null);
  const list = query.data?.delivery.nodes;
  const mode =
    viewer.value?.mode === 'SHARED' ? 'over one store, shared mode' : 'direct mode: everything is in this process';
  return (
    <>
      <PageHead title="Nodes" acts={<PauseButton />}>
        {list ? `${plural(list.nodes.length, 'node')} reported lately, ${mode}.` : ''}
      </PageHead>
      <ErrorNotice query={query} what="nodes" />
      <CutNotice completeness={list?.completeness} />
      {list?.nodes
        .filter(({ stale }) => stale)
        .map((node) => (
          <Silent key={node.nodeId} node={node} />
        ))}
      {!list && query.loading && <Loading what="nodes" />}
      {list && (
        <>
          <Table
            caption="Nodes in order of name"
            columns={[...COLUMNS, actsColumn(setDraining)]}
            rows={list.nodes}
            keyOf={({ nodeId }) => nodeId}
            isRecorded={({ stale }) => stale}
            look="mid"
          />
          <p class="quiet">
            Mailbox: the queue through which other nodes hand it work. Reconciliation: its pass, once a second, that
            ends commands whose deadline is over. Waiters: callers that wait on it for an answer.
          </p>
          <NodeCounters nodes={list.nodes} />
        </>
      )}
      {draining && <DrainDialog node={draining} onClose={() => setDraining(null)} onDone={query.again} />}
    </>
  );
}

const COLUMNS: readonly Column<NodeRow>[] = [
  { head: 'Node', class: 'c-1', names: true, cell: ({ nodeId }) => nodeId },
  { head: 'State', class: 'c-2 c-end', cell: (node) => <NodeMark node={node} /> },
  { head: 'Last report', class: 'nw c-3', label: 'last report', cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
  { head: 'Links', class: 'r c-4 c-end', label: 'links', cell: ({ links }) => whole(links) },
  { head: 'Waiters', class: 'r c-5', label: 'waiters', cell: (node) => whole(node.connectionWaiters) },
  { head: 'Unfinished', class: 'r c-6 c-end', label: 'unfinished', cell: (node) => whole(node.unfinishedCommands) },
  { head: 'Mailbox', class: 'nw c-7', label: 'mailbox', cell: (node) => aliveText(node, node.mailboxListenerAlive) },
  {
    head: 'Reconciliation',
    class: 'nw c-8 c-end',
    label: 'reconciliation',
    cell: (node) => aliveText(node, node.reconciliationAlive),
  },
];

function actsColumn(onDrain: (node: NodeRow) => void): Column<NodeRow> {
  return {
    head: 'Acts',
    quietHead: true,
    class: 'r c-9 c-wide',
    cell: (node) => {
      if (node.stale) return null;
      if (node.draining) return <span class="soft">{plural(node.links, 'link')} to close</span>;
      return (
        <button class="btn btn-s" type="button" aria-label={`Drain ${node.nodeId}…`} onClick={() => onDrain(node)}>
          Drain…
        </button>
      );
    },
  };
}

function NodeMark({ node }: { readonly node: NodeRow }) {
  if (node.stale)
    return (
      <StateMark shape="recorded">
        <span>
          Silent for <Since at={node.updatedAt} />
        </span>
      </StateMark>
    );
  return node.draining ? <StateMark shape="drain">Draining</StateMark> : <StateMark shape="up">Reporting</StateMark>;
}

function aliveText({ stale }: NodeRow, alive: boolean) {
  if (stale) return 'Not known';
  return alive ? 'Alive' : <span class="over">Not alive</span>;
}

function Silent({ node }: { readonly node: NodeRow }) {
  return (
    <div class="notice notice-silent" role="note">
      <Shape name="recorded" />
      <p>
        <b>
          {node.nodeId} has been silent for {age(now.value - Date.parse(node.updatedAt))}.
        </b>{' '}
        It may have stopped, or it may not reach the store. The others take over what it held: queued commands wait for
        their clients, dispatched ones may still be answered.
      </p>
    </div>
  );
}
