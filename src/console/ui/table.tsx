/**
 * Shows tables, which become cards on a phone. A keyboard cursor opens rows, and rows whose state is only the last
 * recorded one have a mark.
 */
import { Component, type ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useKeys } from './keys.ts';
import { nameClass } from './text-format.ts';
import { zoneName } from './zones.ts';

/** The number of rows on one page of a list: enough to fill a screen, and few enough that the page stays fast. */
export const PAGE_SIZE = 40;

export type Column<Row> = {
  readonly head: string;
  /** Whether only screen readers read the column's heading. */
  readonly quietHead?: boolean;
  /** Whether the column has times of day. Its heading then names their zone. */
  readonly isTime?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
  /**
   * The CSS classes: `r` for figures, `c-1` to `c-9` for the position on a card, `c-off` to hide the column on a narrow
   * page.
   */
  readonly class?: string;
  /** The label that a card shows before the value. */
  readonly label?: string;
  /** Whether the cell is the name of its row. */
  readonly names?: boolean;
};

type Cell<Row> = Column<Row>['cell'];

/** Returns a column with this heading, these CSS classes for its cells, and this content of a cell. */
export function column<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { head, class: classes, cell };
}

/** Returns a column whose cards show the heading before the value. */
export function labelled<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), label: head.toLowerCase() };
}

/** Returns the column with the name of the row. */
export function nameColumn<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), names: true };
}

/** Returns a column of times of day. */
export function timeColumn<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), isTime: true };
}

/** Returns a column whose heading is only for screen readers. */
export function quietColumn<Row>(head: string, classes: string, cell: Cell<Row>): Column<Row> {
  return { ...column(head, classes, cell), quietHead: true };
}

export type TableProps<Row> = {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /**
   * Returns the page that opens by a click on the row, or by Enter if the row is under the cursor. Absent: rows open no
   * page, and there is no cursor.
   */
  readonly hrefOf?: ((row: Row) => string) | undefined;
  readonly isRecorded?: (row: Row) => boolean;
  /**
   * The appearance of the table. `mid`: all rows have the same height. `two-lines`: a row has two lines on a tablet.
   * `figures`: the table does not become cards on a phone.
   */
  readonly look?: keyof typeof LOOKS;
  /** The sentence shown instead of a table without rows. Absent: the headings are shown. */
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

/**
 * A row that is rendered again only if it has changed, because a live list changes a few rows several times a second.
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
          <TableCell key={column.head} column={column} row={row} />
        ))}
      </tr>
    );
  }
}

/** Returns the CSS classes for a column's heading: its alignment, and whether a narrow page hides the column. */
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
 * Keeps a cursor on a row: the keys `j` and `k` move it, and Enter opens the row, as a click does. The cursor stays on
 * its row when other rows are added or removed.
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
    // Not a click if text was selected with the pointer, because the user wants to copy it.
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
