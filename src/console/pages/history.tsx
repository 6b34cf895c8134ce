/**
 * Shows the newest streams, the streams of one user, and the messages of one stream; and the dialog that reveals a
 * payload.
 */
import { useEffect, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { textAt } from '../api/exact-text.ts';
import { RequestError, accepted, errorOf, send } from '../api/request.ts';
import { callHref, pagePath, queryPath, streamHref } from '../base.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { CloseAct, Dialog, ReasonDialog } from '../ui/dialogs.tsx';
import { oneOf, useUrlState } from '../ui/url-state.ts';
import { FilterBar, choicesOf, type Filter } from '../ui/filters.tsx';
import { ActError, CutNotice, Empty, ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { AsOf, ClientLink, Nil, PageHead, Section } from '../ui/page.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { Table, column, nameColumn, labelled, timeColumn, quietColumn, type Column } from '../ui/table.tsx';
import { Icon } from '../ui/icons.tsx';
import { Payload } from '../ui/payload.tsx';
import { timeOfFilter } from '../ui/time-input.ts';
import { Ago, Time } from '../ui/times.tsx';
import { NameLink, ShortId } from '../ui/values.tsx';
import { bytes, whole } from '../ui/amounts.ts';
import { capitalWord } from '../ui/text-format.ts';
import { LINK_COLUMNS, linkStream } from './columns.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User' },
  { name: 'prefix', label: 'Stream begins with' },
];

export function HistoryPage() {
  const { values } = useUrlState();
  const stream = values['stream'];
  if (stream !== undefined) return <StreamMessages stream={stream} />;
  const userId = isAdmin.value ? values['user'] : (viewer.value?.userId ?? undefined);
  return (
    <>
      <PageHead title="History">
        Messages that the relay keeps for a while, in streams of a user. Payloads are hidden until you reveal one.
      </PageHead>
      <FilterBar
        what="streams"
        filters={isAdmin.value ? FILTERS : FILTERS.slice(1)}
        bare={isAdmin.value ? 'user' : 'prefix'}
      />
      {userId === undefined ? <NewestStreams /> : <StreamList userId={userId} prefix={values['prefix'] ?? null} />}
    </>
  );
}

/** The maximum number of streams that are shown for all users together. */
const NEWEST = 40;

function NewestStreams() {
  const query = useQuery(gql.NewestStreamsDocument, {});
  const users = query.data?.users;
  const streams = (users?.nodes ?? []).flatMap((user) =>
    user.streams.nodes.map((row) => ({ ...row, userId: user.userId })),
  );
  const rows = streams.sort((one, other) => (other.lastAt ?? '').localeCompare(one.lastAt ?? '')).slice(0, NEWEST);
  const isCut = users?.pageInfo.hasNextPage || users?.nodes.some((user) => user.streams.pageInfo.hasNextPage);
  return (
    <Section title="Newest streams" about="of all users" side={<AsOf queries={[query]} />}>
      <ErrorNotice query={query} what="the streams" />
      <CutNotice completeness={users?.completeness} />
      {isCut && (
        <Information>
          The first 20 streams of each of the first 50 users were read. Filter by user for others.
        </Information>
      )}
      {!users && query.loading && <Loading what="the streams" />}
      {users && (
        <div class="tbl-fit">
          <Table
            caption="Newest streams of all users"
            columns={[STREAM_USER, ...STREAM_COLUMNS]}
            rows={rows}
            keyOf={({ key }) => key}
            hrefOf={({ key }) => streamHref(key)}
            none="No message is retained."
          />
        </div>
      )}
    </Section>
  );
}

