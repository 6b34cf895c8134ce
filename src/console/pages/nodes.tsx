/**
 * Shows the pages of the relay itself: its nodes, with a button that drains each; its admission scopes; and the
 * statistics of deduplication.
 */
import { useState } from 'preact/hooks';
import {
  CapacityDocument,
  DedupDocument,
  DrainNodeDocument,
  NodesDocument,
  type CapacityQuery,
  type DedupQuery,
  type NodesQuery,
} from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { accepted, request } from '../api/request.ts';
import { callHref } from '../base.ts';
import { DrainNotice, PauseButton, SilentNotice, viewer } from '../shell/facts.tsx';
import { ReasonDialog, TextField } from '../ui/dialogs.tsx';
import { useUrlState } from '../ui/filters.tsx';
import {
  AsOf,
  Count,
  CutNotice,
  Empty,
  ErrorNotice,
  Facts,
  Information,
  Loading,
  Nil,
  Notice,
  PageHead,
  Readouts,
  Section,
  Views,
} from '../ui/page.tsx';
import { List, Table, pageOf, type Column } from '../ui/table.tsx';
import { Ago, OUTCOME_ORDER, OutcomeMark, Since, StateMark, Time } from '../ui/values.tsx';
import { age, bytes as sizeText, clock, nameClass, percent, plural, sentenceCase, whole } from '../ui/words.ts';
import { SCOPE_COLUMNS, outcomeCounter, queueFigures } from './columns.tsx';

