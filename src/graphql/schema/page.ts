/**
 * Defines what all listings share: Relay connection types with completeness, the arguments of a page, and the costs of
 * paged fields.
 */
import type { ObjectRef, SchemaTypes } from '@pothos/core';
import { invalid } from '../../core/errors.ts';
import { NODE_SILENT_MS, PAGE_DEFAULT, PAGE_MAX } from '../../core/limits.ts';
import type { Completeness, EvidenceSource, IncompleteReason, ObservedSource } from '../../core/completeness.ts';
import type { PageArgs } from '../../core/cursors.ts';
import { SCAN_BUDGET, type Page } from '../../core/page.ts';
import { builder, ranged, wireEnum } from './builder.ts';
import { fieldsOf, flag, int, list, nullable, time, typed } from './fields.ts';
import type { Context } from './context.ts';
import type { RowSize } from './answer-budget.ts';

type Types = typeof builder extends PothosSchemaTypes.SchemaBuilder<infer T> ? T : SchemaTypes;

const EvidenceSourceEnum = wireEnum<EvidenceSource>('EvidenceSource', 'A source of an answer.', {
  connections: 'The registry of connections.',
  streams: 'The streams of retained messages.',
  pending_rpcs: 'The callers that still wait.',
  actions: 'The advertisements of connected clients.',
  messages: 'The retained messages.',
  delivery: 'The delivery records.',
  contexts: 'The reported execution contexts.',
  windows: 'The reported browser windows.',
  sites: 'The registered sites.',
  audit: 'The audit of what administrators did.',
  metrics: 'What the nodes counted and measured.',
  revocations: 'The tokens that are revoked.',
  devices: 'The devices that are enrolled.',
});

const IncompleteReasonEnum = wireEnum<IncompleteReason>(
  'IncompleteReason',
  'Why a source contributed less than it could have.',
  {
    limit_reached: 'The answer’s bound was reached.',
    node_silent: `A node has not reported for ${NODE_SILENT_MS / 1000} seconds. The answer shows its links as it last reported them.`,
    store_unavailable: 'The store did not answer.',
    evicted: 'Rows were dropped before their retention time was over, for lack of space.',
    not_supported: 'The backend cannot tell.',
    awaiting_reports: 'The relay restarted, and clients that were connected before may still report again.',
  },
);

const ObservedSourceType = builder.objectRef<ObservedSource>('ObservedSource').implement({
  description: 'What one source contributed to an answer, and why it did not contribute more.',
  fields: fieldsOf(() => ({
    source: typed(EvidenceSourceEnum, 'The source of these rows.'),
    nodeId: nullable.id('The id of the node that the source belongs to; null if it does not belong to a single node.'),
    complete: flag('Whether the answer holds everything that the source has for it.'),
    observed: int(
      'How many rows the source contributed; 0 for a silent node, because its rows are counted for the source that holds them.',
    ),
    limit: nullable.int('The bound that applied, as a number of rows; null if none did.'),
    reason: nullable.typed(IncompleteReasonEnum, 'Why the source is not complete; null if it is.'),
    asOf: time('When the source was read.'),
  })),
});

/** The type of `completeness` in every bounded answer: whether anything is missing, from which source, and why. */
export const CompletenessType = builder.objectRef<Completeness>('Completeness').implement({
  description: 'Whether anything is missing from a bounded answer, and what each source contributed to it.',
  fields: fieldsOf(() => ({
    complete: flag('True only if every source is complete.'),
    sources: list(ObservedSourceType, 'Every source of the answer, silent nodes included.'),
  })),
});

type Count = { readonly count: number; readonly completeness: Completeness };

export const CountResult = builder.objectRef<Count>('CountResult').implement({
  description: 'A count, and whether it is complete.',
  fields: fieldsOf(() => ({
    count: int('How many rows were counted.'),
    completeness: typed(CompletenessType, 'Whether anything is missing, from which source, and why.'),
  })),
});

const PageInfoType = builder.objectRef<Page<unknown>>('PageInfo').implement({
  description: 'The position of a page in its listing. Paging goes forward only.',
  fields: fieldsOf((t) => ({
    hasNextPage: flag(
      'Whether more rows may follow. Only false means the end of the listing: a filtered page before the end may be short or empty.',
    ),
    hasPreviousPage: t.boolean({ description: 'Always false: paging goes forward only.', resolve: () => false }),
    startCursor: t.string({
      nullable: true,
      description: 'The cursor of the first edge; null if the page is empty.',
      resolve: ({ nodes, cursors }) => (nodes.length > 0 ? cursors.at(0) : null),
    }),
    endCursor: t.string({
      nullable: true,
      description:
        'The position at which the page ends, to use as `after` for the next page; null if nothing was found.',
      resolve: ({ cursors }) => cursors.end(),
    }),
  })),
});

/** The options of the argument or filter member that names the user of a listing's rows. */
export const ROWS_OF_USER = {
  description: 'Only rows of this user. Omitted: a user gets its own rows, an administrator gets all.',
};

/** The arguments of every paged field. */
export const pageArguments = builder.args((t) => ({
  first: t.int({
    ...ranged({ min: 1, max: PAGE_MAX, default: PAGE_DEFAULT }),
    description: `The most rows on the page: 1 to ${PAGE_MAX}.`,
  }),
  after: t.string({
    description:
      'The cursor after which the page begins. It is valid only for the same listing, filter, order and requester. Omitted: the first page.',
  }),
}));