const KINDS: readonly gql.MessageKind[] = [
  ...(['COMMAND', 'PROGRESS', 'RESULT', 'ERROR', 'LATE_RESULT', 'EVENT', 'CANCEL'] as const),
  ...(['LINK_OPENED', 'LINK_CLOSED', 'LINK_REPLACED', 'RELAY_AWAY'] as const),
];
const MESSAGE_FILTERS: readonly Filter[] = [
  { name: 'kind', label: 'Kind', choices: choicesOf(KINDS) },
  { name: 'from', label: 'From' },
  { name: 'to', label: 'To' },
];

/** The columns of a user's link history, including the client of each link. */
const COLUMNS: readonly Column<gql.LinkRowFragment & { readonly userId: string }>[] = [
  ...LINK_COLUMNS.slice(0, 2),
  column('Client', 'c-3', ({ userId, clientId }) => clientId && <ClientLink userId={userId} clientId={clientId} />),
  ...LINK_COLUMNS.slice(2),
];

function StreamMessages({ stream }: { readonly stream: string }) {
  const { values, hrefWith } = useUrlState();
  const userId = stream.slice(0, stream.indexOf('/'));
  const isLinks = stream === linkStream(userId);
  const kind = oneOf(values['kind'], KINDS);
  const order: gql.MessageOrder = values['order'] === 'oldest' ? 'OLDEST_FIRST' : 'NEWEST_FIRST';
  const query = useQuery(gql.MessagesDocument, {
    stream,
    kinds: kind === null ? null : [kind],
    afterTime: timeOfFilter(values['from']),
    beforeTime: timeOfFilter(values['to']),
    order,
    ...pageOf(values),
  });
  const list = query.data?.messages;
  const rows = (list?.nodes ?? []).map((row) => ({
    ...row,
    userId,
    commandHref:
      row.clientId && row.commandId ? callHref({ userId, clientId: row.clientId, commandId: row.commandId }) : null,
  }));
  return (
    <>
      <PageHead
        title={stream.slice(userId.length + 1)}
        crumbs={[
          { href: pagePath('history'), text: 'History' },
          { href: queryPath('history', { user: userId }), text: userId },
        ].slice(isAdmin.value ? 0 : 1)}
        acts={<AsOf queries={[query]} />}
      >
        {order === 'NEWEST_FIRST' ? 'Newest first. ' : 'Oldest first. '}
        <a href={hrefWith({ order: order === 'NEWEST_FIRST' ? 'oldest' : null })}>
          Show {order === 'NEWEST_FIRST' ? 'oldest' : 'newest'} first
        </a>
      </PageHead>
      <List
        one="message"
        many="messages"
        query={query}
        list={list}
        filters={MESSAGE_FILTERS}
        bare="kind"
        empty={
          <Empty title="No message in this stream">
            None was ever kept, or all are older than the relay keeps messages.
          </Empty>
        }
      >
        {isLinks ? (
          <Table caption={`Links of ${userId}`} columns={COLUMNS} rows={rows} keyOf={({ id }) => id} look="mid" />
        ) : (
          <MessagesTable rows={rows} caption={`Messages of ${stream}`} />
        )}
      </List>
    </>
  );
}

function StreamList({ userId, prefix }: { readonly userId: string; readonly prefix: string | null }) {
  const { values } = useUrlState();
  const query = useQuery(gql.StreamsDocument, { userId, prefix, ...pageOf(values) });
  const list = query.data?.streams;
  return (
    <Section title={`Streams of ${userId}`} side={<AsOf queries={[query]} />}>
      <div class="tbl-fit">
        <List
          one="stream"
          many="streams"
          query={query}
          list={list}
          empty={
            <Empty title="No stream">
              {prefix === null
                ? 'No message of this user is retained.'
                : `No stream of this user begins with “${prefix}”.`}
            </Empty>
          }
          caption={`Streams of ${userId}`}
          columns={STREAM_COLUMNS}
          keyOf={({ key }) => key}
          hrefOf={({ key }) => streamHref(key)}
        />
      </div>
    </Section>
  );
}

