/** Defines table columns, figures and notices that several pages use. */
import * as gql from '../../../generated/console.ts';
import { useMemo } from 'preact/hooks';
import { reasonText } from '../../protocol/visible-text.ts';
import { useQuery } from '../api/query.ts';
import { now } from '../api/visible.ts';
import { isUnstable } from './states.ts';
import { callHref, pagePath, queryPath, relayUrl, segments } from '../base.ts';
import { LONG_WAIT_MS, isSilent, viewer } from '../shell/facts.tsx';
import { Empty, Information } from '../ui/notices.tsx';
import { ClientLink, Count, Nil } from '../ui/page.tsx';
import { Table, column, nameColumn, labelled, timeColumn, quietColumn, type Column } from '../ui/table.tsx';
import { Ago, Time, Until, When } from '../ui/times.tsx';
import { CommandMark, ConnectionMark, CopyLine, NameLink, ShortId, StageMark, StateMark } from '../ui/values.tsx';
import { age, duration, percent, whole } from '../ui/amounts.ts';
import { clock } from '../ui/zones.ts';
import { CAUSE, HEARTBEAT, WAIT_FOR, capitalWord, nameClass, plural, shortId } from '../ui/text-format.ts';

export const WAIT_COLUMNS: readonly Column<gql.WaitRowFragment>[] = [
  column('Stage', 'c-1', (row) => <StageMark stage={row.stage} />),
  nameColumn('Action', 'c-3', (row) => <ActionLink {...row} />),
  column('Client', 'nw c-4 c-end', (row) => <ClientLink {...row} />),
  labelled('Caller', 'nw c-5', ({ caller }) => <CallerLink caller={caller} page="waits" />),
  labelled('Until', 'nw c-6', (row) => WAIT_FOR[row.waitFor]),
  column('Caller on', 'nw c-off', (row) => row.callerNodeId),
  column('Client on', 'nw c-off', (row) => row.nodeId ?? 'no node'),
  column('Gives up', 'nw c-off', givesUp),
  column('Waiting', 'r nw c-2 c-end', (row) => <Waited row={row} />),
];

/**
 * Shows the latest time at which a wait ends. If the command still waits for its client, that is its connect deadline.
 */
function givesUp({ stage, timesOutAt, connectDeadline, clientId }: gql.WaitRowFragment) {
  if (stage !== 'ADMITTED' || connectDeadline > timesOutAt) return <Until at={timesOutAt} />;
  return (
    <span title={`Unless ${clientId} connects`}>
      expires <Until at={connectDeadline} />
    </span>
  );
}

type NamedCall = Parameters<typeof callHref>[0] & { readonly action: string };

export function ActionLink(row: NamedCall) {
  return <NameLink href={callHref(row)} text={row.action} />;
}

const CALLER_KINDS = {
  ADMIN: 'Administrator',
  USER: 'User',
  GRANT: 'Viewer of a site, by the grant',
  MCP: 'Agent of',
} as const;

type CallerProps = { readonly caller: gql.CallerPartFragment; readonly page: 'calls' | 'waits' };

/** Shows who called, as a link to that caller's calls or waits. */
export function CallerLink({ caller: { kind, name, program }, page }: CallerProps) {
  return (
    <a
      href={queryPath(page, { caller: name })}
      class={nameClass(name)}
      title={`${CALLER_KINDS[kind]} ${name}${program === null ? '' : ` (${program})`}: show all ${page} of this caller`}
    >
      {kind === 'GRANT' ? `grant ${shortId(name)}` : name}
    </a>
  );
}

function Waited({ row }: { readonly row: gql.WaitRowFragment }) {
  const ms = now.value - Date.parse(row.createdAt);
  return <span class={ms > LONG_WAIT_MS ? 'over' : undefined}>{age(ms)}</span>;
}

/** Shows the name of an action as a link to its page. */
export function ActionName({ name }: { readonly name: string }) {
  return <NameLink href={pagePath(`actions/${segments(name)}`)} text={name} />;
}

/** A row of a list of clients. An event about a client does not contain the number of reconnects. */
type ClientRow = gql.ClientRowFragment & { readonly reconnectsLastHour?: number };

export const CLIENT_COLUMNS: readonly Column<ClientRow>[] = [
  column('Status', 'c-1', (row) => <ClientState {...row} connection={row} />),
  nameColumn('Client', 'c-3', (row) => <ClientLink {...row} />),
  column('Type', 'c-4 c-end', (row) => capitalWord(row.clientType)),
  labelled('Node', 'nw c-5', (row) => row.nodeId),
  column('Link', 'nw c-off', (row) => (row.status === 'DISCONNECTED' ? 'Down' : HEARTBEAT[row.heartbeat])),
  labelled('Queued', 'r c-6 c-end', (row) => <Count value={row.queued} />),
  labelled('In flight', 'r c-7', (row) => <Count value={row.inFlight} />),
  column('Actions', 'r c-off', (row) => <Count value={row.actionNames.length} />),
  timeColumn('Connected', 'nw c-off', (row) => <Time at={row.connectedAt} />),
  column('Last seen', 'r nw c-2 c-end', (row) => <Ago at={row.lastSeenAt} />),
];

