/** Defines the columns of tables of streams, on the history page and on the page of a user. */
import type { StreamsQuery } from '../../generated/console.ts';
import { Nil } from '../ui/empty.tsx';
import { whole } from '../ui/format.ts';
import { streamHref } from '../ui/links.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';

type StreamRow = Pick<
  StreamsQuery['streams']['nodes'][number],
  'key' | 'suffix' | 'messageCount' | 'firstAt' | 'lastAt'
>;

export const STREAM_COLUMNS: readonly Column<StreamRow>[] = [
  { head: 'Stream', class: 'c-1', names: true, cell: (row) => <a href={streamHref(row.key)}>{row.suffix}</a> },
  {
    head: 'Messages',
    class: 'r c-2',
    label: 'messages',
    cell: ({ messageCount }) =>
      messageCount === null ? <Nil why="this store cannot count them cheaply" /> : whole(messageCount),
  },
  { head: 'Oldest', class: 'r nw c-3', label: 'oldest', cell: ({ firstAt }) => timeOf(firstAt) },
  { head: 'Newest', class: 'r nw c-4', label: 'newest', cell: ({ lastAt }) => timeOf(lastAt) },
];

function timeOf(at: string | null) {
  return at === null ? <Nil why="this store cannot tell it cheaply" /> : <Ago at={at} />;
}
