/** Shows when a page was read, and a button that reads it again. For pages that no event updates. */
import type { Query } from '../api/query.ts';
import { useKeys } from '../shell/keys.ts';
import { clock } from './format.ts';

/** Shows the time of the oldest answer. The button and the key `r` send all requests again. */
export function AsOf({ queries }: { readonly queries: readonly Query<unknown>[] }) {
  const times = queries.flatMap(({ asOf }) => asOf ?? []);
  const refresh = (): void => queries.forEach((query) => query.again());
  useKeys({ r: refresh });
  return (
    <span class="as-of">
      {times.length > 0 && <span>As of {clock(new Date(Math.min(...times)).toISOString())} UTC</span>}
      <button
        class="btn"
        type="button"
        onClick={refresh}
        aria-keyshortcuts="r"
        aria-disabled={queries.some(({ loading }) => loading)}
      >
        Refresh
      </button>
    </span>
  );
}