type Stated = {
  readonly userId: string;
  readonly clientId: string;
  readonly reconnectsLastHour?: number;
  /** The client's connection; null if it has none. */
  readonly connection: Pick<gql.ClientRowFragment, 'status' | 'nodeId' | 'disconnectCause'> | null;
};

/** Shows the state of a client's link. For an unstable client, it also states why its links end. */
export function ClientState({ userId, clientId, reconnectsLastHour = 0, connection }: Stated) {
  if (!connection) return <StateMark shape="down">Not connected</StateMark>;
  const { status, nodeId } = connection;
  const unstable = isUnstable(reconnectsLastHour);
  return (
    <>
      <ConnectionMark status={status} recorded={isSilent(nodeId)} isUnstable={unstable} />
      {unstable && status === 'CONNECTED' && <LastEnd userId={userId} clientId={clientId} before="because " />}
    </>
  );
}

type LastEndProps = { readonly userId: string; readonly clientId: string; readonly before?: string };

const LINK_ENDS: readonly gql.MessageKind[] = ['LINK_CLOSED', 'LINK_REPLACED'];

/** Shows why the last link of a client ended, from the link history of its user. */
export function LastEnd({ userId, clientId, before = '' }: LastEndProps) {
  const stream = linkStream(userId);
  const { data } = useQuery(gql.MessagesDocument, { stream, kinds: [...LINK_ENDS], order: 'NEWEST_FIRST', first: 100 });
  const cause = data?.messages.nodes.find((row) => row.clientId === clientId)?.link?.cause;
  return cause ? <small class="cause">{before + CAUSE[cause]}</small> : null;
}

/** Returns the name of the stream with the link history of a user. */
export const linkStream = (userId: string): string => `${userId}/links`;

/** Returns the name of the stream with the messages of a client's calls. */
export const clientStream = (userId: string, clientId: string): string => `${userId}/clients/${clientId}`;

export const LINK_COLUMNS: readonly Column<gql.LinkRowFragment>[] = [
  timeColumn('When', 'nw c-2 c-end', ({ at }) => <When at={at} />),
  nameColumn('What', 'c-1', whatOf),
  labelled('Open for', 'r nw c-5', openFor),
  labelled('Node', 'nw c-6', ({ link }) => link?.nodeId),
  column('Instance', 'nw c-off', ({ instanceId }) => instanceId && <ShortId id={instanceId} />),
];

export function whatOf({ kind, link, instanceId, error }: gql.LinkRowFragment) {
  const cause = link?.cause;
  if (kind === 'RELAY_AWAY') return error?.message ?? 'The relay was stopped and started again';
  if (kind === 'LINK_REPLACED') return 'Replaced by a newer link';
  if (kind === 'LINK_CLOSED') return `Closed${cause ? `: ${CAUSE[cause]}` : ''}`;
  if (!link?.previousInstanceId) return 'Opened';
  return link.previousInstanceId === instanceId ? 'Opened again' : 'Opened by another instance';
}

function openFor({ link }: gql.LinkRowFragment) {
  if (!link) return <Nil why="no link" />;
  const ms = link.openMs;
  return ms === null ? <Nil why="it opened here" /> : duration(ms);
}

export const CALL_COLUMNS: readonly Column<gql.CallRowFragment>[] = [
  column('State', 'nw c-1', (row) => <CommandMark {...row} />),
  nameColumn('Action', 'c-3', (row) => <ActionLink {...row} />),
  column('Client', 'nw c-5', (row) => <ClientLink {...row} />),
  { head: 'Caller', class: 'nw c-6', label: 'by', cell: ({ caller }) => <CallerLink caller={caller} page="calls" /> },
  column('Command', 'c-4 c-end nw', (row) => <ShortId id={row.commandId} href={callHref(row)} />),
  timeColumn('Admitted', 'nw c-7', (row) => <Time at={row.admittedAt} exact />),
  column('Took', 'r nw c-2 c-end', (row) => <Took row={row} />),
  column('Why', 'why why-line c-8 c-wide', (row) => <Why text={whyText(row)} />),
];

type CallsTableProps = {
  readonly caption: string;
  readonly rows: readonly gql.CallRowFragment[];
  /** The headings of the columns to leave out, because the page states their value for all rows. */
  readonly without: readonly string[];
  readonly none: string;
};

export function CallsTable({ without, ...table }: CallsTableProps) {
  const columns = useMemo(() => CALL_COLUMNS.filter(({ head }) => !without.includes(head)), [without.join(' ')]);
  return <Table {...table} columns={columns} keyOf={callHref} hrefOf={callHref} look="two-lines" />;
}

function Took({ row }: { readonly row: gql.CallRowFragment }) {
  if (row.durationMs !== null) return <>{duration(row.durationMs)}</>;
  return <span class="soft">{duration(Math.max(0, now.value - Date.parse(row.admittedAt)))} so far</span>;
}

