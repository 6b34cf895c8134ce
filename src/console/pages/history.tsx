/** Shows the history page: the streams of one user, and the retained messages of one stream. */
import { isAdmin, viewer } from '../shell/facts.tsx';
import { Empty } from '../ui/empty.tsx';
import { FilterBar, type Filter } from '../ui/filters.tsx';
import { PageHead } from '../ui/page.tsx';
import { useUrlState } from '../ui/url-state.ts';
import { pagePath } from '../base.ts';
import { StreamMessages } from './messages.tsx';
import { StreamList } from './streams.tsx';

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
      {userId === undefined ? <ChooseUser /> : <StreamList userId={userId} prefix={values['prefix'] ?? null} />}
    </>
  );
}

function ChooseUser() {
  return (
    <Empty
      title="Whose history?"
      mark="users"
      acts={
        <a class="btn" href={pagePath('users')}>
          Choose among users
        </a>
      }
    >
      <p>
        Streams belong to users. Write a user’s id into the field above, such as <code>user:alice</code>.
      </p>
    </Empty>
  );
}
