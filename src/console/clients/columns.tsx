/** Defines the columns of tables of clients, on the clients page and on the page of a user. */
import type { ClientRowFragment } from '../../generated/console.ts';
import { isSilent } from '../shell/facts.tsx';
import { Count } from '../ui/empty.tsx';
import { ClientLink } from '../ui/links.tsx';
import { ConnectionMark } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, Time } from '../ui/time.tsx';
import { capitalWord, HEARTBEAT } from '../ui/words.ts';

export const CLIENT_COLUMNS: readonly Column<ClientRowFragment>[] = [
  {
    head: 'Status',
    class: 'c-1',
    cell: (row) => <ConnectionMark status={row.status} recorded={isSilent(row.nodeId)} />,
  },
  { head: 'Client', class: 'c-3', names: true, cell: (row) => <ClientLink {...row} /> },
  { head: 'Type', class: 'c-4 c-end', cell: (row) => capitalWord(row.clientType) },
  { head: 'Node', class: 'nw c-5', label: 'node', cell: (row) => row.nodeId },
  {
    head: 'Link',
    class: 'nw c-off',
    cell: (row) => (row.status === 'DISCONNECTED' ? 'Down' : HEARTBEAT[row.heartbeat]),
  },
  { head: 'Queued', class: 'r c-6 c-end', label: 'queued', cell: (row) => <Count value={row.queued} /> },
  { head: 'In flight', class: 'r c-7', label: 'in flight', cell: (row) => <Count value={row.inFlight} /> },
  { head: 'Actions', class: 'r c-off', cell: (row) => <Count value={row.actionNames.length} /> },
  { head: 'Connected, UTC', class: 'nw c-off', cell: (row) => <Time at={row.connectedAt} /> },
  { head: 'Last seen', class: 'r nw c-2 c-end', cell: (row) => <Ago at={row.lastSeenAt} /> },
];
