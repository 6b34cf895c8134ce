/** Defines the columns of tables of admission scopes, on the capacity page and on the overview. */
import { percent, whole } from '../ui/format.ts';
import { Nil } from '../ui/empty.tsx';
import type { Column } from '../ui/table.tsx';

export type Scope = { readonly scopeId: string; readonly reservedCommands: number; readonly limit: number | null };

/** A scope that uses at least this fraction of its limit is shown as nearly full. */
const NEARLY_FULL = 0.9;

export const SCOPE_COLUMNS: readonly Column<Scope>[] = [
  { head: 'Scope', names: true, cell: ({ scopeId }) => scopeId },
  { head: 'Share', quietHead: true, class: 'bar-col', cell: (scope) => <Bar scope={scope} /> },
  { head: 'Held', class: 'r nw', cell: (scope) => <Held scope={scope} /> },
  {
    head: 'Limit',
    class: 'r',
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
