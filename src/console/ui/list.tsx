/**
 * Shows a list that the relay answers in pages: filters, notices, the table and the line under it, or why there are no
 * rows.
 */
import type { ComponentChildren } from 'preact';
import type { CompletenessPartFragment } from '../../generated/console.ts';
import type { Query } from '../api/query.ts';
import { Sources } from '../shell/sources.tsx';
import { Loading } from './empty.tsx';
import { FilterBar, isFiltered, NoMatch, type Filter } from './filters.tsx';
import { CutNotice, ErrorNotice } from './notice.tsx';
import { PAGE_SIZE } from './page-size.ts';
import { Pager } from './page.tsx';
import { useUrlState } from './url-state.ts';

type Answered = {
  readonly nodes: readonly unknown[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  readonly completeness: CompletenessPartFragment;
};

type ListProps = {
  /** The noun for the rows, in the singular and in the plural. */
  readonly one: string;
  readonly many: string;
  readonly query: Query<unknown>;
  /** The latest answer. Undefined before the first one. */
  readonly list: Answered | undefined;
  /** The number of rows that the table shows, if it differs from the rows of the answer. */
  readonly shown?: number;
  readonly filters?: readonly Filter[];
  /** The name of the filter that takes words without a name. */
  readonly bare?: string;
  /** Whether the list has its own bar of filters. False on a page that has one bar for several lists. */
  readonly ownFilters?: boolean;
  /** The notices that are shown between the filters and the table. */
  readonly notices?: ComponentChildren;
  /** The table. */
  readonly children: ComponentChildren;
  /** The text of the line under the table. */
  readonly about: string;
  /** The content that is shown in place of the table when no filter is set and there is no row. */
  readonly empty: ComponentChildren;
  readonly size?: number;
  /**
   * What the list still shows of a silent node, as the beginning of a sentence. Absent: the rows do not depend on a
   * single node.
   */
  readonly held?: string;
};

const NO_FILTERS: readonly Filter[] = [];

/** Shows the list. The URL has the cursor of the shown page as `after`. */
export function List(props: ListProps) {
  const { one, many, query, list, filters = NO_FILTERS, bare, ownFilters = true, notices, children, empty } = props;
  const { about, held, size = PAGE_SIZE, shown = list?.nodes.length ?? 0 } = props;
  const { values, hrefWith } = useUrlState();
  const hasNext = list?.pageInfo.hasNextPage ?? false;
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
      {shown > 0 && (
        <>
          {children}
          <Pager
            first={values['after'] ? hrefWith({ after: null }) : null}
            next={hasNext ? hrefWith({ after: list?.pageInfo.endCursor ?? null }) : null}
            size={size}
            isCut={hasNext}
          >
            {about}
          </Pager>
        </>
      )}
      {list && shown === 0 && (isFiltered(filters, values) ? <NoMatch what={one} filters={filters} /> : empty)}
    </>
  );
}
