/**
 * Shows the page of the relay's nodes: what each node reports and counts, and buttons that drain a node or close its
 * links.
 */
import { useMemo, useRef, useState } from 'preact/hooks';
import { DrainNodeDocument, NodesDocument, type NodesQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { accepted, request } from '../api/request.ts';
import { DrainNotice, PauseButton, SilentNotice } from '../shell/relay-notices.tsx';
import { viewer } from '../shell/facts.tsx';
import { ReasonDialog, TextField } from '../ui/dialogs.tsx';
import { CutNotice, ErrorNotice, Information, Loading, Notice } from '../ui/notices.tsx';
import { Count, Facts, Nil, PageHead, Section } from '../ui/page.tsx';
import { Table, nameColumn, column, labelled, quietColumn, type Column } from '../ui/table.tsx';
import { Ago, Since, Time } from '../ui/times.tsx';
import { Button, OUTCOME_ORDER, OutcomeMark, StateMark } from '../ui/values.tsx';
import { age, amount, bytes as sizeText, whole } from '../ui/amounts.ts';
import { clock } from '../ui/zones.ts';
import { capitalWord, plainWord, plural } from '../ui/text-format.ts';
import { DisconnectAll } from './bulk.tsx';
import { VersionsNotice, outcomeCounter } from './columns.tsx';
import { Deduplication } from './deduplication.tsx';

type NodeRow = NodesQuery['delivery']['nodes']['nodes'][number];

/** The delay before the page is read again, in milliseconds. Nodes report every two seconds. */
const EVERY_MS = 2_000;

export function NodesPage() {
  const query = useQuery(NodesDocument, {}, { everyMs: EVERY_MS });
  const [draining, setDraining] = useState<NodeRow | null>(null);
  const list = query.data?.delivery.nodes;
  const reports = useReports(list?.nodes);
  const columns = useMemo(() => columnsOf(reports), [reports]);
  const silent = list?.nodes.filter(({ stale }) => stale) ?? [];
  const mode =
    viewer.value?.mode === 'SHARED' ? 'over one store, shared mode' : 'direct mode: everything is in this process';
  return (
    <>
      <PageHead title="Nodes" acts={<PauseButton isPolled />}>
        {list ? `${plural(list.nodes.length, 'node')} reported recently, ${mode}.` : ''}
      </PageHead>
      <ErrorNotice query={query} what="nodes" />
      <CutNotice completeness={list?.completeness} named={silent.map(({ nodeId }) => nodeId)} />
      <DrainNotice />
      {list && <VersionsNotice nodes={list.nodes} />}
      {list && <PolicyNotices nodes={list.nodes} />}
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
            minute. Background: whether it takes work from other nodes and ends calls whose deadline is over.
          </p>
          <NodeCounters nodes={list.nodes} reports={reports} />
          <Deduplication />
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

const columnsOf = (reports: Reports): readonly Column<NodeRow>[] => [
  nameColumn('Node', 'c-1', ({ nodeId }) => nodeId),
  column('State', 'nw c-2 c-end', (node) => <NodeMark node={node} />),
  labelled('Version', 'nw c-3', ({ version }) => version ?? <NotReported />),
  labelled('Up for', 'nw c-4 c-end', (node) => upFor(node)),
  labelled('Clients', 'r c-5', ({ links }) => whole(links)),
  labelled('Waiting', 'r c-6 c-end', (node) => whole(node.connectionWaiters)),
  labelled('Running', 'r c-7', (node) => whole(node.unfinishedCommands)),
  labelled('Memory', 'r c-8 c-end', (node) => memoryOf(node)),
  labelled('Loop delay', 'r c-8', (node) => (
    <span class="with-spark">
      <DelayBars reports={node.stale ? [] : (reports.get(node.nodeId) ?? [])} />
      {delayOf(node)}
    </span>
  )),
  labelled('Background', 'nw c-8 c-end', (node) => workOf(node)),
];

/** Shows notices if a node does not use its changed policy file, or if nodes run different policies. */
function PolicyNotices({ nodes }: { readonly nodes: readonly NodeRow[] }) {
  const reporting = nodes.filter(({ stale, policyDigest }) => !stale && policyDigest !== null);
  const byDigest = Map.groupBy(reporting, ({ policyDigest }) => policyDigest);
  const parts = [...byDigest].map(
    ([digest, some]) => `${some.map(({ nodeId }) => nodeId).join(', ')}: ${digest ?? ''}`,
  );
  return (
    <>
      {reporting
        .filter(({ policyFault }) => policyFault !== null)
        .map(({ nodeId, policyFault, policyDigest }) => (
          <Notice key={nodeId} mark="warn" look="error" role="note">
            <b>{nodeId} does not use its changed policy file.</b> It runs the policy before it ({policyDigest}).{' '}
            {policyFault}
          </Notice>
        ))}
      {parts.length > 1 && (
        <Notice mark="warn" look="error" role="note">
          <b>The nodes run different policies.</b> {parts.join('; ')}. A call may be decided differently on each.
        </Notice>
      )}
    </>
  );
}

/** The delay of an event loop, in milliseconds, above which it is shown as late. */
const LATE_MS = 100;

function NotReported() {
  return <Nil why="the node’s version does not report it" />;
}

function upFor({ startedAt, updatedAt, stale }: NodeRow) {
  if (startedAt === null) return <NotReported />;
  return stale ? age(Date.parse(updatedAt) - Date.parse(startedAt)) : <Since at={startedAt} />;
}

const memoryOf = ({ memoryBytes }: NodeRow) => (memoryBytes === null ? <NotReported /> : sizeText(memoryBytes));

/** The reports that were read in the last MINUTE_MS, oldest first, by the id of the node. */
type Reports = ReadonlyMap<string, readonly NodeRow[]>;

const MINUTE_MS = 60_000;
/** The maximum number of delays that are drawn: those of one minute. */
const DELAYS_SHOWN = MINUTE_MS / EVERY_MS;
/** The delay in milliseconds that is drawn at full height, unless a longer one is drawn. */
const DELAY_TOP_MS = 20;

/** Collects the reports of the nodes in the last minute. Only reports read while the page was shown are included. */
function useReports(nodes: readonly NodeRow[] | undefined): Reports {
  const kept = useRef<Reports>(new Map());
  return useMemo(() => (kept.current = withReports(kept.current, nodes ?? [])), [nodes]);
}

function withReports(was: Reports, nodes: readonly NodeRow[]): Reports {
  const entries = nodes.map((node) => {
    const at = Date.parse(node.updatedAt);
    const isEarlier = (ms: number): boolean => ms > at - MINUTE_MS && ms < at;
    const earlier = (was.get(node.nodeId) ?? []).filter(({ updatedAt }) => isEarlier(Date.parse(updatedAt)));
    return [node.nodeId, [...earlier, node]] as const;
  });
  return new Map(entries);
}

/**
 * Draws a bar for the delay in each report of a node, the latest at the right. It takes the same space if there are no
 * reports.
 */
function DelayBars({ reports }: { readonly reports: readonly NodeRow[] }) {
  const delays = reports.flatMap(({ updatedAt, eventLoopDelayMs: ms }) =>
    ms === null ? [] : [{ at: Date.parse(updatedAt), ms }],
  );
  const last = delays.at(-1);
  if (!last) return <span class="spark" />;
  const highest = Math.max(...delays.map(({ ms }) => ms));
  const top = Math.max(DELAY_TOP_MS, highest);
  return (
    <svg class="spark" role="img" viewBox={`0 0 ${2 * DELAYS_SHOWN} 16`}>
      <title>{`Loop delay of the last minute: at most ${amount(highest)} ms`}</title>
      {delays.map(({ at, ms }) => {
        const [slot, height] = [Math.round((last.at - at) / EVERY_MS), Math.max(1, (ms / top) * 16)];
        return <rect key={at} x={2 * (DELAYS_SHOWN - 1 - slot)} y={16 - height} width="1.5" height={height} />;
      })}
    </svg>
  );
}

/** Shows how late the event loop ran. Shows nothing for a silent node, whose last report is old. */
function delayOf({ eventLoopDelayMs: ms, stale }: NodeRow) {
  if (stale) return <Nil why="not known while the node is silent" />;
  if (ms === null) return <Nil why="not measured yet, or the node’s version does not report it" />;
  return <span class={ms > LATE_MS ? 'over' : undefined}>{amount(ms)} ms</span>;
}

/** States whether the node reads its mailbox and ends overdue commands. */
function workOf({ stale, mailboxListenerAlive, reconciliationAlive }: NodeRow) {
  if (stale) return 'Not known';
  if (mailboxListenerAlive && reconciliationAlive) return 'Runs';
  if (!mailboxListenerAlive && !reconciliationAlive) return <span class="over">Stands still</span>;
  return <span class="over">{mailboxListenerAlive ? 'Ends no overdue calls' : 'Takes no work of other nodes'}</span>;
}

function actsColumn(onDrain: (node: NodeRow) => void, onDone: () => void): Column<NodeRow> {
  return quietColumn('Acts', 'r c-9 c-wide', (node) => (
    <span class="row-acts">
      {node.draining && !node.stale && <span class="soft">{plural(node.links, 'link')} to close</span>}
      <DisconnectAll nodeId={node.nodeId} isUseful={node.links > 0 && !node.draining && !node.stale} onDone={onDone} />
      {!node.draining && !node.stale && (
        <Button look="btn-s" text="Drain…" aria-label={`Drain ${node.nodeId}…`} onClick={() => onDrain(node)} />
      )}
    </span>
  ));
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

// The section about which data survive the end of this node's process.

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

// The tables of what each node has counted since it started.

/**
 * The label of each counter of a group, by the counter's name without a label value. Counters are listed in this order.
 */
type CounterWords = Readonly<Record<string, string>>;

/** The groups of counters. A counter that is in no group is listed in the last one, in the order of names. */
const GROUPS: readonly (readonly [title: string, words: CounterWords])[] = Object.entries({
  'How calls ended': { commands_ended: '' },
  Calls: {
    commands_admitted: 'Admitted',
    commands_refused: 'Refused',
    commands_dispatched: 'Dispatched to a client',
    commands_acknowledged: 'Acknowledged by the client',
    commands_recovered: 'Queued or written again after a link or a node was lost',
    late_results: 'Late results, kept as evidence',
    fenced_results: 'Results of another instance, refused',
    replies_dropped: 'Answers for which no caller waited any more',
  },
  Links: {
    links_opened: 'Links opened',
    links_closed: 'Client links closed',
    frames_refused: 'Frames refused',
    node_losses: 'Losses of this node',
  },
  Requests: {
    requests: 'Requests',
    tokens_refused: 'Tokens refused',
    inbound_limited: 'Users slowed or refused for sending too much',
    errors_masked: 'Unexpected errors',
  },
  Messages: {
    messages_ingested: 'Messages received',
    context_reports: 'Reports of contexts and windows',
    payloads_spilled: 'Payloads written to the spill store',
    payloads_unstored: 'Payloads that could not be written',
  },
  'Bounds reached': {
    sockets_refused: 'Connections refused or closed to make room',
    unread_cut: 'Connections closed: too much unread',
    sockets_cut: 'Connections closed: nothing was read',
    results_given_up: 'Results dropped early',
    records_reduced: 'Records reduced for lack of room',
    ids_forgotten: 'Command ids forgotten early',
    dedup_marks_evicted: 'Deduplication marks dropped early',
    audit_failures: 'Audit rows that could not be written',
  },
  Others: {},
});

/** The texts for label values of counters that people would not understand otherwise. */
const CASES: Readonly<Record<string, string>> = {
  builtin: 'console and fixed pages',
  events: 'event streams',
  gateway: 'links',
  graphql: 'GraphQL',
  none: 'no such address',
  preflight: 'CORS preflights',
  rest: 'REST',
};

/** Splits a counter's full name into its name and its label value, such as `requests` and `graphql`. */
function partsOf(name: string): readonly [counter: string, label: string | undefined] {
  const at = name.indexOf(':');
  return at < 0 ? [name, undefined] : [name.slice(0, at), name.slice(at + 1)];
}

/** The maximum number of nodes with which two tables of counters fit beside each other. */
const FEW_NODES = 2;

type CountersProps = { readonly nodes: readonly NodeRow[]; readonly reports: Reports };

function NodeCounters({ nodes, reports }: CountersProps) {
  const names = [...new Set(nodes.flatMap(({ counters }) => counters.map(({ name }) => name)))];
  const groups = GROUPS.map(([title, words], at) => ({ title, names: namesOf(names, words, at) }));
  if (names.length === 0) return null;
  return (
    <Section
      title="Counted since each node started"
      about="ends are those that the node recorded; + is what the last minute added while this page was open"
    >
      <div class={nodes.length <= FEW_NODES ? 'counter-groups narrow' : 'counter-groups'}>
        {groups.map(
          ({ title, names: own }) =>
            own.length > 0 && <CounterTable key={title} {...{ title, nodes, reports }} names={own} />,
        )}
      </div>
    </Section>
  );
}

/** Returns the counters of a group in the group's order. The last group has all counters that are in no other group. */
function namesOf(names: readonly string[], words: CounterWords, at: number): readonly string[] {
  if (at === GROUPS.length - 1)
    return names.filter((name) => !GROUPS.some(([, known]) => Object.hasOwn(known, partsOf(name)[0]))).sort();
  if (at === 0) return OUTCOME_ORDER.map(outcomeCounter).filter((name) => names.includes(name));
  return Object.keys(words).flatMap((word) => names.filter((name) => partsOf(name)[0] === word).sort());
}

type CounterTableProps = CountersProps & { readonly title: string; readonly names: readonly string[] };

function CounterTable({ title, names, nodes, reports }: CounterTableProps) {
  return (
    <Table
      caption={`${title}, by node`}
      columns={[nameColumn(title, '', nameText), ...nodes.map((node) => figureColumn(node, reports))]}
      rows={names}
      keyOf={(name) => name}
      look="figures"
    />
  );
}

function figureColumn(node: NodeRow, reports: Reports): Column<string> {
  const head = node.stale ? `${node.nodeId}, at ${clock(node.updatedAt)}` : node.nodeId;
  return column(head, node.stale ? 'r quiet' : 'r', (name) => (
    <Figure node={node} before={reports.get(node.nodeId)?.[0]} name={name} />
  ));
}

type FigureProps = {
  readonly node: NodeRow;
  /** The report of the node a minute ago. Undefined: none was read then. */
  readonly before: NodeRow | undefined;
  readonly name: string;
};

/** Shows a counter, and before it by how much it rose in the last minute. */
function Figure({ node, before = node, name }: FigureProps) {
  const value = counted(node, name);
  const rose = value - counted(before, name);
  return (
    <>
      {rose > 0 && !node.stale && <span class="quiet rise">+{whole(rose)} </span>}
      <Count value={value} text={whole(value)} />
    </>
  );
}

const counted = ({ counters }: NodeRow, name: string): number =>
  counters.find((counter) => counter.name === name)?.value ?? 0;

function nameText(name: string) {
  const outcome = OUTCOME_ORDER.find((candidate) => outcomeCounter(candidate) === name);
  if (outcome) return <OutcomeMark outcome={outcome} />;
  const [counter, label] = partsOf(name);
  const text = GROUPS.find(([, words]) => Object.hasOwn(words, counter))?.[1][counter] ?? capitalWord(counter);
  return label === undefined ? text : `${text}: ${CASES[label] ?? plainWord(label)}`;
}

/** How long a draining node waits for running commands to end, in milliseconds. */
const WITHIN_MS = 10_000;

type DrainProps = {
  readonly node: NodeRow;
  /** The number of other nodes that take new work; undefined while it is unknown. */
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
