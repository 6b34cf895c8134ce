/** Defines the columns of tables of waiting callers. */
import type { WaitRowFragment } from '../../generated/console.ts';
import { now } from '../api/visible.ts';
import { age } from '../ui/format.ts';
import { callHref, ClientLink } from '../ui/links.tsx';
import { StageMark } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Until } from '../ui/time.tsx';
import { WAIT_FOR } from '../ui/words.ts';

/** A wait that is older than this, in milliseconds, is shown as a long wait. */
export const LONG_WAIT_MS = 60_000;

export const WAIT_COLUMNS: readonly Column<WaitRowFragment>[] = [
  { head: 'Stage', class: 'c-1', cell: (row) => <StageMark stage={row.stage} /> },
  { head: 'Action', class: 'c-3', names: true, cell: (row) => <a href={callHref(row)}>{row.action}</a> },
  { head: 'Client', class: 'fit c-4 c-end', cell: (row) => <ClientLink {...row} /> },
  { head: 'Waits for', class: 'nw c-5', label: 'for', cell: (row) => WAIT_FOR[row.waitFor] },
  { head: 'Caller on', class: 'nw c-off', cell: (row) => row.callerNodeId },
  { head: 'Client on', class: 'nw c-off', cell: (row) => row.nodeId ?? 'no node' },
  { head: 'Gives up', class: 'nw c-off', cell: (row) => <Until at={row.timesOutAt} /> },
  { head: 'Waits', class: 'r nw c-2 c-end', cell: (row) => <Waited row={row} /> },
];

function Waited({ row }: { readonly row: WaitRowFragment }) {
  const ms = now.value - Date.parse(row.createdAt);
  return <span class={ms > LONG_WAIT_MS ? 'over' : undefined}>{age(ms)}</span>;
}
