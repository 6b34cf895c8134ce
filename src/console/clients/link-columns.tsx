/**
 * Defines the columns of tables of links that opened and ended, on the page of a client and in the link history of a
 * user.
 */
import type { LinkRowFragment } from '../../generated/console.ts';
import { Nil } from '../ui/empty.tsx';
import { duration } from '../ui/format.ts';
import { ShortId } from '../ui/id.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { CAUSE } from '../ui/words.ts';

export const LINK_COLUMNS: readonly Column<LinkRowFragment>[] = [
  { head: 'When', class: 'nw c-2 c-end', cell: ({ at }) => <Ago at={at} /> },
  { head: 'What', class: 'c-1', names: true, cell: whatOf },
  { head: 'Open for', class: 'r nw c-5', label: 'open for', cell: openFor },
  { head: 'Node', class: 'nw c-6', label: 'node', cell: ({ link }) => link?.nodeId },
  { head: 'Instance', class: 'nw c-off', cell: ({ instanceId }) => instanceId && <ShortId id={instanceId} /> },
];

function whatOf({ kind, link, instanceId }: LinkRowFragment) {
  const cause = link?.cause;
  if (kind === 'LINK_REPLACED') return 'Replaced by a newer link';
  if (kind === 'LINK_CLOSED') return `Closed${cause ? `: ${CAUSE[cause]}` : ''}`;
  if (!link?.previousInstanceId) return 'Opened';
  return link.previousInstanceId === instanceId ? 'Opened again' : 'Opened by another instance';
}

function openFor({ link }: LinkRowFragment) {
  const ms = link?.openMs ?? null;
  return ms === null ? <Nil why="it opened here" /> : duration(ms);
}
