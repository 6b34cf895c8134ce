/** Shows the pages of the relay itself: its nodes, with a button that drains each, and its admission scopes. */
import { useMemo, useRef, useState } from 'preact/hooks';
import {
  CapacityDocument,
  DrainNodeDocument,
  NodesDocument,
  type CapacityQuery,
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
} from '../ui/page.tsx';
import { List, Table, pageOf, type Column } from '../ui/table.tsx';
import { Ago, OUTCOME_ORDER, OutcomeMark, Since, StateMark, Time } from '../ui/values.tsx';
import {
  age,
  amount,
  bytes as sizeText,
  capitalWord,
  clock,
  nameClass,
  plainWord,
  plural,
  whole,
} from '../ui/words.ts';
import { DisconnectAll } from './bulk.tsx';
import { SCOPE_COLUMNS, VersionsNotice, oldestQueued, outcomeCounter } from './columns.tsx';

type NodeRow = NodesQuery['delivery']['nodes']['nodes'][number];

/** The pause before the page is read again, in milliseconds. Nodes report every two seconds. */
const EVERY_MS = 2_000;

export function NodesPage() {
  const query = useQuery(NodesDocument, {}, { everyMs: EVERY_MS });
  const [draining, setDraining] = useState<NodeRow | null>(null);
  const list = query.data?.delivery.nodes;
  const columns = useColumns(list?.nodes ?? []);
  const silent = list?.nodes.filter(({ stale }) => stale) ?? [];
  const mode =
    viewer.value?.mode === 'SHARED' ? 'over one store, shared mode' : 'direct mode: everything is in this process';
  return (
    <>
      <PageHead title="Nodes" acts={<PauseButton isPolled />}>
        {list ? `${plural(list.nodes.length, 'node')} reported lately, ${mode}.` : ''}
      </PageHead>
      <ErrorNotice query={query} what="nodes" />
      <CutNotice completeness={list?.completeness} named={silent.map(({ nodeId }) => nodeId)} />
      <DrainNotice />
      {list && <VersionsNotice nodes={list.nodes} />}
      {silent.map((node) => (
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
            columns={[...columns, actsColumn(setDraining, query.again)]}
            rows={list.nodes}
            keyOf={({ nodeId }) => nodeId}
            isRecorded={({ stale }) => stale}
            look="mid"
          />
          <p class="quiet">
            Waiting: callers that wait there. Running: calls that wait for one of its clients or run there. Loop delay:
            how late its event loop ran since its last report; 99 % of the time it was less. The bars show the last
            minute. Background: it takes what other nodes hand it, and ends calls whose deadline is over.
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

const columnsOf = (delays: Delays): readonly Column<NodeRow>[] => [
  { head: 'Node', class: 'c-1', names: true, cell: ({ nodeId }) => nodeId },
  { head: 'State', class: 'nw c-2 c-end', cell: (node) => <NodeMark node={node} /> },
  { head: 'Version', class: 'nw c-3', label: 'version', cell: ({ version }) => version ?? <NotReported /> },
  { head: 'Up for', class: 'nw c-4 c-end', label: 'up for', cell: (node) => upFor(node) },
  { head: 'Clients', class: 'r c-5', label: 'clients', cell: ({ links }) => whole(links) },
  { head: 'Waiting', class: 'r c-6 c-end', label: 'waiting', cell: (node) => whole(node.connectionWaiters) },
  { head: 'Running', class: 'r c-7', label: 'running', cell: (node) => whole(node.unfinishedCommands) },
  { head: 'Memory', class: 'r c-8 c-end', label: 'memory', cell: (node) => memoryOf(node) },
  {
    head: 'Loop delay',
    class: 'r c-8',
    label: 'loop delay',
    cell: (node) => (
      <span class="with-spark">
        <DelayBars reports={delays.get(node.nodeId) ?? []} />
        {delayOf(node)}
      </span>
    ),
  },
  { head: 'Background', class: 'nw c-8 c-end', label: 'background', cell: (node) => workOf(node) },
];

/** Returns the columns of facts. One draws the delays that were reported while the page was shown. */
function useColumns(nodes: readonly NodeRow[]): readonly Column<NodeRow>[] {
  const kept = useRef<Delays>(new Map());
  const delays = useMemo(() => (kept.current = withReports(kept.current, nodes)), [nodes]);
  return columnsOf(delays);
}

/** An event loop that is later than this, in milliseconds, is shown as late. */
const LATE_MS = 100;

function NotReported() {
  return <Nil why="the node’s version does not report it" />;
}

function upFor({ startedAt, updatedAt, stale }: NodeRow) {
  if (startedAt === null) return <NotReported />;
  return stale ? age(Date.parse(updatedAt) - Date.parse(startedAt)) : <Since at={startedAt} />;
}

function memoryOf({ memoryBytes }: NodeRow) {
  return memoryBytes === null ? <NotReported /> : sizeText(memoryBytes);
}

/** A report of the delay of an event loop. `at`: epoch milliseconds. */
type DelayReport = { readonly at: number; readonly ms: number };
/** The reports of each node within DELAYS_MS, by its id, oldest first. */
type Delays = ReadonlyMap<string, readonly DelayReport[]>;

/** The number of reports that are drawn: those of one minute. */
const DELAYS_SHOWN = 30;
const DELAYS_MS = DELAYS_SHOWN * EVERY_MS;
/** The delay in milliseconds for which a bar has the full height, unless a longer one is drawn. */
const DELAY_TOP_MS = 20;

function withReports(was: Delays, nodes: readonly NodeRow[]): Delays {
  return new Map(
    nodes.map(({ nodeId, updatedAt, eventLoopDelayMs: ms }) => {
      const at = Date.parse(updatedAt);
      const earlier = (was.get(nodeId) ?? []).filter((report) => report.at > at - DELAYS_MS && report.at < at);
      return [nodeId, ms === null ? earlier : [...earlier, { at, ms }]];
    }),
  );
}

/** Draws a bar for each report of one node, the latest at the right. Takes the same room before there is any. */
function DelayBars({ reports }: { readonly reports: readonly DelayReport[] }) {
  const last = reports.at(-1);
  if (!last) return <span class="spark" />;
  const highest = Math.max(...reports.map(({ ms }) => ms));
  const top = Math.max(DELAY_TOP_MS, highest);
  return (
    <svg class="spark" role="img" viewBox={`0 0 ${2 * DELAYS_SHOWN} 16`}>
      <title>{`Loop delay of the last minute: at most ${amount(highest)} ms`}</title>
      {reports.map(({ at, ms }) => {
        const [slot, height] = [Math.round((last.at - at) / EVERY_MS), Math.max(1, (ms / top) * 16)];
        return <rect key={at} x={2 * (DELAYS_SHOWN - 1 - slot)} y={16 - height} width="1.5" height={height} />;
      })}
    </svg>
  );
}

/** Shows how late the event loop ran. It says nothing of a silent node, whose last report is old. */
function delayOf({ eventLoopDelayMs: ms, stale }: NodeRow) {
  if (stale) return <Nil why="not known while the node is silent" />;
  if (ms === null) return <Nil why="not measured yet, or the node’s version does not report it" />;
  return <span class={ms > LATE_MS ? 'over' : undefined}>{amount(ms)} ms</span>;
}

/** Says whether the node reads its mailbox and ends overdue commands. */
function workOf({ stale, mailboxListenerAlive, reconciliationAlive }: NodeRow) {
  if (stale) return 'Not known';
  if (mailboxListenerAlive && reconciliationAlive) return 'Runs';
  if (!mailboxListenerAlive && !reconciliationAlive) return <span class="over">Stands still</span>;
  return <span class="over">{mailboxListenerAlive ? 'Ends no overdue calls' : 'Takes no work of other nodes'}</span>;
}

function actsColumn(onDrain: (node: NodeRow) => void, onDone: () => void): Column<NodeRow> {
  return {
    head: 'Acts',
    quietHead: true,
    class: 'r c-9 c-wide',
    cell: (node) => (
      <span class="row-acts">
        {node.draining && !node.stale && <span class="soft">{plural(node.links, 'link')} to close</span>}
        <DisconnectAll
          nodeId={node.nodeId}
          isUseful={node.links > 0 && !node.draining && !node.stale}
          onDone={onDone}
        />
        {!node.draining && !node.stale && (
          <button class="btn btn-s" type="button" aria-label={`Drain ${node.nodeId}…`} onClick={() => onDrain(node)}>
            Drain…
          </button>
        )}
      </span>
    ),
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
  return (
    <StateMark shape={node.draining ? 'drain' : 'up'}>
      <span>{node.draining ? 'Draining' : 'Reporting'}</span>
      <span class="quiet">
        <Ago at={node.updatedAt} />
      </span>
    </StateMark>
  );
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

type CounterGroup = {
  readonly title: string;
  /** The words for each counter of the group, by its name without a case. They are listed in this order. */
  readonly words: Readonly<Record<string, string>>;
};

/** The groups of counters. Counters that no group names are listed in the last one, in the order of their names. */
const GROUPS: readonly CounterGroup[] = [
  { title: 'How calls ended', words: { commands_ended: '' } },
  {
    title: 'Calls',
    words: {
      commands_admitted: 'Admitted',
      commands_refused: 'Refused',
      commands_dispatched: 'Dispatched to a client',
      commands_acknowledged: 'Acknowledged by the client',
      commands_recovered: 'Queued again after a link or a node was lost',
      late_results: 'Late results, kept as evidence',
      fenced_results: 'Results of another instance, refused',
      replies_dropped: 'Answers for which no caller waited any more',
    },
  },
  {
    title: 'Links',
    words: {
      links_opened: 'Links opened',
      links_closed: 'Client links closed',
      frames_refused: 'Frames refused',
      node_losses: 'Losses of this node',
    },
  },
  {
    title: 'Requests',
    words: {
      requests: 'Requests',
      tokens_refused: 'Tokens refused',
      inbound_limited: 'Users slowed or refused for sending too much',
      errors_masked: 'Unexpected errors',
    },
  },
  {
    title: 'Messages',
    words: {
      messages_ingested: 'Messages received',
      context_reports: 'Reports of contexts and windows',
      payloads_spilled: 'Payloads written to the spill store',
      payloads_unstored: 'Payloads that could not be written',
    },
  },
  {
    title: 'Bounds reached',
    words: {
      sockets_refused: 'Connections refused or closed to make room',
      unread_cut: 'Connections closed: too much unread',
      sockets_cut: 'Connections closed: nothing was read',
      results_given_up: 'Results dropped early',
      records_reduced: 'Records reduced for lack of room',
      ids_forgotten: 'Command ids forgotten early',
      dedup_marks_evicted: 'Deduplication marks dropped early',
      audit_failures: 'Audit rows that could not be written',
    },
  },
  { title: 'Others', words: {} },
];

/** The words for the cases of counters that would not be understood in plain words. */
const CASES: Readonly<Record<string, string>> = {
  builtin: 'console and fixed pages',
  events: 'event streams',
  gateway: 'links',
  graphql: 'GraphQL',
  none: 'no such address',
  preflight: 'CORS preflights',
  rest: 'REST',
};

/** Splits the name of a counter into its own name and its case, such as `requests` and `graphql`. */
function partsOf(name: string): readonly [counter: string, label: string | undefined] {
  const at = name.indexOf(':');
  return at < 0 ? [name, undefined] : [name.slice(0, at), name.slice(at + 1)];
}

/** The number of nodes up to which two tables of counters fit beside each other. */
const FEW_NODES = 2;

function NodeCounters({ nodes }: { readonly nodes: readonly NodeRow[] }) {
  const names = [...new Set(nodes.flatMap(({ counters }) => counters.map(({ name }) => name)))];
  const groups = GROUPS.map((group, at) => ({ title: group.title, names: namesOf(names, group, at) }));
  if (names.length === 0) return null;
  return (
    <Section title="Counted since each node started" about="ends are those that the node recorded">
      <div class={nodes.length <= FEW_NODES ? 'counter-groups narrow' : 'counter-groups'}>
        {groups.map(
          ({ title, names: own }) => own.length > 0 && <CounterTable key={title} {...{ title, nodes }} names={own} />,
        )}
      </div>
    </Section>
  );
}

/** Returns the counters of a group in its order. The last group has those that no other one names. */
function namesOf(names: readonly string[], { words }: CounterGroup, at: number): readonly string[] {
  if (at === GROUPS.length - 1)
    return names.filter((name) => !GROUPS.some((group) => Object.hasOwn(group.words, partsOf(name)[0]))).sort();
  if (at === 0) return OUTCOME_ORDER.map(outcomeCounter).filter((name) => names.includes(name));
  return Object.keys(words).flatMap((word) => names.filter((name) => partsOf(name)[0] === word).sort());
}

type CounterTableProps = {
  readonly title: string;
  readonly names: readonly string[];
  readonly nodes: readonly NodeRow[];
};

function CounterTable({ title, names, nodes }: CounterTableProps) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, by node`}>
      <table class="tbl tbl-s">
        <thead>
          <tr>
            <th scope="col">{title}</th>
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
  );
}

function Figure({ node, name }: { readonly node: NodeRow; readonly name: string }) {
  const value = node.counters.find((counter) => counter.name === name)?.value ?? 0;
  return <Count value={value} text={whole(value)} />;
}

function nameText(name: string) {
  const outcome = OUTCOME_ORDER.find((candidate) => outcomeCounter(candidate) === name);
  if (outcome) return <OutcomeMark outcome={outcome} />;
  const [counter, label] = partsOf(name);
  const text = GROUPS.find(({ words }) => Object.hasOwn(words, counter))?.words[counter] ?? capitalWord(counter);
  return label === undefined ? text : `${text}: ${CASES[label] ?? plainWord(label)}`;
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
    { name: 'Overdue', value: whole(dueCommands), about: 'past a deadline, not yet ended', isOver: dueCommands > 0 },
    oldestQueued({ sampleSize, sampledOldestQueuedAgeMs }),
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
