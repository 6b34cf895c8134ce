/** Shows the audit page: what operators did, to which users, clients or commands, and why. */
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { callHref, clientHref, nodesHref, pagePath, streamHref, userHref } from '../base.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { whole } from '../ui/amounts.ts';
import { choicesOf, type Filter } from '../ui/filters.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { ActError, Empty, Information, Notice } from '../ui/notices.tsx';
import { AsOf, Nil, PageHead } from '../ui/page.tsx';
import { timeColumn, nameColumn, column, type Column } from '../ui/table.tsx';
import { timeOfFilter } from '../ui/time-input.ts';
import { Time } from '../ui/times.tsx';
import { oneOf, useUrlState, type UrlState } from '../ui/url-state.ts';
import { ShortId, StateMark } from '../ui/values.tsx';
import { capitalWord, nameClass, plainWord, plural } from '../ui/text-format.ts';
import { SaveButton } from './audit-file.tsx';

const ACTS: readonly gql.OperatorAction[] = [
  'CANCEL',
  'DISCONNECT',
  'DRAIN',
  'ENROL',
  'PAUSE',
  'PAYLOAD',
  'RENAME',
  'RESUME',
  'REVEAL',
  'REVOKE',
];
const FILTERS: readonly Filter[] = [
  { name: 'act', label: 'Act', choices: choicesOf(ACTS) },
  { name: 'who', label: 'Who' },
  { name: 'from', label: 'From' },
  { name: 'to', label: 'To' },
  { name: 'user', label: 'User' },
];

const COLUMNS: readonly Column<gql.AuditRowFragment>[] = [
  timeColumn('When', 'nw c-2 c-end', ({ at }) => <Time at={at} exact />),
  nameColumn('Act', 'c-1', ({ action }) => capitalWord(action)),
  column('Who', 'c-3', ({ who }) => <Who who={who} />),
  column('Subject', 'c-5 c-wide', (row) => <Subject {...row} />),
  column('Reason', 'why c-6 c-wide', ({ reason }) => reason ?? ''),
  column('Outcome', 'nw c-4 c-end', ({ outcome }) =>
    outcome === null ? <Nil why="not recorded" /> : plainWord(outcome),
  ),
  column('Node', 'nw c-off', ({ node }) => node),
];

export function AuditPage() {
  const { values } = useUrlState();
  const filter = filterOf(values);
  const query = useQuery(gql.AuditDocument, { filter, ...pageOf(values) });
  const list = query.data?.auditEvents;
  const wrong = ['from', 'to'].filter((name) => values[name] && timeOfFilter(values[name]) === null);
  const hasUnnamed = list?.nodes.some(({ who }) => UNNAMED.test(who)) ?? false;
  return (
    <>
      <PageHead title="Audit" acts={[<AsOf queries={[query]} />, <SaveButton filter={filter} />]}>
        What operators did. Each row is written before its act, and a row that is changed or removed breaks the chain.
        Calls are not in it: <a href={pagePath('calls')}>Calls</a> has them, by caller.
      </PageHead>
      {isAdmin.value && <ChainCheck />}
      <List
        one="event"
        many="audit events"
        query={query}
        list={list}
        filters={isAdmin.value ? FILTERS : FILTERS.slice(0, -1)}
        bare="who"
        notices={[
          wrong.map((name) => (
            <Information key={name}>
              <b>“{values[name]}” is not a time.</b> Write 14:31, or 2026-11-21T14:31, in UTC.
            </Information>
          )),
          hasUnnamed && isAdmin.value && (
            <Information>
              A name such as <code>token-2</code> is the place of a token without a name in the setting ADMIN_TOKEN.
              Write <code>name=token</code> there, and the audit names who holds it.
            </Information>
          ),
        ]}
        about={`${plural(list?.nodes.length ?? 0, 'event')} on this page, newest first.`}
        empty={
          <Empty title="No operator did anything yet" mark="all">
            Reveals, cancellations of others’ calls, stops, disconnects, drains, confirmed devices and revocations are
            written here.
          </Empty>
        }
        caption="Audit events"
        columns={COLUMNS}
        keyOf={({ id }) => id}
      />
    </>
  );
}

/** Shows the result of the relay's check of the audit chain. The check is repeated at most once a minute. */
function ChainCheck() {
  const { data, error } = useQuery(gql.AuditCheckDocument, {});
  const found = data?.auditCheck;
  if (error) return <ActError title="The chain was not checked." error={error} />;
  if (!found) return <p class="quiet below-head">Checking the chain…</p>;
  const { rows, fault, unchecked, asOf } = found;
  if (fault !== null)
    return (
      <Notice mark="warn" look="error">
        <b>The chain is broken.</b> {fault} <code>callboard audit verify</code> checks it without trusting the relay.
      </Notice>
    );
  return (
    <p class="quiet below-head">
      <StateMark shape="pass">Chain checked</StateMark> at <Time at={asOf} />: {plural(rows, 'row')}, none changed or
      removed
      {unchecked > 0 && `, ${whole(unchecked)} signed with a key that the relay does not have`}.{' '}
      <code>callboard audit verify</code> checks it without trusting the relay.
    </p>
  );
}

/** Matches the name of an administrator whose token has no name in the settings. */
const UNNAMED = /^admin:token-\d+$/;

function filterOf(values: UrlState['values']): gql.AuditFilter {
  const who = values['who'];
  return {
    action: oneOf(values['act'], ACTS),
    // The page shows and accepts names without the prefix that the relay gives them.
    who: who === undefined ? null : `admin:${who.replace(/^admin:/, '')}`,
    userId: values['user'] ?? null,
    afterTime: timeOfFilter(values['from']),
    beforeTime: timeOfFilter(values['to']),
  };
}

function Who({ who }: Pick<gql.AuditRowFragment, 'who'>) {
  const name = who.replace(/^admin:/, '');
  const isViewer = viewer.value?.name === name;
  return (
    <span class={nameClass(name)}>
      {name}
      {isViewer && <span class="quiet"> (you)</span>}
    </span>
  );
}

function Subject({ subject }: gql.AuditRowFragment) {
  const { userId, clientId, commandId, messageId, nodeId, stream } = subject;
  const client = userId !== null && clientId !== null ? { userId, clientId } : null;
  if (client)
    return (
      <>
        <a href={clientHref(client)} class={nameClass(client.userId, client.clientId)}>
          {client.userId} / {client.clientId}
        </a>
        {commandId !== null && (
          <>
            {' '}
            <ShortId id={commandId} href={callHref({ ...client, commandId })} />
          </>
        )}
      </>
    );
  if (stream !== null && stream.includes('/')) return <a href={streamHref(stream)}>{stream}</a>;
  if (nodeId !== null) return isAdmin.value ? <a href={nodesHref()}>{nodeId}</a> : <>{nodeId}</>;
  const id = commandId ?? messageId;
  return (
    <>
      {userId !== null && <a href={userHref(userId)}>{userId}</a>} {id !== null && <ShortId id={id} />}{' '}
      {userId === null && id === null && stream}
    </>
  );
}
