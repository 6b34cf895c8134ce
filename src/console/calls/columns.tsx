/** Defines the columns of tables of calls, on the calls page and on the page of a client. */
import type { CallRowFragment } from '../../generated/console.ts';
import { now } from '../api/visible.ts';
import { Nil } from '../ui/empty.tsx';
import { duration, plural } from '../ui/format.ts';
import { ShortId } from '../ui/id.tsx';
import { callHref, ClientLink } from '../ui/links.tsx';
import { CommandMark } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { reasonText } from '../ui/words.ts';

export const CALL_COLUMNS: readonly Column<CallRowFragment>[] = [
  { head: 'State', class: 'c-1', cell: (row) => <CommandMark {...row} /> },
  { head: 'Action', class: 'c-3', names: true, cell: (row) => <a href={callHref(row)}>{row.action}</a> },
  { head: 'Client', class: 'fit c-5 c-wide', cell: (row) => <ClientLink {...row} /> },
  { head: 'Command', class: 'c-4 c-end nw', cell: (row) => <ShortId id={row.commandId} href={callHref(row)} /> },
  {
    head: 'Node',
    class: 'nw c-off',
    cell: (row) => row.nodeId ?? <Nil why="no node: its client was not connected" />,
  },
  { head: 'Admitted, UTC', class: 'nw c-7', label: 'admitted', cell: (row) => <Time at={row.admittedAt} exact /> },
  { head: 'Took', class: 'r nw c-2 c-end', cell: (row) => <Took row={row} /> },
  { head: 'Why', class: 'why c-6 c-wide', cell: (row) => whyText(row) },
];

function Took({ row }: { readonly row: CallRowFragment }) {
  if (row.durationMs !== null) return <>{duration(row.durationMs)}</>;
  return <span class="soft">{duration(Math.max(0, now.value - Date.parse(row.admittedAt)))} so far</span>;
}

/** Returns why a call ended as it did, or what it is waiting for. */
function whyText(row: CallRowFragment): string {
  const late = row.lateResults > 0 ? plural(row.lateResults, 'late result') : '';
  const why = row.outcome === null ? runningText(row) : endText(row);
  return [why, late].filter((part) => part !== '').join(' · ');
}

/** Returns the client's message, or the relay's reason for the end. */
function endText({ code, message, reason }: CallRowFragment): string {
  if (code !== null && message !== null) return `${reasonText(code)}: ${message}`;
  return reason === null ? '' : reasonText(reason);
}

function runningText(row: CallRowFragment): string {
  return row.stage === 'ADMITTED' ? 'Client away; it may still connect' : '';
}
