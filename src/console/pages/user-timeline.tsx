/**
 * Shows the timeline of a user: calls to its clients, its own calls, audit events about it, and messages of its
 * streams.
 */
import type { ComponentChildren } from 'preact';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { callHref, queryPath, streamHref } from '../base.ts';
import { useUrlState } from '../ui/url-state.ts';
import { FilterBar, type Filter } from '../ui/filters.tsx';
import { CutNotice, ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { Section, Views } from '../ui/page.tsx';
import { Pager } from '../ui/list.tsx';
import { Table, timeColumn, column, nameColumn, labelled, type Column } from '../ui/table.tsx';
import { timeOfFilter } from '../ui/time-input.ts';
import { Time } from '../ui/times.tsx';
import { CommandMark } from '../ui/values.tsx';
import { bytes } from '../ui/amounts.ts';
import { capitalWord, plainWord, plural } from '../ui/text-format.ts';
import { ActionLink, CallerLink, linkStream, whatOf } from './columns.tsx';
import { useStreams, type StreamRows } from './streams.ts';

/** The kinds of entries. Each is a view of the timeline. */
const KINDS = { to: 'To', by: 'By', acts: 'Acts', messages: 'Messages' } as const;
type Kind = keyof typeof KINDS;

type Entry = {
  readonly kind: Kind;
  readonly at: string;
  readonly key: string;
  readonly what: ComponentChildren;
  readonly clientId: string | null;
  readonly who: ComponentChildren;
  readonly state: ComponentChildren;
  readonly commandId: string | null;
};
/** The entries of one source. `isCut`: whether the source has older entries that were not read. */
type Source = { readonly entries: readonly Entry[]; readonly isCut: boolean };

const FILTERS: readonly Filter[] = [
  { name: 'client', label: 'Client' },
  { name: 'from', label: 'From' },
  { name: 'to', label: 'To' },
];

/**
 * The number of entries that are read from each source, and of streams whose messages are read. Both are the newest
 * ones.
 */
const READ = 40;
const STREAMS = 6;

export function UserTimeLine({ userId }: { readonly userId: string }) {
  const { values, hrefWith } = useUrlState();
  const view = Object.keys(KINDS).find((kind) => kind === values['view']) ?? null;
  const clientId = values['client'] ?? null;
  const [afterTime, beforeTime] = [timeOfFilter(values['from']), timeOfFilter(values['to'])];
  const calls = { clientId, admittedAfter: afterTime, admittedBefore: beforeTime };
  const query = useQuery(gql.UserTimeLineDocument, {
    userId,
    to: { ...calls, userId },
    by: { ...calls, caller: userId },
    acts: { userId, afterTime, beforeTime },
    first: READ,
  });
  const streams = newestStreams(query.data);
  // The link history is added, because the relay does not list it among the streams.
  const read = query.data === null ? [] : [linkStream(userId), ...streams.slice(0, STREAMS)];
  const messages = useStreams(read, { afterTime, beforeTime, first: READ });
  const isRead = query.data !== null && messages.data !== null;
  const { entries, until } = joined(sourcesOf(query.data, messages.data ?? [], { userId, view, clientId }));
  return (
    <Section title="Time line" about="over what is retained, newest first">
      <Views
        label="Time line"
        views={[
          { name: 'All', href: hrefWith({ view: null }), isCurrent: view === null },
          ...Object.entries(KINDS).map(([kind, name]) => ({
            name,
            href: hrefWith({ view: kind }),
            isCurrent: view === kind,
          })),
        ]}
      />
      <FilterBar what="the time line" filters={FILTERS} bare="client" />
      <ErrorNotice query={query} what="its time line" />
      <ErrorNotice query={messages} what="its messages" />
      {(['to', 'by', 'acts'] as const).map(
        (kind) => (view ?? kind) === kind && <CutNotice key={kind} completeness={query.data?.[kind].completeness} />,
      )}
      {(view ?? 'messages') === 'messages' && <CutNotice completeness={completenessOf(messages.data ?? [])} />}
      {(view ?? 'messages') === 'messages' && streams.length > STREAMS && (
        <Information>
          Messages of the {STREAMS} newest of {query.data?.streams.pageInfo.hasNextPage ? 'the first ' : ''}
          {plural(streams.length, 'stream')} are shown. <a href={queryPath('history', { user: userId })}>All streams</a>
        </Information>
      )}
      {!isRead && (query.loading || messages.loading) && <Loading what="the time line" />}
      {isRead && (
        <Table
          caption="Time line of this user"
          columns={COLUMNS}
          rows={entries}
          keyOf={({ key }) => key}
          none="Nothing that matches is retained: records of calls for an hour after their end, messages and acts for longer."
        />
      )}
      {isRead && (entries.length > 0 || until !== null) && (
        <Pager
          first={values['to'] ? hrefWith({ to: null }) : null}
          next={until === null ? null : hrefWith({ to: until })}
          isCut={until !== null}
        >
          {plural(entries.length, 'entry', 'entries')}.
        </Pager>
      )}
    </Section>
  );
}

const COLUMNS: readonly Column<Entry>[] = [
  timeColumn('When', 'nw c-2 c-end', ({ at }) => <Time at={at} exact />),
  column('Kind', 'nw c-3', ({ kind }) => <span class="quiet">{KIND_WORDS[kind]}</span>),
  nameColumn('What', 'c-1', ({ what }) => what),
  labelled('Client', 'nw c-5', ({ clientId }) => clientId),
  labelled('By', 'nw c-6', ({ who }) => who),
  column('State', 'nw c-4 c-end', ({ state }) => state),
];

const KIND_WORDS: Readonly<Record<Kind, string>> = {
  to: 'Call to it',
  by: 'Call by it',
  acts: 'Act',
  messages: 'Message',
};

/** Returns the streams of the user, those with the newest messages first. */
function newestStreams(data: gql.UserTimeLineQuery | null): readonly string[] {
  const nodes = [...(data?.streams.nodes ?? [])];
  return nodes.sort((one, other) => (other.lastAt ?? '').localeCompare(one.lastAt ?? '')).map(({ key }) => key);
}

function completenessOf(streams: readonly StreamRows[]): StreamRows['completeness'] {
  return {
    complete: streams.every(({ completeness }) => completeness.complete),
    sources: streams.flatMap(({ completeness }) => completeness.sources),
  };
}

type Wanted = { readonly userId: string; readonly view: string | null; readonly clientId: string | null };

function sourcesOf(
  data: gql.UserTimeLineQuery | null,
  streams: readonly StreamRows[],
  { userId, view, clientId }: Wanted,
): readonly Source[] {
  if (!data) return [];
  const isWanted = (kind: Kind): boolean => (view ?? kind) === kind;
  const isOf = (entry: Entry): boolean => (clientId ?? entry.clientId) === entry.clientId;
  const own = data.by.nodes.filter(({ caller: { kind } }) => kind === 'USER' || kind === 'MCP');
  // A call by the user to one of the user's own clients is in both lists, but is shown once.
  const keys = new Set(view === null ? own.map(({ commandId }) => commandId) : []);
  const calls = [
    {
      isCut: data.to.pageInfo.hasNextPage,
      entries: data.to.nodes.filter(({ commandId }) => !keys.has(commandId)).map((row) => callEntry('to', row)),
    },
    { isCut: data.by.pageInfo.hasNextPage, entries: own.map((row) => callEntry('by', row)) },
  ].filter((_, at) => isWanted(at === 0 ? 'to' : 'by'));
  const shown = new Set(calls.flatMap(({ entries }) => entries.map(({ commandId }) => commandId)));
  return [
    ...calls,
    ...(isWanted('acts')
      ? [{ isCut: data.acts.pageInfo.hasNextPage, entries: data.acts.nodes.map(actEntry).filter(isOf) }]
      : []),
    ...(isWanted('messages') ? streams : []).map(({ stream, nodes, pageInfo }) => ({
      isCut: pageInfo.hasNextPage,
      // Messages of a shown call are left out, because the entry of the call represents them.
      entries: nodes
        .map((row) => messageEntry(row, { userId, stream }))
        .filter((entry) => isOf(entry) && (entry.commandId === null || !shown.has(entry.commandId))),
    })),
  ];
}

/**
 * Joins the entries of all sources, newest first. The result ends at the latest time at which a source was cut, because
 * older entries of that source are missing. `until`: the value of the filter `to` that shows older entries; null if
 * there are none.
 */
function joined(sources: readonly Source[]): { readonly entries: readonly Entry[]; readonly until: string | null } {
  const bounds = sources.flatMap(({ isCut, entries }) => (isCut ? [entries.at(-1)?.at ?? ''] : []));
  const bound = bounds.sort().at(-1) ?? null;
  const entries = sources.flatMap((source) => source.entries.filter(({ at }) => bound === null || at >= bound));
  entries.sort((one, other) => other.at.localeCompare(one.at));
  const last = entries.length > READ ? (entries[READ - 1]?.at ?? null) : bound;
  // One millisecond is added because the filter is exclusive, and other entries of the same millisecond may not have
  // been shown.
  const until = last ? new Date(Date.parse(last) + 1).toISOString() : null;
  return { entries: entries.slice(0, READ), until };
}

function callEntry(kind: 'to' | 'by', row: gql.CallRowFragment): Entry {
  const { admittedAt: at, clientId, commandId } = row;
  return {
    kind,
    at,
    clientId,
    commandId,
    key: `${kind}/${clientId}/${commandId}`,
    what: <ActionLink {...row} />,
    who: <CallerLink caller={row.caller} page="calls" />,
    state: <CommandMark {...row} />,
  };
}

function actEntry({
  id,
  at,
  action,
  who,
  outcome,
  subject: { userId, clientId, commandId },
}: gql.AuditRowFragment): Entry {
  const name = capitalWord(action);
  const href =
    userId !== null && clientId !== null && commandId !== null ? callHref({ userId, clientId, commandId }) : null;
  return {
    kind: 'acts',
    at,
    clientId,
    commandId,
    key: id,
    what: href ? <a href={href}>{name}</a> : name,
    who: who.replace(/^admin:/, ''),
    state: outcome && plainWord(outcome),
  };
}

type Of = { readonly userId: string; readonly stream: string };

function messageEntry(row: StreamRows['nodes'][number], { userId, stream }: Of): Entry {
  const { id, at, kind, clientId, commandId, payloadBytes } = row;
  const href = clientId !== null && commandId !== null ? callHref({ userId, clientId, commandId }) : streamHref(stream);
  return {
    kind: 'messages',
    at,
    clientId,
    commandId,
    key: id,
    what: <a href={href}>{stream === linkStream(userId) ? whatOf(row) : capitalWord(kind)}</a>,
    who: null,
    state: payloadBytes > 0 && <span class="quiet">{bytes(payloadBytes)}</span>,
  };
}
