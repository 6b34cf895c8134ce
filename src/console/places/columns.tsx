/** Defines the columns of the tables of execution contexts and of browser windows. */
import type { ContextRowFragment, ContextStatus, WindowRowFragment, WindowStatus } from '../../generated/console.ts';
import { Count, Nil } from '../ui/empty.tsx';
import { ClientLink } from '../ui/links.tsx';
import type { ShapeName } from '../ui/shape.tsx';
import { StateMark } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, Since } from '../ui/time.tsx';
import { capitalWord } from '../ui/words.ts';

const CONTEXT_SHAPES: Readonly<Record<ContextStatus, ShapeName>> = {
  ACTIVE: 'up',
  IDLE: 'up',
  STALE: 'stale',
  CLOSED: 'down',
};
const WINDOW_SHAPES: Readonly<Record<WindowStatus, ShapeName>> = { OPEN: 'up', STALE: 'stale', CLOSED: 'down' };

export const CONTEXT_COLUMNS: readonly Column<ContextRowFragment>[] = [
  {
    head: 'Status',
    class: 'c-1',
    cell: (row) => <StateMark shape={CONTEXT_SHAPES[row.status]}>{capitalWord(row.status)}</StateMark>,
  },
  {
    head: 'Context',
    class: 'c-3',
    names: true,
    cell: (row) => <span title={row.contextId}>{row.title ?? row.contextId}</span>,
  },
  { head: 'Client', class: 'fit c-4 c-end', cell: (row) => <ClientLink {...row} /> },
  { head: 'Ownership', class: 'nw c-off', cell: (row) => capitalWord(row.ownership) },
  { head: 'Window', class: 'nw c-off', cell: (row) => row.windowId ?? <Nil why="in no window" /> },
  { head: 'Task', class: 'fit c-5', label: 'task', cell: (row) => row.taskId ?? <Nil why="no task" /> },
  {
    head: 'For',
    class: 'r nw c-6',
    cell: (row) => (row.taskAssignedAt === null ? <Nil why="no task" /> : <Since at={row.taskAssignedAt} />),
  },
  { head: 'Reported', class: 'r nw c-2 c-end', cell: (row) => <Ago at={row.reportedAt} /> },
];

export const WINDOW_COLUMNS: readonly Column<WindowRowFragment>[] = [
  {
    head: 'Status',
    class: 'c-1',
    cell: (row) => <StateMark shape={WINDOW_SHAPES[row.status]}>{capitalWord(row.status)}</StateMark>,
  },
  { head: 'Window', class: 'c-3', names: true, cell: (row) => row.windowId },
  { head: 'Client', class: 'fit c-4 c-end', cell: (row) => <ClientLink {...row} /> },
  { head: 'Kind', class: 'nw c-off', cell: (row) => kindOf(row) },
  { head: 'Tabs', class: 'r c-off', cell: (row) => <Count value={row.tabCount} /> },
  { head: 'Busy', class: 'r c-5', label: 'busy', cell: (row) => <Count value={row.busyCount} /> },
  { head: 'Idle', class: 'r c-6', label: 'idle', cell: (row) => <Count value={row.idleCount} /> },
  { head: 'Workers', class: 'r c-7', label: 'workers', cell: (row) => workersOf(row) },
  { head: 'Reported', class: 'r nw c-2 c-end', cell: (row) => <Ago at={row.reportedAt} /> },
];

function kindOf(row: WindowRowFragment): string {
  const marks = [
    row.type,
    row.ownership === 'WORKER' ? 'for work' : 'for the user',
    row.focused ? 'in focus' : '',
    row.incognito ? 'incognito' : '',
    row.draining ? 'takes no more workers' : '',
  ];
  return marks.filter((mark) => mark !== '').join(', ');
}

function workersOf(row: WindowRowFragment): string {
  return row.capacity === null ? String(row.workerCount) : `${row.workerCount} of ${row.capacity}`;
}
