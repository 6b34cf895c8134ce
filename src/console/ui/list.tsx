/**
 * Shows a list that the relay answers in pages: filters, notices, table and pager, or the reason why there are no rows.
 */
import type { ComponentChildren } from 'preact';
import type { CompletenessPartFragment } from '../../../generated/console.ts';
import type { Query } from '../api/query.ts';
import { Sources } from '../shell/relay-notices.tsx';
import { FilterBar, textOf, type BareFilter, type Filter } from './filters.tsx';
import { Icon } from './icons.tsx';
import { CutNotice, Empty, ErrorNotice, Loading } from './notices.tsx';
import { type TableProps, PAGE_SIZE, Table } from './table.tsx';
import { useUrlState, type UrlState } from './url-state.ts';
import { LinkButton, Button } from './values.tsx';
import { plural, sentenceCase } from './text-format.ts';

type Answered<Row> = {
  readonly nodes: readonly Row[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  readonly completeness: CompletenessPartFragment;
};

type ListProps<Row> = {
  /** The noun for the rows, in the singular and in the plural. */
  readonly one: string;
  readonly many: string;
  readonly query: Query<unknown>;
  /** The latest answer; undefined before the first one. */
  readonly list: Answered<Row> | undefined;
  readonly filters?: readonly Filter[];
  readonly bare?: BareFilter;
  /** Whether the list has its own filter bar. False on a page with one bar for several lists. */
  readonly ownFilters?: boolean;
  /** The notices between the filters and the table. */
  readonly notices?: ComponentChildren;
  /** The text of the line under the table. Absent: the number of rows. */
  readonly about?: string;
  /** Whether the line states that some rows are not shown. Absent: it does if another page follows. */
  readonly isCut?: boolean;
  /** Shown instead of the table if no filter is set and there are no rows. */
  readonly empty: ComponentChildren;
  readonly size?: number;
  /**
   * What the list still shows of a silent node, as the beginning of a sentence. Absent: no row depends on a single
   * node.
   */
  readonly held?: string;
};

/** The table, or children that replace it. Without `rows`, the table shows the rows of the answer. */
type ListTable<Row> =
  | (Omit<TableProps<Row>, 'rows' | 'none'> & { readonly rows?: readonly Row[]; readonly children?: undefined })
  | { readonly children: ComponentChildren; readonly columns?: undefined; readonly rows?: undefined };

/** Returns the variables that request the page of a list that the URL names. */
export function pageOf(values: UrlState['values'], size = PAGE_SIZE) {
  return { first: size, after: values['after'] ?? null };
}

/** Shows the list. The cursor of the shown page is in the URL, as `after`. */
export function List<Row>(props: ListProps<Row> & ListTable<Row>) {
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
  /** The number of rows of the next page. Absent: it is unknown, and the link only offers to read on. */
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

/** States that no row matches the filter, and offers to remove parts of the filter. */
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
