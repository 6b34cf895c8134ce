/** The columns of tables, the figures and the notices that several pages show. */
import type {
  CallRowFragment,
  CallerPartFragment,
  ClientRowFragment,
  LinkRowFragment,
  Outcome,
  WaitRowFragment,
} from '../../../generated/console.ts';
import { reasonText } from '../../protocol/visible-text.ts';
import { now } from '../api/request.ts';
import { callHref, pagePath, queryPath, relayUrl, segments } from '../base.ts';
import { LONG_WAIT_MS, isSilent, viewer } from '../shell/facts.tsx';
import { ClientLink, Count, Empty, Information, Nil } from '../ui/page.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, CommandMark, ConnectionMark, CopyLine, ShortId, StageMark, Time, Until } from '../ui/values.tsx';
import {
  CAUSE,
  HEARTBEAT,
  WAIT_FOR,
  age,
  capitalWord,
  duration,
  nameClass,
  percent,
  plural,
  shortId,
  whole,
} from '../ui/words.ts';

export const WAIT_COLUMNS: readonly Column<WaitRowFragment>[] = [
  { head: 'Stage', class: 'c-1', cell: (row) => <StageMark stage={row.stage} /> },
  { head: 'Action', class: 'c-3', names: true, cell: (row) => <ActionLink {...row} /> },
  { head: 'Client', class: 'nw c-4 c-end', cell: (row) => <ClientLink {...row} /> },
  {
    head: 'Caller',
    class: 'nw c-5',
    label: 'caller',
    cell: ({ caller }) => <CallerLink caller={caller} page="waits" />,
  },
  { head: 'Waits for', class: 'nw c-6', label: 'for', cell: (row) => WAIT_FOR[row.waitFor] },
  { head: 'Caller on', class: 'nw c-off', cell: (row) => row.callerNodeId },
  { head: 'Client on', class: 'nw c-off', cell: (row) => row.nodeId ?? 'no node' },
  { head: 'Gives up', class: 'nw c-off', cell: (row) => <Until at={row.timesOutAt} /> },
  { head: 'Waits', class: 'r nw c-2 c-end', cell: (row) => <Waited row={row} /> },
];

type NamedCall = Parameters<typeof callHref>[0] & { readonly action: string };

function ActionLink(row: NamedCall) {
  return (
    <a href={callHref(row)} class={nameClass(row.action)}>
      {row.action}
    </a>
  );
}

const CALLER_KINDS = {
  ADMIN: 'Administrator',
  USER: 'User',
  GRANT: 'Viewer of a site, by the grant',
  MCP: 'Agent of',
} as const;

type CallerProps = { readonly caller: CallerPartFragment; readonly page: 'calls' | 'waits' };