const STREAM_USER: Column<gql.StreamRowFragment & { readonly userId: string }> = {
  head: 'User',
  class: 'c-5',
  label: 'of',
  cell: ({ userId }) => <a href={queryPath('history', { user: userId })}>{userId}</a>,
};

const STREAM_COLUMNS: readonly Column<gql.StreamRowFragment>[] = [
  nameColumn('Stream', 'c-1', ({ key, suffix }) => <NameLink href={streamHref(key)} text={suffix} />),
  labelled('Messages', 'r c-2', ({ messageCount }) =>
    messageCount === null ? <Nil why="this store cannot count them cheaply" /> : whole(messageCount),
  ),
  labelled('Oldest', 'r nw c-3', ({ firstAt }) => agoOf(firstAt)),
  labelled('Newest', 'r nw c-4', ({ lastAt }) => agoOf(lastAt)),
];

const agoOf = (at: string | null) => (at === null ? <Nil why="this store cannot tell it cheaply" /> : <Ago at={at} />);

// The table of retained messages. A payload is read only when the viewer reveals it.

type HistoryRow = gql.MessageRowFragment & {
  readonly userId: string;
  readonly stream?: string;
  readonly commandId?: string | null;
  readonly commandHref?: string | null;
};

type MessagesTableProps = { readonly rows: readonly HistoryRow[]; readonly caption: string };

export function MessagesTable({ rows, caption }: MessagesTableProps) {
  const [revealed, setRevealed] = useState<HistoryRow | null>(null);
  const columns: readonly Column<HistoryRow>[] = [
    timeColumn('Retained', 'nw c-2 c-end', ({ at }) => <Time at={at} exact />),
    nameColumn('Kind', 'c-1', ({ kind }) => capitalWord(kind)),
    ...(rows.some(({ stream }) => stream !== undefined) ? [STREAM] : []),
    ...(rows.some(({ commandId }) => commandId) ? [COMMAND] : []),
    column('Size', 'r nw c-4 c-end', sizeOf),
    quietColumn('Payload', 'payload-cell c-5 c-wide', (row) => (
      <PayloadCell row={row} onReveal={() => setRevealed(row)} />
    )),
  ];
  return (
    <>
      <Table
        caption={caption}
        columns={columns}
        rows={rows}
        keyOf={({ id }) => id}
        look="mid"
        none="None is retained."
      />
      {revealed && <MessageReveal key={revealed.id} row={revealed} onClose={() => setRevealed(null)} />}
    </>
  );
}

const sizeOf = ({ payloadBytes }: HistoryRow) => (payloadBytes === 0 ? <Nil why="no payload" /> : bytes(payloadBytes));

const STREAM: Column<HistoryRow> = column('Stream', 'c-3', ({ stream }) => stream?.slice(stream.indexOf('/') + 1));

const COMMAND: Column<HistoryRow> = column('Command', 'c-3', ({ commandId, commandHref = null }) =>
  commandId ? <ShortId id={commandId} href={commandHref} /> : null,
);

const ABSENT: Partial<Record<gql.PayloadState, string>> = {
  NONE: 'No payload',
  EXPIRED: 'No longer kept',
  UNAVAILABLE: 'Cannot be read now',
};

function PayloadCell({ row, onReveal }: { readonly row: HistoryRow; readonly onReveal: () => void }) {
  if (row.error) return <span class="soft">{row.error.message}</span>;
  const absent = ABSENT[row.payloadState];
  if (absent) return <span class="soft">{absent}</span>;
  return (
    <button class="btn btn-s" type="button" onClick={onReveal}>
      <Icon name="eye" />
      Reveal…
    </button>
  );
}

// The dialog that shows one payload. The payload is forgotten when the dialog closes or another page opens.