/** Shows a text on one line. The tooltip has the whole text, and so does the page of the call. */
function Why({ text }: { readonly text: string }) {
  return text === '' ? null : <span title={text}>{text}</span>;
}

/** Returns why a call ended as it did, or what the call is waiting for. */
function whyText(row: gql.CallRowFragment): string {
  const late = row.lateResults > 0 ? plural(row.lateResults, 'late result') : '';
  const waiting =
    row.stage === 'ADMITTED' ? `Expires ${clock(row.connectDeadline)} unless ${row.clientId} connects` : '';
  const why = row.outcome === null ? waiting : endText(row);
  return [why, late].filter((part) => part !== '').join(' · ');
}

/** Returns the client's message, or the relay's reason for the end. */
function endText({ code, message, reason, outcome }: gql.CallRowFragment): string {
  // For an expired call, the message is the relay's own, and the reason says the same.
  if (code !== null && message !== null && outcome !== 'EXPIRED') return `${reasonText(code)}: ${message}`;
  return reason === null ? '' : reasonText(reason);
}

type Scope = { readonly scopeId: string; readonly reservedCommands: number; readonly limit: number | null };

/** The fraction of its limit from which a scope is shown as nearly full. */
const NEARLY_FULL = 0.9;

export const SCOPE_COLUMNS: readonly Column<Scope>[] = [
  nameColumn('Scope', 'c-1', ({ scopeId }) => scopeId),
  quietColumn('Share', 'bar-col c-off', (scope) => <Bar scope={scope} />),
  labelled('Held', 'r nw c-2', (scope) => <Held scope={scope} />),
  labelled('Limit', 'r c-3', ({ limit }) => (limit === null ? <Nil why="no limit for this scope" /> : whole(limit))),
];

/** Returns the fraction of its limit that a scope uses; 0 if it has no limit. */
export const shareOf = ({ reservedCommands, limit }: Scope): number =>
  limit === null || limit === 0 ? 0 : reservedCommands / limit;

function Bar({ scope }: { readonly scope: Scope }) {
  const share = Math.min(1, shareOf(scope));
  const look = share >= 1 ? 'bar-full' : share >= NEARLY_FULL ? 'bar-hi' : 'bar-fg';
  return (
    <svg class="bar" aria-hidden="true">
      <rect class="bar-bg" width="100%" height="100%" rx="2" />
      <rect class={look} width={`${(share * 100).toFixed(1)}%`} height="100%" rx="2" />
    </svg>
  );
}

function Held({ scope }: { readonly scope: Scope }) {
  const share = shareOf(scope);
  const held = whole(scope.reservedCommands);
  if (share >= 1) return <span class="at-limit">{held}, full</span>;
  return share >= NEARLY_FULL ? <span class="over">{`${held}, ${percent(share)}`}</span> : <>{held}</>;
}

/** Returns the name of the counter for an outcome. */
export const outcomeCounter = (outcome: gql.Outcome): string => `commands_ended:${outcome.toLowerCase()}`;

type Queued = { readonly sampleSize: number; readonly sampledOldestQueuedAgeMs: number | null };

/** Returns the figure for the age of the command that has been queued for longest. */
export function oldestQueued({ sampleSize, sampledOldestQueuedAgeMs: oldestMs }: Queued) {
  return {
    name: 'Oldest queued',
    value: oldestMs === null ? '–' : age(oldestMs),
    about: sampleSize === 0 ? 'no command runs' : `of ${plural(sampleSize, 'command')} sampled`,
  };
}

type NodeVersion = { readonly nodeId: string; readonly stale: boolean; readonly version: string | null };

/** States which versions the reporting nodes run, if they differ. */
export function VersionsNotice({ nodes }: { readonly nodes: readonly NodeVersion[] }) {
  const byVersion = Map.groupBy(
    nodes.filter(({ stale }) => !stale),
    ({ version }) => version,
  );
  if (byVersion.size < 2) return null;
  const parts = [...byVersion].map(
    ([version, some]) => `${some.map(({ nodeId }) => nodeId).join(', ')}: ${version ?? 'an older one'}`,
  );
  return (
    <Information>
      <b>The nodes run different versions.</b> {parts.join('; ')}. That is usual during an upgrade only.
    </Information>
  );
}

/** Shows how to connect a first client. */
export function NoClients() {
  const user = viewer.value?.userId ?? 'alice';
  const url = relayUrl().replace(/^http/, 'ws');
  const lines = ['npm run demo', `callboard token --user ${user}`, programText(url)];
  return (
    <Empty
      title="No client is connected"
      below={lines.map((text) => (
        <CopyLine key={text} text={text} />
      ))}
    >
      Start the demo, or connect a client of your own with a user’s token.
    </Empty>
  );
}

function programText(url: string): string {
  return `import { createRuntime } from 'callboard/runtime';

const runtime = createRuntime({
  url: '${url}/connect',
  token: TOKEN, // what the command above prints
  clientId: 'kiosk-1',
  clientType: 'console',
});
runtime.handle('notes.add', { summary: 'Adds a note' }, ({ text }) => ({ added: text }));
runtime.connect();`;
}
