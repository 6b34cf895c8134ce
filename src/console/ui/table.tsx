/**
 * Shows tables whose rows can be opened. A table has a keyboard cursor, becomes cards on a phone, and can mark rows
 * whose state is only the last recorded one.
 */
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { useKeys } from '../shell/keys.ts';

export type Column<Row> = {
  readonly head: string;
  /** Whether only screen readers read the column's heading. */
  readonly quietHead?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
  /**
   * The CSS classes of the cell: `r` for figures, `c-1` to `c-9` for its position on a card, `c-off` to hide it on a
   * card.
   */
  readonly class?: string;
  /** The label that a card shows before the value. */
  readonly label?: string;
  /** Whether the cell is the name of its row. */
  readonly names?: boolean;
};

type TableProps<Row> = {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** The page that Enter opens for the row under the keyboard cursor; absent: the table has no cursor. */
  readonly hrefOf?: ((row: Row) => string) | undefined;
  readonly isRecorded?: (row: Row) => boolean;
  /** The look of the table. `mid`: all rows have the same height. `two-lines`: a row has two lines on a tablet. */
  readonly look?: 'mid' | 'two-lines' | 'small' | 'plain';
};

const LOOKS = { mid: 'tbl tbl-mid cards', 'two-lines': 'tbl cards two-lines', small: 'tbl tbl-s', plain: 'tbl cards' };

export function Table<Row>(props: TableProps<Row>) {
  const { caption, columns, rows, keyOf, hrefOf, isRecorded, look = 'plain' } = props;
  const cursor = useCursor(rows, { keyOf, hrefOf });
  return (
    <div class="scroll" tabIndex={look === 'small' ? 0 : undefined} role="group" aria-label={caption}>
      <table class={LOOKS[look]} role="table" ref={cursor.table}>
        <caption class="sr">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ head, quietHead, class: classes = '' }) => (
              <th key={head} role="columnheader" scope="col" class={headClass(classes)}>
                {quietHead ? <span class="sr">{head}</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => {
            const key = keyOf(row);
            const classes = [isRecorded?.(row) && 'is-recorded', cursor.key === key && 'is-cursor'].filter(Boolean);
            return <TableRow key={key} rowKey={key} class={classes.join(' ')} columns={columns} row={row} />;
          })}
        </tbody>
      </table>
    </div>
  );
}

type TableRowProps<Row> = {
  readonly rowKey: string;
  readonly class: string;
  readonly columns: readonly Column<Row>[];
  readonly row: Row;
};

/**
 * A row that is rendered again only when its data changed. A live list changes a few of its rows several times a
 * second.
 */
class TableRow<Row> extends Component<TableRowProps<Row>> {
  override shouldComponentUpdate(next: TableRowProps<Row>): boolean {
    const { row, columns, class: classes } = this.props;
    return row !== next.row || columns !== next.columns || classes !== next.class;
  }

  override render({ rowKey, class: classes, columns, row }: TableRowProps<Row>) {
    return (
      <tr role="row" class={classes || undefined} data-key={rowKey}>
        {columns.map((column) => (
          <Cell key={column.head} column={column} row={row} />
        ))}
      </tr>
    );
  }
}

/** Returns the classes for the column's heading: its alignment, and whether a narrow page hides it. */
function headClass(classes: string): string {
  return classes
    .split(' ')
    .filter((name) => name === 'r' || name === 'c-off')
    .join(' ');
}

function Cell<Row>({ column, row }: { readonly column: Column<Row>; readonly row: Row }) {
  const { names, cell, label, class: classes } = column;
  return names ? (
    <th role="rowheader" scope="row" class={`main-cell ${classes ?? ''}`}>
      {cell(row)}
    </th>
  ) : (
    <td role="cell" class={classes} data-l={label}>
      {cell(row)}
    </td>
  );
}

type CursorOptions<Row> = Pick<TableProps<Row>, 'keyOf' | 'hrefOf'>;

/**
 * Moves a cursor over the rows: the keys `j` and `k` move it, Enter opens its row. The cursor stays on its row when
 * rows are added or removed.
 */
function useCursor<Row>(rows: readonly Row[], { keyOf, hrefOf }: CursorOptions<Row>) {
  const [key, setKey] = useState<string | null>(null);
  const table = useRef<HTMLTableElement>(null);
  const { route } = useLocation();
  const move = (by: number): void => {
    const at = rows.findIndex((row) => keyOf(row) === key);
    const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next !== undefined) setKey(keyOf(next));
  };
  const open = (): boolean => {
    const row = rows.find((candidate) => keyOf(candidate) === key);
    if (row === undefined || !hrefOf) return false;
    route(hrefOf(row));
    return true;
  };
  useKeys(hrefOf ? { j: () => move(1), k: () => move(-1), Enter: open } : {});
  useEffect(() => {
    table.current?.querySelector('.is-cursor')?.scrollIntoView({ block: 'nearest' });
  }, [key]);
  return { key, table };
}