type NodeRow = NodesQuery['delivery']['nodes']['nodes'][number];

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
      <DrainNotice />
      {list?.nodes
        .filter(({ stale }) => stale)
        .map((node) => (
          <SilentNotice key={node.nodeId} node={node}>
            It may have stopped, or it may not reach the store. The others take over what it held: queued commands wait
            for their clients, dispatched ones may still be answered.
          </SilentNotice>
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
          {query.data?.server.durability && <Durability {...query.data.server.durability} />}
        </>
      )}
      {draining && (
        <DrainDialog
          node={draining}
          others={list?.nodes.filter((node) => node.nodeId !== draining.nodeId && !node.stale && !node.draining).length}
          onClose={() => setDraining(null)}
          onDone={query.again}
        />
      )}
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

// Shows what outlives the process of this node.

type DurabilityFacts = NonNullable<NodesQuery['server']['durability']>;

const KEPT: Readonly<Record<DurabilityFacts['kind'], string>> = {
  MEMORY: 'Nothing: everything is in the memory of this process',
  DIRECTORY: 'Commands, outcomes, history, sites and audit, in the data directory of this node',
  STORE: 'Everything that is in the store that all nodes share',
};

function Durability({ kind, sync, bytes, full, snapshotAt, away }: DurabilityFacts) {
  const isDirectory = kind === 'DIRECTORY';
  return (
    <Section title="What a restart keeps">
      {full && (
        <Notice mark="warn" look="error">
          <b>The disk of the data directory is full.</b> Nothing new is admitted. What runs can still end.
        </Notice>
      )}
      {away?.lost && (
        <Information>
          <b>Records were missing when this node started.</b> Commands that had not ended then ended with an unknown
          outcome.
        </Information>
      )}
      <Facts
        rows={[
          ['Kept', KEPT[kind]],
          sync === null ? null : ['On the disk', syncText(sync)],
          bytes === null ? null : ['Size', sizeText(bytes)],
          isDirectory ? ['Last snapshot', snapshotAt === null ? 'none yet' : <Ago at={snapshotAt} />] : null,
          away && [
            'Before this start',
            <>
              the node {away.clean ? 'was stopped' : 'ended unexpectedly'} at <Time at={away.since} exact />
            </>,
          ],
        ]}
      />
    </Section>
  );
}

function syncText(sync: string): string {
  if (sync === 'always') return 'before each answer';
  return sync === 'off' ? 'when the system writes it' : `within ${sync}`;
}

// Shows what each node has counted since it started.

/**
 * The words for counters that are not outcomes, in the order in which they are listed. Other counters follow in the
 * order of their names.
 */
const WORDS: Readonly<Record<string, string>> = {
  commands_admitted: 'Admitted',
  commands_dispatched: 'Dispatched',
  commands_acknowledged: 'Acknowledged',
  late_results: 'Late results',
  commands_recovered: 'Requeued after a loss',
  fenced_results: 'Results of another instance, refused',
  replies_dropped: 'Replies without a waiter',
};

function NodeCounters({ nodes }: { readonly nodes: readonly NodeRow[] }) {
  const names = namesOf(nodes);
  if (names.length === 0) return null;
  return (
    <Section title="Counted since each node started" about="outcomes are of commands whose end that node recorded">
      <div class="scroll" tabIndex={0} role="region" aria-label="Counters by node">
        <table class="tbl tbl-s tbl-fit">
          <thead>
            <tr>
              <th scope="col">Counter</th>
              {nodes.map(({ nodeId, stale, updatedAt }) => (
                <th key={nodeId} scope="col" class="r">
                  {nodeId}
                  {stale && `, at ${clock(updatedAt)}`}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row">{nameText(name)}</th>
                {nodes.map((node) => (
                  <td key={node.nodeId} class={node.stale ? 'r quiet' : 'r'}>
                    <Figure node={node} name={name} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Figure({ node, name }: { readonly node: NodeRow; readonly name: string }) {
  const value = node.counters.find((counter) => counter.name === name)?.value ?? 0;
  return <Count value={value} text={whole(value)} />;
}

/** Returns the names of the counters: outcomes first, then the known counters, then the others. */
function namesOf(nodes: readonly NodeRow[]): readonly string[] {
  const present = new Set(nodes.flatMap(({ counters }) => counters.map(({ name }) => name)));
  const ordered = [...OUTCOME_ORDER.map((outcome) => outcomeCounter(outcome)), ...Object.keys(WORDS)];
  const others = [...present].filter((name) => !ordered.includes(name)).sort();
  return [...ordered.filter((name) => present.has(name)), ...others];
}

function nameText(name: string) {
  const outcome = OUTCOME_ORDER.find((candidate) => outcomeCounter(candidate) === name);
  if (outcome) return <OutcomeMark outcome={outcome} />;
  const text = WORDS[name] ?? name.replaceAll('_', ' ').replace(':', ': ');
  return sentenceCase(text);
}

/** How long the node waits for running commands to end, in milliseconds. */
const WITHIN_MS = 10_000;

type DrainProps = {
  readonly node: NodeRow;
  /** The number of other nodes that take work. Undefined while it is not known. */
  readonly others: number | undefined;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

function DrainDialog({ node, others, onClose, onDone }: DrainProps) {
  const { nodeId, links, unfinishedCommands } = node;
  const [typed, setTyped] = useState('');
  const drain = async (reason: string | null): Promise<void> => {
    accepted((await request(DrainNodeDocument, { nodeId, withinMs: WITHIN_MS, reason })).drainNode);
    onDone();
  };
  return (
    <ReasonDialog
      title={`Drain ${nodeId}`}
      hint="For the audit log. At most 256 characters."
      confirm={`Drain ${nodeId}`}
      busyText={`Draining ${nodeId}…`}
      keep="Keep it"
      isReady={typed === nodeId}
      failed="It was not drained."
      act={drain}
      onClose={onClose}
      fields={
        <TextField
          label={`Type ${nodeId} to drain it`}
          id="drain-name"
          spellcheck={false}
          autofocus
          value={typed}
          onText={setTyped}
        />
      }
    >
      <p class="soft">
        It admits nothing more, gives commands in flight {WITHIN_MS / 1000} seconds, and closes its{' '}
        {plural(links, 'link')}. {others === 0 ? '' : 'Clients connect to another node. '}
        {unfinishedCommands === 0
          ? 'No command is unfinished.'
          : `${plural(unfinishedCommands, 'command')} unfinished; none is cancelled by this.`}
      </p>
      {others === 0 && (
        <p>
          <b>This is the only node.</b> Clients and callers find no other one: the service stops until a new process
          starts.
        </p>
      )}
    </ReasonDialog>
  );
}

// Shows the page of admission scopes: how many commands each holds, and how many it may hold.

type ScopeRow = CapacityQuery['delivery']['tenants']['nodes'][number];
type Summary = CapacityQuery['delivery']['summary'];

const CAPACITY_COLUMNS: readonly Column<ScopeRow>[] = [
  ...SCOPE_COLUMNS,
  {
    head: 'Earliest deadline',
    class: 'nw c-4',
    label: 'earliest deadline',
    cell: ({ oldestDeadline }) => (oldestDeadline === null ? <Nil why="none" /> : <Time at={oldestDeadline} exact />),
  },
  { head: 'Held by', class: 'c-5 c-wide', label: 'held by', cell: ({ holders }) => <Holders holders={holders} /> },
];

export function CapacityPage() {
  const { values } = useUrlState();
  const query = useQuery(CapacityDocument, pageOf(values));
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
        notices={query.data && <Readouts figures={figuresOf(query.data.delivery.summary)} />}
        empty={
          <Empty title="No scope holds a reservation" mark="all">
            <p>Every admitted command has ended, so every scope has all its room.</p>
          </Empty>
        }
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

function figuresOf({ trackedCommands, dueCommands, sampleSize, sampledOldestQueuedAgeMs }: Summary) {
  return [
    { name: 'Commands with a record', value: whole(trackedCommands), about: 'running, and ended within the last hour' },
    ...queueFigures({ dueCommands, sampleSize, sampledOldestQueuedAgeMs }),
  ];
}

function Holders({ holders }: { readonly holders: ScopeRow['holders'] }) {
  const [first] = holders;
  if (!first) return null;
  const more = holders.length - 1;
  return (
    <a href={callHref(first)} class={nameClass(first.userId, first.clientId)}>
      {first.userId} / {first.clientId}
      {more > 0 && ` and ${more} more`}
    </a>
  );
}

// Shows what the relay received more than once: statistics of ingestion, not of execution.

/** The time windows that the page offers, and the one that it begins with. Seconds. */
const WINDOWS = [60, 300, 900, 3600];
const WINDOW = 300;

export function DedupPage() {
  const { values, hrefWith } = useUrlState();
  const windowSeconds = WINDOWS.find((seconds) => String(seconds) === values['window']) ?? WINDOW;
  const query = useQuery(DedupDocument, { windowSeconds });
  const dedup = query.data?.dedup;
  return (
    <>
      <PageHead title="Deduplication" acts={<AsOf queries={[query]} />}>
        Messages that the relay received more than once. This says nothing of what clients executed.
      </PageHead>
      <Views
        label="Window"
        views={WINDOWS.map((seconds) => ({
          name: `Last ${seconds === 3600 ? 'hour' : `${seconds / 60} min`}`,
          href: hrefWith({ window: seconds === WINDOW ? null : String(seconds) }),
          isCurrent: seconds === windowSeconds,
        }))}
      />
      <ErrorNotice query={query} what="deduplication" />
      {!dedup && query.loading && <Loading what="deduplication" />}
      {dedup && <DedupDetails {...dedup} />}
    </>
  );
}

function DedupDetails({ stats, backend }: DedupQuery['dedup']) {
  const { seen, unique, duplicates, liveKeys } = stats;
  return (
    <>
      {!stats.exact && (
        <Information>
          <b>These figures are estimates.</b> This store counts the keys that it still holds, and older ones are gone.
        </Information>
      )}
      <Readouts
        figures={[
          { name: 'Received', value: whole(seen), about: 'messages in this window' },
          { name: 'New', value: whole(unique), about: 'seen for the first time' },
          {
            name: 'Repeated',
            value: whole(duplicates),
            about: seen === 0 ? 'none received' : percent(duplicates / seen),
          },
          liveKeys === null
            ? { name: 'Remembered now', value: '–', about: 'not known cheaply' }
            : { name: 'Remembered now', value: whole(liveKeys), about: 'message ids' },
        ]}
      />
      <Section title="Deduplicator">
        <Facts
          rows={[
            ['Implementation', backend.implementation],
            ['Remembers for', age(backend.ttlSeconds * 1000)],
            backend.namespace === null ? null : ['Namespace', backend.namespace],
            ['Counts by', age(stats.grainSeconds * 1000)],
          ]}
        />
      </Section>
    </>
  );
}