/** Shows who called, as a link to the calls or waits of this caller. */
function CallerLink({ caller: { kind, name, program }, page }: CallerProps) {
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

function Waited({ row }: { readonly row: WaitRowFragment }) {
  const ms = now.value - Date.parse(row.createdAt);
  return <span class={ms > LONG_WAIT_MS ? 'over' : undefined}>{age(ms)}</span>;
}

/** Shows the name of an action as a link to its page. */
export function ActionName({ name }: { readonly name: string }) {
  return (
    <a href={pagePath(`actions/${segments(name)}`)} class={nameClass(name)}>
      {name}
    </a>
  );
}

export const CLIENT_COLUMNS: readonly Column<ClientRowFragment>[] = [
  {
    head: 'Status',
    class: 'c-1',
    cell: (row) => <ConnectionMark status={row.status} recorded={isSilent(row.nodeId)} />,
  },
  { head: 'Client', class: 'c-3', names: true, cell: (row) => <ClientLink {...row} /> },
  { head: 'Type', class: 'c-4 c-end', cell: (row) => capitalWord(row.clientType) },
  { head: 'Node', class: 'nw c-5', label: 'node', cell: (row) => row.nodeId },
  {
    head: 'Link',
    class: 'nw c-off',
    cell: (row) => (row.status === 'DISCONNECTED' ? 'Down' : HEARTBEAT[row.heartbeat]),
  },
  { head: 'Queued', class: 'r c-6 c-end', label: 'queued', cell: (row) => <Count value={row.queued} /> },
  { head: 'In flight', class: 'r c-7', label: 'in flight', cell: (row) => <Count value={row.inFlight} /> },
  { head: 'Actions', class: 'r c-off', cell: (row) => <Count value={row.actionNames.length} /> },
  { head: 'Connected', isTime: true, class: 'nw c-off', cell: (row) => <Time at={row.connectedAt} /> },
  { head: 'Last seen', class: 'r nw c-2 c-end', cell: (row) => <Ago at={row.lastSeenAt} /> },
];

/** Returns the name of the stream that holds the link history of a user. */
export function linkStream(userId: string): string {
  return `${userId}/links`;
}

export const LINK_COLUMNS: readonly Column<LinkRowFragment>[] = [
  { head: 'When', class: 'nw c-2 c-end', cell: ({ at }) => <Ago at={at} /> },
  { head: 'What', class: 'c-1', names: true, cell: whatOf },
  { head: 'Open for', class: 'r nw c-5', label: 'open for', cell: openFor },
  { head: 'Node', class: 'nw c-6', label: 'node', cell: ({ link }) => link?.nodeId },
  { head: 'Instance', class: 'nw c-off', cell: ({ instanceId }) => instanceId && <ShortId id={instanceId} /> },
];

function whatOf({ kind, link, instanceId, error }: LinkRowFragment) {
  const cause = link?.cause;
  if (kind === 'RELAY_AWAY') return error?.message ?? 'The relay was stopped and started again';
  if (kind === 'LINK_REPLACED') return 'Replaced by a newer link';
  if (kind === 'LINK_CLOSED') return `Closed${cause ? `: ${CAUSE[cause]}` : ''}`;
  if (!link?.previousInstanceId) return 'Opened';
  return link.previousInstanceId === instanceId ? 'Opened again' : 'Opened by another instance';
}

function openFor({ link }: LinkRowFragment) {
  if (!link) return <Nil why="no link" />;
  const ms = link.openMs;
  return ms === null ? <Nil why="it opened here" /> : duration(ms);
}

export const CALL_COLUMNS: readonly Column<CallRowFragment>[] = [
  { head: 'State', class: 'nw c-1', cell: (row) => <CommandMark {...row} /> },
  { head: 'Action', class: 'c-3', names: true, cell: (row) => <ActionLink {...row} /> },
  { head: 'Client', class: 'nw c-5 c-wide', cell: (row) => <ClientLink {...row} /> },
  {
    head: 'Caller',
    class: 'nw c-8',
    label: 'caller',
    cell: ({ caller }) => <CallerLink caller={caller} page="calls" />,
  },
  { head: 'Command', class: 'c-4 c-end nw', cell: (row) => <ShortId id={row.commandId} href={callHref(row)} /> },
  {
    head: 'Admitted',
    isTime: true,
    class: 'nw c-7',
    label: 'admitted',
    cell: (row) => <Time at={row.admittedAt} exact />,
  },
  { head: 'Took', class: 'r nw c-2 c-end', cell: (row) => <Took row={row} /> },
  { head: 'Why', class: 'why why-line c-6 c-wide', cell: (row) => <Why text={whyText(row)} /> },
];

function Took({ row }: { readonly row: CallRowFragment }) {
  if (row.durationMs !== null) return <>{duration(row.durationMs)}</>;
  return <span class="soft">{duration(Math.max(0, now.value - Date.parse(row.admittedAt)))} so far</span>;
}

/** Shows a text on one line. The title has the whole text, which the page of the call has too. */
function Why({ text }: { readonly text: string }) {
  return text === '' ? null : <span title={text}>{text}</span>;
}

/** Returns why a call ended as it did, or what it is waiting for. */
function whyText(row: CallRowFragment): string {
  const late = row.lateResults > 0 ? plural(row.lateResults, 'late result') : '';
  const waiting = row.stage === 'ADMITTED' ? 'Client away; it may still connect' : '';
  const why = row.outcome === null ? waiting : endText(row);
  return [why, late].filter((part) => part !== '').join(' · ');
}

/** Returns the client's message, or the relay's reason for the end. */
function endText({ code, message, reason, outcome }: CallRowFragment): string {
  // The message of an expired call is the relay's own, and says what the reason says.
  if (code !== null && message !== null && outcome !== 'EXPIRED') return `${reasonText(code)}: ${message}`;
  return reason === null ? '' : reasonText(reason);
}

type Scope = { readonly scopeId: string; readonly reservedCommands: number; readonly limit: number | null };

/** A scope that uses at least this fraction of its limit is shown as nearly full. */
const NEARLY_FULL = 0.9;

export const SCOPE_COLUMNS: readonly Column<Scope>[] = [
  { head: 'Scope', class: 'c-1', names: true, cell: ({ scopeId }) => scopeId },
  { head: 'Share', quietHead: true, class: 'bar-col c-off', cell: (scope) => <Bar scope={scope} /> },
  { head: 'Held', class: 'r nw c-2', label: 'held', cell: (scope) => <Held scope={scope} /> },
  {
    head: 'Limit',
    class: 'r c-3',
    label: 'limit',
    cell: ({ limit }) => (limit === null ? <Nil why="no limit for this scope" /> : whole(limit)),
  },
];

/** Returns the fraction of its limit that a scope uses; 0 without a limit. */
export function shareOf({ reservedCommands, limit }: Scope): number {
  return limit === null || limit === 0 ? 0 : reservedCommands / limit;
}

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

/** Returns the name of the counter of an outcome. */
export function outcomeCounter(outcome: Outcome): string {
  return `commands_ended:${outcome.toLowerCase()}`;
}

type Queued = { readonly sampleSize: number; readonly sampledOldestQueuedAgeMs: number | null };

/** Returns the figure of the command that has been queued for longest. */
export function oldestQueued({ sampleSize, sampledOldestQueuedAgeMs: oldestMs }: Queued) {
  return {
    name: 'Oldest queued',
    value: oldestMs === null ? '–' : age(oldestMs),
    about: sampleSize === 0 ? 'no command runs' : `of ${plural(sampleSize, 'command')} sampled`,
  };
}

type NodeVersion = { readonly nodeId: string; readonly stale: boolean; readonly version: string | null };

/** Says which versions the nodes that report run, if they differ. */
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

/** Says how to connect a first client. */
export function NoClients() {
  const user = viewer.value?.userId ?? 'alice';
  return (
    <Empty title="No client is connected">
      <p>Start the demo, or connect a client of your own with a user’s token.</p>
      <CopyLine text="npm run demo" />
      <CopyLine text={`callboard token --user ${user}`} />
      <CopyLine text={programText(relayUrl().replace(/^http/, 'ws'))} />
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