export type AskedPage = { readonly first: number; readonly after?: string | null | undefined };

/**
 * Returns the requested page. Throws `invalid_argument` for an invalid size, because core's batch methods do not check
 * the size.
 */
export function pageOf({ first, after }: AskedPage): PageArgs & { readonly first: number } {
  if (first < 1 || first > PAGE_MAX) invalid('first', `expected 1 to ${PAGE_MAX}`);
  return { first, after };
}

/** The options of a paged field without a filter. */
export const PAGED = { complexity: pageCost, args: { ...pageArguments } };

/** The number of scanned rows that cost as much as one field of a row that is shown. */
const SCANNED_PER_COST = 50;

/**
 * The cost of a field (see execute/cost.ts). `field`: the cost of the field itself, including `scan`, the cost of the
 * rows that it may scan. `multiplier`: how often its selection counts.
 */
type FieldCost = { readonly field: number; readonly multiplier: number; readonly scan?: number };

/**
 * Returns the cost of a paged field. It counts at least one row, because a negative `first` must not reduce the cost of
 * a document.
 */
export function pageCost({ first }: AskedPage): FieldCost {
  return { field: 1, multiplier: Math.max(1, first) };
}

/** Like `pageCost`, for a page whose filter may scan this many rows. */
export function scannedPageCost({ first }: AskedPage, scanned: number): FieldCost {
  return { ...scanCost(scanned), multiplier: Math.max(1, first) };
}

/** Returns the cost of a field that may scan this many rows but shows none. */
export function scanCost(scanned: number): FieldCost {
  const scan = Math.ceil(scanned / SCANNED_PER_COST);
  return scan === 0 ? { field: 1, multiplier: 1 } : { field: 1 + scan, multiplier: 1, scan };
}

type GivenFilter = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Returns how many rows a page with this filter may scan. 0 if there is no filter or it only names a user or a client.
 * For any other filter: `ofClient` if it names a client, otherwise `most`.
 */
export function scannedBy(
  filter: GivenFilter,
  bounds: { readonly most?: number; readonly ofClient?: number } = {},
): number {
  const { most = SCAN_BUDGET, ofClient = most } = bounds;
  const { userId: _, clientId, ...rest } = filter ?? {};
  if (Object.values(rest).every((member) => member === null || member === undefined)) return 0;
  return clientId === null || clientId === undefined ? most : ofClient;
}

/**
 * Returns a cost function for a field that only administrators may read: `cost` for an administrator, and 1 for
 * everyone else.
 */
export function forAdmins<Args, Cost extends { readonly field: number; readonly multiplier: number }>(
  cost: (args: Args) => Cost,
): (args: Args, context: Pick<Context, 'requester'>) => Cost | { readonly field: number; readonly multiplier: number } {
  return (args, { requester }) => (requester?.kind === 'admin' ? cost(args) : { field: 1, multiplier: 0 });
}

/** The options of a field whose selection is counted once for each row of the page around it. */
export const PER_ROW = { complexity: { field: 1, multiplier: 1 }, extensions: { perRow: true } };

type Edge<Row> = { readonly node: Row; readonly page: Page<Row>; readonly index: number };

/**
 * Creates the Relay connection type `<name>Connection` and its edge type, for pages that come from core. `size`:
 * measures the fields of a row that may be large; a page that is too large for the answer then ends early.
 */
export function connectionOf<Row>(
  name: string,
  row: ObjectRef<Types, Row>,
  { rows, size = null }: { readonly rows: string; readonly size?: RowSize<Row> | null },
) {
  const edge = builder.objectRef<Edge<Row>>(`${name}Edge`).implement({
    description: `One of the ${rows}, with its position in the listing.`,
    fields: (t) => ({
      node: t.expose('node', { type: row, description: 'The row.' }),
      cursor: t.string({
        description: 'The row’s position as an opaque cursor, to use as `after`.',
        resolve: ({ page, index }) => page.cursors.at(index),
      }),
    }),
  });
  return builder.objectRef<Page<Row>>(`${name}Connection`).implement({
    description: `A page of ${rows}, in a stable order.`,
    fields: (t) => ({
      edges: t.field({
        type: [edge],
        ...PER_ROW,
        description: 'The rows of the page, with their cursors.',
        resolve: (whole, _, { budget }) => {
          const page = budget.written(whole, size);
          return page.nodes.map((node, index): Edge<Row> => ({ node, page, index }));
        },
      }),
      nodes: t.field({
        type: [row],
        ...PER_ROW,
        description: 'The rows of the page, without cursors.',
        resolve: (page, _, { budget }) => budget.written(page, size).nodes,
      }),
      pageInfo: t.field({
        type: PageInfoType,
        description: 'The position of this page in the listing.',
        resolve: (page, _, { budget }) => budget.page(page, size),
      }),
      nextCursor: t.string({
        nullable: true,
        description:
          'The cursor to use as `after` for the next page; null on the last page. It is also null on a page that is empty because the answer had no space left: `hasNextPage` is true then, so request that page alone.',
        resolve: (whole, _, { budget }) => {
          const page = budget.page(whole, size);
          return page.hasNextPage ? page.cursors.end() : null;
        },
      }),
      completeness: t.field({
        type: CompletenessType,
        description: 'Whether anything is missing, from which source, and why.',
        resolve: (page, _, { budget }) => budget.page(page, size).completeness,
      }),
    }),
  });
}
