/**
 * Shows the nodes of the deployment: whether they report, what they hold and have counted, and a button that drains
 * each.
 */
import { useState } from 'preact/hooks';
import { CapacityDocument, DrainNodeDocument, NodesDocument, type CapacityQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { errorOf, now, request, type RequestError } from '../api/request.ts';
import { PauseButton, viewer } from '../shell/facts.tsx';
import { Dialog } from '../ui/dialogs.tsx';
import { useUrlState } from '../ui/filters.tsx';
import {
  ActError,
  AsOf,
  CutNotice,
  Empty,
  ErrorNotice,
  Loading,
  Nil,
  PageHead,
  Section,
  callHref,
} from '../ui/page.tsx';
import { List, PAGE_SIZE, Table, type Column } from '../ui/table.tsx';
import { Ago, Shape, Since, StateMark, Time } from '../ui/values.tsx';
import { age, plural, whole } from '../ui/words.ts';
import { NodeCounters, SCOPE_COLUMNS, type NodeRow } from './counters.tsx';

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

// Shows the dialog that drains a node after the operator has typed its name.

/** How long the node waits for running commands to end, in milliseconds. */
const WITHIN_MS = 10_000;

type DrainProps = { readonly node: NodeRow; readonly onClose: () => void; readonly onDone: () => void };

function DrainDialog({ node, onClose, onDone }: DrainProps) {
  const { nodeId, links, unfinishedCommands } = node;
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<RequestError | null>(null);
  const [busy, setBusy] = useState(false);
  const ready = typed === nodeId && !busy;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    request(DrainNodeDocument, { nodeId, withinMs: WITHIN_MS }).then(
      () => (onClose(), onDone()),
      (cause: unknown) => {
        setError(errorOf(cause));
        setBusy(false);
      },
    );
  };
  return (
    <Dialog title={`Drain ${nodeId}`} onClose={onClose}>
      <form onSubmit={submit}>
        <p class="soft">
          It admits nothing more, gives commands in flight {WITHIN_MS / 1000} seconds, and closes its{' '}
          {plural(links, 'link')}. Clients connect to another node. {unfinishedText(unfinishedCommands)}
        </p>
        {error && (
          <ActError title="It was not drained." code={error.code}>
            {error.message}
          </ActError>
        )}
        <div class="field">
          <label for="drain-name">Type {nodeId} to drain it</label>
          <input
            class="in"
            id="drain-name"
            autocomplete="off"
            spellcheck={false}
            autofocus
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
        <div class="dialog-acts">
          <button class="btn" type="button" onClick={onClose}>
            Keep it
          </button>
          <button class="btn btn-danger" type="submit" aria-disabled={!ready}>
            {busy ? `Draining ${nodeId}…` : `Drain ${nodeId}`}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function unfinishedText(count: number): string {
  return count === 0
    ? 'No command is unfinished.'
    : `${plural(count, 'command')} unfinished; none is cancelled by this.`;
}

// Shows the page of admission scopes: how many commands each holds, and how many it may hold.

type ScopeRow = CapacityQuery['delivery']['tenants']['nodes'][number];
type Summary = CapacityQuery['delivery']['summary'];

const CAPACITY_COLUMNS: readonly Column<ScopeRow>[] = [
  ...SCOPE_COLUMNS,
  {
    head: 'Earliest deadline',
    class: 'nw',
    cell: ({ oldestDeadline }) => (oldestDeadline === null ? <Nil why="none" /> : <Time at={oldestDeadline} exact />),
  },
  { head: 'Held by', class: 'fit', cell: ({ holders }) => <Holders holders={holders} /> },
];

export function CapacityPage() {
  const { values } = useUrlState();
  const query = useQuery(CapacityDocument, { first: PAGE_SIZE, after: values['after'] ?? null });
  const list = query.data?.delivery.tenants;
  return (
    <>
      <PageHead title="Capacity" acts={<AsOf queries={[query]} />}>
        What each admission scope holds now: a user, or a group of users in the policy file, whose live commands count
        against one limit. It says that commands were admitted, not that anything runs.
      </PageHead>
      <List
        one="scope"
        many="admission scopes"
        query={query}
        list={list}
        held="What this node holds is shown"
        notices={query.data && <SummaryFigures summary={query.data.delivery.summary} />}
        about={`${plural(list?.nodes.length ?? 0, 'scope')} on this page.`}
        empty={<NoScopes />}
      >
        <Section title="Scopes" about="held now, of what each may hold at once">
          <Table
            caption="Admission scopes"
            columns={CAPACITY_COLUMNS}
            rows={list?.nodes ?? []}
            keyOf={({ scopeId }) => scopeId}
            look="small"
          />
        </Section>
      </List>
    </>
  );
}

function NoScopes() {
  return (
    <Empty title="No scope holds a reservation" mark="all">
      <p>Every admitted command has ended, so every scope has all its room.</p>
    </Empty>
  );
}

function SummaryFigures({ summary }: { readonly summary: Summary }) {
  const { trackedCommands, dueCommands, sampleSize, sampledOldestQueuedAgeMs } = summary;
  return (
    <dl class="readouts">
      <div>
        <dt>Commands with a record</dt>
        <dd>{whole(trackedCommands)}</dd>
        <dd class="sub">running, and ended within the last hour</dd>
      </div>
      <div>
        <dt>Due</dt>
        <dd class={dueCommands > 0 ? 'over' : undefined}>{whole(dueCommands)}</dd>
        <dd class="sub">past a deadline, not yet ended</dd>
      </div>
      <div>
        <dt>Oldest queued</dt>
        <dd>{sampledOldestQueuedAgeMs === null ? '–' : age(sampledOldestQueuedAgeMs)}</dd>
        <dd class="sub">of {plural(sampleSize, 'command')} sampled</dd>
      </div>
    </dl>
  );
}

function Holders({ holders }: { readonly holders: ScopeRow['holders'] }) {
  const [first] = holders;
  if (!first) return null;
  const more = holders.length - 1;
  return (
    <a href={callHref(first)}>
      {first.userId} / {first.clientId}
      {more > 0 && ` and ${more} more`}
    </a>
  );
}
