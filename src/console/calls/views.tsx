/** Shows links to the usual filters of calls. */
import { useLocation } from 'preact-iso';
import { pagePath } from '../base.ts';

const VIEWS: readonly { readonly name: string; readonly query: string }[] = [
  { name: 'All', query: '' },
  { name: 'Waiting for a client', query: 'stage=admitted' },
  { name: 'Failed', query: 'outcome=failed' },
  { name: 'Expired', query: 'outcome=expired' },
  { name: 'Outcome unknown', query: 'outcome=outcome_unknown' },
];

export function CallViews() {
  const { url } = useLocation();
  const [, query = ''] = url.split('?');
  return (
    <nav class="views" aria-label="Views">
      {VIEWS.map((view) => (
        <a
          key={view.name}
          href={pagePath(view.query === '' ? 'calls' : `calls?${view.query}`)}
          aria-current={query === view.query ? 'page' : undefined}
        >
          {view.name}
        </a>
      ))}
    </nav>
  );
}
