/**
 * Shows tables, which become cards on a phone, with a keyboard cursor that opens rows and a mark for rows whose state
 * is only the last recorded one.
 */
import { Component, type ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useKeys } from './keys.ts';
import { nameClass } from './words.ts';
import { zoneName } from './zones.ts';

/** The number of rows on one page of a list: enough to fill a screen, few enough that the page stays quick. */
export const PAGE_SIZE = 40;

export type Column<Row> = {
  readonly head: string;
  /** Whether only screen readers read the column's heading. */
  readonly quietHead?: boolean;
  /** Whether the column has times of day. Its heading then names their zone. */
  readonly isTime?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
  /** The CSS classes: `r` for figures, `c-1` to `c-9` for the place on a card, `c-off` to hide it on a narrow page. */
  readonly class?: string;
  /** The label that a card shows before the value. */
  readonly label?: string;
  /** Whether the cell is the name of its row. */
  readonly names?: boolean;
};

type Cell<Row> = Column<Row>['cell'];

/** Returns a column by its heading, the classes of its cells, and what a cell shows. */
export function column<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { head, class: classes, cell };
}

/** A column whose cards show the heading before the value. */
export function labelled<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), label: head.toLowerCase() };
}

/** The column that names the row. */
export function nameColumn<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), names: true };
}

/** A column of times of day. */
export function timeColumn<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), isTime: true };
}

/** A column whose heading only screen readers read. */
export function quietColumn<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), quietHead: true };
}

export type TableProps<Row> = {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** The page that a click on a row opens, or Enter for the row under the cursor. Absent: none, and no cursor. */
  readonly hrefOf?: ((row: Row) => string) | undefined;
  readonly isRecorded?: (row: Row) => boolean;
  /**
   * The look of the table. `mid`: all rows have the same height. `two-lines`: a row has two lines on a tablet.
   * `figures`: it stays a table on a phone.
   */
  readonly look?: keyof typeof LOOKS;
  /** The sentence that is shown in place of a table without rows. Absent: the heads of its columns are. */
  readonly none?: string;
};

const LOOKS = {
  mid: 'tbl tbl-mid cards',
  'two-lines': 'tbl cards two-lines',
  small: 'tbl tbl-s cards',
  figures: 'tbl tbl-s',
  plain: 'tbl cards',
};

export function Table<Row>(props: TableProps<Row>) {
  const { caption, columns, rows, keyOf, hrefOf, isRecorded, look = 'plain', none } = props;
  const cursor = useCursor(rows, { keyOf, hrefOf });
  if (rows.length === 0 && none !== undefined) return <p class="soft">{none}</p>;
  return (
    <div
      class="scroll"
      tabIndex={look === 'small' || look === 'figures' ? 0 : undefined}
      role="group"
      aria-label={caption}
    >
      <table class={LOOKS[look]} role="table" ref={cursor.table}>
        <caption class="sr">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ head, quietHead, isTime, class: classes = '' }) => (
              <th key={head} role="columnheader" scope="col" class={headClass(classes)}>
                {quietHead ? <span class="sr">{head}</span> : head}
                {isTime && `, ${zoneName()}`}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup" class={hrefOf && 'opens'} onClick={cursor.onClick} onAuxClick={cursor.onClick}>
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

/** A row that is rendered again only when it changed: a live list changes a few rows several times a second. */
class TableRow<Row> extends Component<TableRowProps<Row>> {
  override shouldComponentUpdate(next: TableRowProps<Row>): boolean {
    const { row, columns, class: classes } = this.props;
    return row !== next.row || columns !== next.columns || classes !== next.class;
  }

  override render({ rowKey, class: classes, columns, row }: TableRowProps<Row>) {
    return (
      <tr role="row" class={classes || undefined} data-key={rowKey}>
        {columns.map((column) => (
          <TableCell key={column.head} column={column} row={row} />
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

function TableCell<Row>({ column, row }: { readonly column: Column<Row>; readonly row: Row }) {
  const { names, cell, label, class: classes } = column;
  const shown = cell(row);
  const long = typeof shown === 'string' && !classes?.includes('why') ? nameClass(shown) : undefined;
  const content = long ? <span class={long}>{shown}</span> : shown;
  return names ? (
    <th role="rowheader" scope="row" class={`main-cell ${classes ?? ''}`}>
      {content}
    </th>
  ) : (
    <td role="cell" class={classes} data-l={label}>
      {content}
    </td>
  );
}

/**
 * Keeps a cursor over the rows: the keys `j` and `k` move it, Enter opens its row, as a click on a row does. The cursor
 * stays on its row when other rows are added or removed.
 */
function useCursor<Row>(rows: readonly Row[], { keyOf, hrefOf }: Pick<TableProps<Row>, 'keyOf' | 'hrefOf'>) {
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
  const onClick = (event: MouseEvent): void => {
    const { target } = event;
    if (!hrefOf || !(target instanceof Element) || target.closest('a, button, input, select, summary')) return;
    // Text that was selected with the pointer is meant to be copied.
    if (event.button > 1 || document.getSelection()?.isCollapsed === false) return;
    const clicked = target.closest('tr')?.dataset['key'];
    const row = rows.find((candidate) => keyOf(candidate) === clicked);
    if (row === undefined) return;
    if (event.button === 1 || event.ctrlKey || event.metaKey || event.shiftKey) window.open(hrefOf(row), '_blank');
    else route(hrefOf(row));
  };
  useKeys(hrefOf && rows.length > 0 ? { j: () => move(1), k: () => move(-1), Enter: open } : {});
  useEffect(() => {
    table.current?.querySelector('.is-cursor')?.scrollIntoView({ block: 'nearest' });
  }, [key]);
  return { key, table, onClick };
}