function MessageReveal({ row, onClose }: { readonly row: HistoryRow; readonly onClose: () => void }) {
  const own = async (): Promise<string | null> => {
    const { data, text } = await send(gql.RevealMessageDocument, { id: row.id });
    const state = data.node && 'payloadState' in data.node ? data.node.payloadState : null;
    if (state !== 'INCLUDED' && state !== 'SPILLED_INCLUDED')
      throw new RequestError('not_found', 'The payload is no longer kept.');
    return textAt(text, ['data', 'node', 'payload']);
  };
  const subject = { subject: 'MESSAGE', userId: row.userId, messageId: row.id } as const;
  return (
    <Reveal
      title={`Payload of the ${capitalWord(row.kind).toLowerCase()}`}
      subject={subject}
      own={own}
      onClose={onClose}
    />
  );
}

type ResultProps = {
  readonly call: Readonly<Record<'userId' | 'clientId' | 'commandId' | 'action', string>>;
  readonly isExpired: boolean;
};

/** Shows the button that reveals the result of a call, as long as the result is retained. */
export function ResultReveal({ call, isExpired }: ResultProps) {
  const [open, setOpen] = useState(false);
  const { userId, clientId, commandId } = call;
  const own = async (): Promise<string | null> => {
    const { text } = await send(gql.RevealResultDocument, { userId, clientId, commandId });
    return textAt(text, ['data', 'command', 'result']);
  };
  const subject = { subject: 'COMMAND_RESULT', userId, clientId, commandId } as const;
  return (
    <div class="after-table">
      {isExpired ? (
        <p class="soft">Its result is no longer retained.</p>
      ) : (
        <button class="btn btn-s" type="button" onClick={() => setOpen(true)}>
          <Icon name="eye" />
          Reveal the result…
        </button>
      )}
      {open && <Reveal title={`Result of ${call.action}`} subject={subject} own={own} onClose={() => setOpen(false)} />}
    </div>
  );
}

type RevealProps = {
  readonly title: string;
  readonly subject: Omit<gql.RevealPayloadInput, 'reason'>;
  /** Reads a payload that belongs to the viewer. No reason is needed. */
  readonly own: () => Promise<string | null>;
  readonly onClose: () => void;
};

/**
 * Shows a payload. An administrator must first give a reason, and the payload is shown only after the reason is in the
 * audit log.
 */
function Reveal({ title, subject, own, onClose }: RevealProps) {
  const [read, setRead] = useState<RevealProps['own'] | null>(() => (isAdmin.value ? null : own));
  if (read !== null) return <Revealed title={title} read={read} onClose={onClose} />;
  const reveal = async (reason: string | null): Promise<void> => {
    const { data, text } = await send(gql.RevealPayloadDocument, { input: { ...subject, reason: reason ?? '' } });
    accepted(data.revealPayload);
    const shown = textAt(text, ['data', 'revealPayload', 'value']);
    setRead(() => async () => shown);
  };
  return (
    <ReasonDialog
      title={title}
      hint="8 to 256 characters. The audit log will say who read it, when and why."
      bounds={{ min: 8, max: 256 }}
      confirm="Reveal"
      keep="Keep it hidden"
      danger={false}
      failed="It was not revealed."
      act={reveal}
      onClose={onClose}
      stays
    >
      <p class="soft">What is revealed is shown in this dialog only, and goes when it is closed.</p>
    </ReasonDialog>
  );
}

type RevealedProps = Pick<RevealProps, 'title' | 'onClose'> & { readonly read: RevealProps['own'] };

function Revealed({ title, read, onClose }: RevealedProps) {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<RequestError | null>(null);
  useEffect(() => {
    read().then(
      (found) => setText(found ?? 'null'),
      (cause: unknown) => setError(errorOf(cause)),
    );
  }, []);
  return (
    <Dialog title={title} onClose={onClose} class="dialog dialog-wide">
      <ActError title="It was not revealed." error={error} />
      {text !== null && <Payload text={text} what={title.toLowerCase()} />}
      <CloseAct text="Hide" onClose={onClose} />
    </Dialog>
  );
}
