/**
 * Shows tables, which become cards on a phone, with a keyboard cursor that opens rows and a mark for rows whose state
 * is only the last recorded one. Also shows lists in pages, and keeps their rows up to date with live changes.
 */
import { Component, type ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CompletenessPartFragment } from '../../../generated/console.ts';
import type { Query } from '../api/query.ts';
import { Sources } from '../shell/facts.tsx';
import { useKeys } from './keys.ts';
import { useUrlState, type UrlState } from './url-state.ts';
import { FilterBar, textOf, type BareFilter, type Filter } from './filters.tsx';
import { CutNotice, Empty, ErrorNotice, Loading } from './notices.tsx';
import { Icon } from './icons.tsx';
import { LinkButton, Button } from './values.tsx';
import { whole } from './amounts.ts';
import { zoneName } from './zones.ts';
import { nameClass, plural, sentenceCase } from './words.ts';

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

type TableProps<Row> = {
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

// Shows a list that the relay answers in pages: filters, notices, table and pager, or why there are no rows.

type Answered<Row> = {
  readonly nodes: readonly Row[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  readonly completeness: CompletenessPartFragment;
};

type ListParts<Row> = {
  /** The noun for the rows, in the singular and in the plural. */
  readonly one: string;
  readonly many: string;
  readonly query: Query<unknown>;
  /** The latest answer. Undefined before the first one. */
  readonly list: Answered<Row> | undefined;
  readonly filters?: readonly Filter[];
  readonly bare?: BareFilter;
  /** Whether the list has its own bar of filters. False on a page that has one bar for several lists. */
  readonly ownFilters?: boolean;
  /** The notices that are shown between the filters and the table. */
  readonly notices?: ComponentChildren;
  /** The text of the line under the table. Absent: the number of rows. */
  readonly about?: string;
  /** Whether the line has the mark of rows that are not shown. Absent: it has while another page follows. */
  readonly isCut?: boolean;
  /** The content that is shown in place of the table when no filter is set and there is no row. */
  readonly empty: ComponentChildren;
  readonly size?: number;
  /** What the list still shows of a silent node, as the beginning of a sentence. Absent: no row depends on one node. */
  readonly held?: string;
};

/** The table, or children in its place. Without `rows`, the table has the rows of the answer. */
type ListTable<Row> =
  | (Omit<TableProps<Row>, 'rows' | 'none'> & { readonly rows?: readonly Row[]; readonly children?: undefined })
  | { readonly children: ComponentChildren; readonly columns?: undefined; readonly rows?: undefined };

/** Returns the variables that request the page of a list which the URL names. */
export function pageOf(values: UrlState['values'], size = PAGE_SIZE) {
  return { first: size, after: values['after'] ?? null };
}

/** Shows the list. The URL has the cursor of the shown page as `after`. */
export function List<Row>(props: ListParts<Row> & ListTable<Row>) {
  const { one, many, query, list, filters = [], bare, ownFilters = true, notices, empty, held } = props;
  const rows = props.rows ?? list?.nodes ?? [];
  const { size = PAGE_SIZE, about = `${plural(rows.length, one)} on this page.` } = props;
  const { values, hrefWith } = useUrlState();
  const next = list?.pageInfo.hasNextPage ? list.pageInfo.endCursor : null;
  const isFiltered = filters.some(({ name }) => values[name]);
  return (
    <>
      {ownFilters && filters.length > 0 && <FilterBar what={many} filters={filters} bare={bare} />}
      <ErrorNotice query={query} what={many} />
      {held === undefined ? (
        <CutNotice completeness={list?.completeness} />
      ) : (
        <Sources completeness={list?.completeness} held={held} />
      )}
      {notices}
      {!list && query.loading && <Loading what={many} />}
      {rows.length > 0 && (
        <>
          {props.columns ? <Table {...props} rows={rows} /> : props.children}
          <Pager
            first={values['after'] ? hrefWith({ after: null }) : null}
            next={next === null ? null : hrefWith({ after: next })}
            size={size}
            isCut={props.isCut ?? next !== null}
          >
            {about}
          </Pager>
        </>
      )}
      {list && rows.length === 0 && next !== null && (
        <Pager first={values['after'] ? hrefWith({ after: null }) : null} next={hrefWith({ after: next })} isCut>
          No {one} that was read so far matches.
        </Pager>
      )}
      {list && rows.length === 0 && next === null && (isFiltered ? <NoMatch what={one} filters={filters} /> : empty)}
    </>
  );
}

type PagerProps = {
  readonly children: ComponentChildren;
  readonly isCut?: boolean;
  readonly first: string | null;
  readonly next: string | null;
  /** The number of rows of the next page. Absent: the link says that reading goes on. */
  readonly size?: number;
};

export function Pager({ children, isCut = false, first, next, size }: PagerProps) {
  return (
    <div class="pager">
      <p class="cut">
        {isCut && <Icon name="cut" />}
        <span>{children}</span>
      </p>
      {(first ?? next) !== null && (
        <span class="pager-acts">
          {first !== null && <LinkButton text="First page" href={first} />}
          {next !== null && <LinkButton text={size === undefined ? 'Read on' : `Next ${size}`} href={next} />}
        </span>
      )}
    </div>
  );
}

/** Shows that no row matches the filter, names the filter, and offers to remove parts of it. */
function NoMatch({ what, filters }: { readonly what: string; readonly filters: readonly Filter[] }) {
  const state = useUrlState();
  const set = filters.filter(({ name }) => state.values[name]);
  const parts = set.map(
    (filter) => `${filter.label.toLowerCase()} is ${textOf(filter, state.values[filter.name] ?? '')}`,
  );
  const acts = [
    set.map(({ name, label }) => (
      <button key={name} class="btn" type="button" onClick={() => state.change({ [name]: null })}>
        Remove “{label.toLowerCase()}: {state.values[name]}”
      </button>
    )),
    set.length > 1 && (
      <Button
        look="btn-quiet"
        text="Clear the filter"
        onClick={() => state.change(Object.fromEntries(set.map(({ name }) => [name, null])))}
      />
    ),
  ];
  return (
    <Empty title={`No ${what} matches`} acts={acts}>
      {sentenceCase(parts.join(', '))}.
    </Empty>
  );
}

// Keeps the rows of a list up to date. Known rows change in place; new ones wait until the user shows them.

/** The time for which changes are collected before they are shown together, in milliseconds. */
const GATHER_MS = 250;
/** The most new rows that are counted, and changes that are kept for an awaited answer: pages stay open for hours. */
const FRESH_MAX = 1_000;

type LiveRows<Row> = {
  /** The rows that were read, each in its latest known version. With `follow`, new rows come before them. */
  readonly rows: readonly Row[];
  /** The number of rows that have appeared since the list was read and are not shown; counted up to `FRESH_MAX`. */
  readonly fresh: number;
  /** Adds one change. `isNew`: a row that the list does not show counts as new. */
  readonly push: (row: Row, isNew: boolean) => void;
};

type LiveOptions<Row> = {
  readonly keyOf: (row: Row) => string;
  /** The query that reads the rows. */
  readonly query: Pick<Query<unknown>, 'loading' | 'sent'>;
  /** Whether new rows are shown at once, the latest first. At most PAGE_SIZE rows are then shown. */
  readonly follow?: boolean;
};

type Changes<Row> = {
  readonly changed: ReadonlyMap<string, Row>;
  /** The latest new rows by their keys, at most PAGE_SIZE. */
  readonly latest: ReadonlyMap<string, Row>;
  readonly fresh: number;
};

/** Creates the store of changes that arrived since the list was read. */
function gathering<Row>() {
  return {
    changed: new Map<string, Row>(),
    latest: new Map<string, Row>(),
    /** The keys of new rows, so that each row is counted once. */
    keys: new Set<string>(),
  };
}

const NO_ROWS: readonly never[] = [];

/**
 * Returns the rows with their live changes. When `read` is replaced, the changes that arrived before its request was
 * sent are dropped. Later ones are kept, because the relay may have read the rows before they happened. `read` is
 * undefined before the first answer.
 */
export function useLiveRows<Row>(
  read: readonly Row[] = NO_ROWS,
  { keyOf, query: { loading, sent }, follow = false }: LiveOptions<Row>,
): LiveRows<Row> {
  const [shown, setShown] = useState<Changes<Row>>(() => nothing());
  const gathered = useRef(gathering<Row>());
  const whileLoading = useRef(new Map<string, { readonly row: Row; readonly isNew: boolean }>());
  const known = useMemo(() => new Set(read.map(keyOf)), [read]);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  /** Returns whether the change concerns the list. */
  const gather = (row: Row, isNew: boolean): boolean => {
    const key = keyOf(row);
    const { changed, latest, keys } = gathered.current;
    if (known.has(key)) changed.set(key, row);
    else if (isNew || latest.has(key)) {
      latest.set(key, row);
      if (keys.size < FRESH_MAX) keys.add(key);
      boundSize(latest, PAGE_SIZE);
    } else return false;
    return true;
  };
  const show = (): void => {
    const { changed, latest, keys } = gathered.current;
    setShown({ changed: new Map(changed), latest: new Map(latest), fresh: keys.size });
  };
  // A layout effect runs at once, so that no change that arrives after this answer is dropped.
  useLayoutEffect(() => {
    gathered.current = gathering();
    for (const { row, isNew } of whileLoading.current.values()) gather(row, isNew);
    whileLoading.current.clear();
    show();
  }, [read]);
  useLayoutEffect(() => whileLoading.current.clear(), [sent]);
  useEffect(() => () => void (timer.current !== null && clearTimeout(timer.current)), []);
  const push = (row: Row, isNew: boolean): void => {
    const key = keyOf(row);
    if (loading) {
      whileLoading.current.set(key, { row, isNew: isNew || !!whileLoading.current.get(key)?.isNew });
      boundSize(whileLoading.current, FRESH_MAX);
    }
    if (!gather(row, isNew)) return;
    timer.current ??= setTimeout(() => {
      timer.current = null;
      show();
    }, GATHER_MS);
  };
  const rows = read.map((row) => shown.changed.get(keyOf(row)) ?? row);
  if (!follow) return { rows, fresh: shown.fresh, push };
  return { rows: [...[...shown.latest.values()].reverse(), ...rows].slice(0, PAGE_SIZE), fresh: 0, push };
}

/** Deletes the oldest entry of a map that has more than `max` entries. */
function boundSize<Key>(map: Map<Key, unknown>, max: number): void {
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}

function nothing<Row>(): Changes<Row> {
  return { changed: new Map(), latest: new Map(), fresh: 0 };
}

type NewBarProps = { readonly count: number; readonly one: string; readonly many: string; readonly onShow: () => void };

/** Shows a bar above a list. A click on it shows the new rows, so that no row moves under the pointer before that. */
export function NewBar({ count, one, many, onShow }: NewBarProps) {
  return (
    <>
      {count > 0 && (
        <button class="newbar" type="button" onClick={onShow}>
          <Icon name="up" />
          Show {count < FRESH_MAX ? whole(count) : `more than ${whole(FRESH_MAX - 1)}`} new {count === 1 ? one : many}
        </button>
      )}
      <span class="sr" aria-live="polite">
        {count > 0 ? `${count} new` : ''}
      </span>
    </>
  );
}

/** Returns the latest value that was neither null nor undefined: no update takes away what a person works on. */
export function useLatest<Value>(value: Value | null | undefined): Value | null {
  const latest = useRef<Value | null>(null);
  if (value !== null && value !== undefined) latest.current = value;
  return latest.current;
}
