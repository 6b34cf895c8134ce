/** Shows a table of retained messages. Payloads are read only when the user reveals them. */
import type { PayloadState } from './types.ts';
import { useState } from 'preact/hooks';
import { bytes } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { ShortId } from '../ui/id.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { capitalWord } from '../ui/words.ts';
import { MessageReveal } from './reveal.tsx';
import type { HistoryRow } from './types.ts';

type MessagesTableProps = { readonly rows: readonly HistoryRow[]; readonly caption: string };

export function MessagesTable({ rows, caption }: MessagesTableProps) {
  const [revealed, setRevealed] = useState<HistoryRow | null>(null);
  const columns: readonly Column<HistoryRow>[] = [
    { head: 'Retained, UTC', class: 'nw c-2 c-end', cell: ({ at }) => <Time at={at} exact /> },
    { head: 'Kind', class: 'c-1', names: true, cell: ({ kind }) => capitalWord(kind) },
    ...(rows.some(({ stream }) => stream !== undefined) ? [STREAM] : []),
    ...(rows.some(({ commandId }) => commandId) ? [COMMAND] : []),
    { head: 'Size', class: 'r nw c-4 c-end', cell: ({ payloadBytes }) => bytes(payloadBytes) },
    {
      head: 'Payload',
      quietHead: true,
      class: 'payload-cell c-5 c-wide',
      cell: (row) => <PayloadCell row={row} onReveal={() => setRevealed(row)} />,
    },
  ];
  return (
    <>
      {rows.length === 0 ? (
        <p class="soft">None is retained.</p>
      ) : (
        <Table caption={caption} columns={columns} rows={rows} keyOf={({ id }) => id} look="mid" />
      )}
      {revealed && <MessageReveal key={revealed.id} row={revealed} onClose={() => setRevealed(null)} />}
    </>
  );
}

const STREAM: Column<HistoryRow> = {
  head: 'Stream',
  class: 'c-3',
  cell: ({ stream }) => stream?.slice(stream.indexOf('/') + 1),
};

const COMMAND: Column<HistoryRow> = {
  head: 'Command',
  class: 'c-3',
  cell: ({ commandId, commandHref }) =>
    commandId ? <ShortId id={commandId} {...(commandHref && { href: commandHref })} /> : null,
};

const ABSENT: Partial<Record<PayloadState, string>> = {
  NONE: 'No payload',
  EXPIRED: 'No longer kept',
  UNAVAILABLE: 'Cannot be read now',
};

function PayloadCell({ row, onReveal }: { readonly row: HistoryRow; readonly onReveal: () => void }) {
  if (row.error) return <span class="soft">{row.error.message}</span>;
  const absent = ABSENT[row.payloadState];
  if (absent) return <span class="soft">{absent}</span>;
  return (
    <button class="btn btn-s" type="button" onClick={onReveal}>
      <Icon name="eye" />
      Reveal…
    </button>
  );
}
