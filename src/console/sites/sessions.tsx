/** Shows the sessions of a site, with buttons for its owner: close a session, revoke a grant. */
import { useState } from 'preact/hooks';
import { CloseSessionDocument, RevokeGrantDocument, type SessionState } from '../../generated/console.ts';
import { errorOf, type RequestError } from '../api/errors.ts';
import { request } from '../api/request.ts';
import { Nil } from '../ui/empty.tsx';
import { ShortId } from '../ui/id.tsx';
import { ActError } from '../ui/notice.tsx';
import { Section } from '../ui/page.tsx';
import type { ShapeName } from '../ui/shape.tsx';
import { StateMark } from '../ui/status.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { Time, Until } from '../ui/time.tsx';
import { capitalWord } from '../ui/words.ts';
import type { SiteDetails } from './types.ts';

type Session = NonNullable<SiteDetails['sessions']>['nodes'][number];
type Grant = NonNullable<Session['grants']>[number];

const SHAPES: Readonly<Record<SessionState, ShapeName>> = {
  ACTIVE: 'up',
  SUSPENDED: 'stale',
  CLOSED: 'down',
  EXPIRED: 'down',
};

type SessionsProps = {
  readonly site: SiteDetails;
  /** Whether the viewer owns the site and may end sessions. Administrators may only read. */
  readonly canEnd: boolean;
  readonly onChange: () => void;
};

export function SiteSessions({ site, canEnd, onChange }: SessionsProps) {
  const [error, setError] = useState<RequestError | null>(null);
  const run = (act: Promise<unknown>): void => {
    setError(null);
    act.then(onChange, (cause: unknown) => setError(errorOf(cause)));
  };
  const nodes = site.sessions?.nodes ?? [];
  return (
    <Section title="Sessions" about="limited times in which viewers may use the site">
      {error && (
        <ActError title="It was not done." code={error.code}>
          {error.message}
        </ActError>
      )}
      {nodes.length === 0 && <p class="soft">None. The owner opens one with openSiteSession.</p>}
      {nodes.length > 0 && (
        <Table
          caption="Sessions of this site"
          columns={canEnd ? [...COLUMNS, closeColumn(run)] : COLUMNS}
          rows={nodes}
          keyOf={({ sessionId }) => sessionId}
        />
      )}
      {nodes.map(
        (session) => session.grants && <Grants key={session.sessionId} session={session} {...{ canEnd, run }} />,
      )}
    </Section>
  );
}

type Run = (act: Promise<unknown>) => void;

const COLUMNS: readonly Column<Session>[] = [
  {
    head: 'State',
    class: 'c-1',
    cell: ({ state }) => <StateMark shape={SHAPES[state]}>{capitalWord(state)}</StateMark>,
  },
  { head: 'Session', class: 'c-3', names: true, cell: ({ sessionId }) => <ShortId id={sessionId} /> },
  { head: 'Opened', class: 'nw c-off', cell: ({ openedAt }) => <Time at={openedAt} /> },
  { head: 'Ends', class: 'nw c-4', label: 'ends', cell: ({ expiresAt }) => <Until at={expiresAt} /> },
  {
    head: 'Subscribers on this node',
    class: 'r c-5',
    label: 'subscribers',
    cell: ({ subscribers }) => subscribers ?? <Nil why="not shown to the holder of a grant" />,
  },
];

function closeColumn(run: Run): Column<Session> {
  return {
    head: 'Acts',
    quietHead: true,
    class: 'r c-2',
    cell: ({ sessionId, state }) =>
      state === 'ACTIVE' && (
        <button
          class="btn btn-s btn-danger"
          type="button"
          onClick={() => run(request(CloseSessionDocument, { sessionId }))}
        >
          Close
        </button>
      ),
  };
}

type GrantsProps = { readonly session: Session; readonly canEnd: boolean; readonly run: Run };

function Grants({ session, canEnd, run }: GrantsProps) {
  const { sessionId } = session;
  const revoke: Column<Grant> = {
    head: 'Acts',
    quietHead: true,
    class: 'r',
    cell: ({ grantId, revokedAt }) =>
      revokedAt === null && (
        <button
          class="btn btn-s"
          type="button"
          onClick={() => run(request(RevokeGrantDocument, { sessionId, grantId }))}
        >
          Revoke
        </button>
      ),
  };
  return (
    <>
      <h3 class="sub-head">
        Grants of session <ShortId id={sessionId} />
      </h3>
      <Table
        caption={`Grants of session ${sessionId}`}
        columns={canEnd ? [...GRANT_COLUMNS, revoke] : GRANT_COLUMNS}
        rows={session.grants ?? []}
        keyOf={({ grantId }) => grantId}
        look="small"
      />
    </>
  );
}

const GRANT_COLUMNS: readonly Column<Grant>[] = [
  { head: 'Grant', names: true, cell: ({ grantId }) => <ShortId id={grantId} /> },
  { head: 'From', cell: ({ parentId }) => (parentId === null ? 'the owner' : <ShortId id={parentId} />) },
  { head: 'Actions', class: 'fit', cell: ({ actions }) => namesOf(actions) },
  { head: 'Events', class: 'fit', cell: ({ events }) => namesOf(events) },
  { head: 'May share', cell: ({ share }) => (share ? 'yes' : 'no') },
  {
    head: 'Ends',
    class: 'nw',
    cell: ({ revokedAt, expiresAt }) =>
      revokedAt === null ? (
        <Until at={expiresAt} />
      ) : (
        <>
          revoked at <Time at={revokedAt} />
        </>
      ),
  },
];

/** Returns the names as text. Null means everything that the site allows. */
function namesOf(names: readonly string[] | null): string {
  if (names === null) return 'all';
  return names.length === 0 ? 'none' : names.join(', ');
}
