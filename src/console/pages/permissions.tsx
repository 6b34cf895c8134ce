/** Shows who may call actions on the clients of a user, as far as the policy and the scopes of tokens decide this. */
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { ErrorNotice } from '../ui/notices.tsx';
import { Facts, Section } from '../ui/page.tsx';
import { Table, nameColumn, type Column } from '../ui/table.tsx';
import type { ShapeName } from '../ui/shapes.tsx';
import { StateMark } from '../ui/values.tsx';
import { ActionName } from './columns.tsx';

type Permissions = gql.ActionPermissionsQuery['actionPermissions'][number];
type Permission = Permissions['callers'][number];

const CALLERS: Readonly<Record<gql.CommandCallerKind, string>> = {
  ADMIN: 'Administrators',
  USER: 'The user',
  MCP: 'Its agents',
  GRANT: 'Viewers of its sites',
};

const VERDICTS: Readonly<Record<gql.PreflightVerdict, { readonly shape: ShapeName; readonly word: string }>> = {
  PASS: { shape: 'pass', word: 'May' },
  REFUSE: { shape: 'failed', word: 'May not' },
  UNKNOWN: { shape: 'open', word: 'Not known' },
  SKIPPED: { shape: 'skip', word: 'Not asked' },
};

function Verdict({ verdict, message }: Permission) {
  const { shape, word } = VERDICTS[verdict];
  return (
    <span title={message}>
      <StateMark shape={shape}>{word}</StateMark>
    </span>
  );
}

const ABOUT = 'by the policy and the scopes of tokens; the client can still refuse';

/** Shows for each kind of caller whether it may call an action, and why. */
export function WhoMayCall({ userId, action }: { readonly userId: string; readonly action: string }) {
  const query = useQuery(gql.ActionPermissionsDocument, { userId, actions: [action] });
  const callers = query.data?.actionPermissions[0]?.callers ?? [];
  return (
    <Section title="Who may call it" about={`on the clients of ${userId}, ${ABOUT}`}>
      <ErrorNotice query={query} what="who may call it" />
      <Facts
        rows={callers.map((caller) => [
          CALLERS[caller.kind],
          <>
            <Verdict {...caller} />
            <small>{caller.message}</small>
          </>,
        ])}
      />
    </Section>
  );
}

const COLUMNS: readonly Column<Permissions>[] = [
  nameColumn('Action', 'c-1', ({ action }) => <ActionName name={action} />),
  ...(['ADMIN', 'USER', 'MCP', 'GRANT'] as const).map((kind, at) => ({
    head: CALLERS[kind],
    class: `nw c-${at + 5}`,
    label: CALLERS[kind].toLowerCase(),
    cell: ({ callers }: Permissions) => callers.map((one) => one.kind === kind && <Verdict key={kind} {...one} />),
  })),
];

const LISTED = 20;

/** Shows who may call the actions that the clients of a user advertise. */
export function WhoMayCallUser({ userId, actions }: { readonly userId: string; readonly actions: readonly string[] }) {
  const named = [...new Set(actions)].sort().slice(0, LISTED);
  const query = useQuery(gql.ActionPermissionsDocument, { userId, actions: named }, { skip: named.length === 0 });
  if (named.length === 0) return null;
  return (
    <Section title="Who may call" about={`what its clients advertise, ${ABOUT}; the page of an action says why`}>
      <ErrorNotice query={query} what="who may call" />
      {query.data && (
        <Table
          caption="Who may call the actions of this user"
          columns={COLUMNS}
          rows={query.data.actionPermissions}
          keyOf={({ action }) => action}
        />
      )}
    </Section>
  );
}
