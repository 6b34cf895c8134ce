/** Pages of every listing: Relay connections with what was and was not observed. */
import type { ObjectRef, SchemaTypes } from '@pothos/core';
import type { PageArgs } from '../core/cursor.ts';
import { invalid } from '../core/errors.ts';
import { NODE_SILENT_MS, PAGE_DEFAULT, PAGE_MAX } from '../core/limits.ts';
import type { Completeness, EvidenceSource, IncompleteReason, ObservedSource, Page } from '../core/page.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';

type Types = typeof builder extends PothosSchemaTypes.SchemaBuilder<infer T> ? T : SchemaTypes;

const EvidenceSourceEnum = wireEnum<EvidenceSource>('EvidenceSource', 'Where a part of an answer was observed.', {
  connections: 'The registry of connections.',
  streams: 'The streams of retained history.',
  pending_rpcs: 'The callers that still wait.',
  actions: 'The advertisements of connected clients.',
  messages: 'The retained messages.',
  delivery: 'The records of delivery.',
  contexts: 'The reported execution contexts.',
  windows: 'The reported browser windows.',
  sites: 'The registered sites.',
});

const IncompleteReasonEnum = wireEnum<IncompleteReason>(
  'IncompleteReason',
  'Why a source contributed less than it holds.',
  {
    limit_reached: 'The bound of the answer was reached.',
    node_silent: `A node has not reported for ${NODE_SILENT_MS / 1000} seconds: what is shown of its links is what it last said.`,
    store_unavailable: 'The store did not answer.',
    evicted: 'Rows were dropped early for lack of room.',
    not_supported: 'This backend cannot tell.',
  },
);

const ObservedSourceType = builder.objectRef<ObservedSource>('ObservedSource').implement({
  description: 'What one source contributed to an answer, and why not more.',
  fields: (t) => ({
    source: t.expose('source', { type: EvidenceSourceEnum, description: 'The source.' }),
    nodeId: t.exposeID('nodeId', {
      nullable: true,
      description: 'The node that was asked; null when the source is not one node’s.',
    }),
    complete: t.exposeBoolean('complete', {
      description: 'Whether nothing that the source holds for this answer is missing.',
    }),
    observed: t.exposeInt('observed', {
      description:
        'How many rows it contributed; 0 for a silent node, whose rows count with the source that holds them.',
    }),
    limit: t.exposeInt('limit', { nullable: true, description: 'The bound on rows that applied, if one did.' }),
    reason: t.expose('reason', {
      type: IncompleteReasonEnum,
      nullable: true,
      description: 'Why it is not complete; null when it is.',
    }),
    asOf: t.expose('asOf', { type: 'DateTime', description: 'When the source was read.' }),
  }),
});

/** Beside every bounded answer: whether something is missing, and where. */
export const CompletenessType = builder.objectRef<Completeness>('Completeness').implement({
  description: 'Whether a bounded answer holds all that there was, and what each source contributed to it.',
  fields: (t) => ({
    complete: t.exposeBoolean('complete', { description: 'True only when every source is complete.' }),
    sources: t.expose('sources', {
      type: [ObservedSourceType],
      description: 'Every source of the answer, the silent ones included.',
    }),
  }),
});

type Count = { readonly count: number; readonly completeness: Completeness };

export const CountResult = builder.objectRef<Count>('CountResult').implement({
  description: 'How many, and whether all were counted.',
  fields: (t) => ({
    count: t.exposeInt('count', { description: 'How many were counted.' }),
    completeness: t.expose('completeness', { type: CompletenessType, description: 'What was and was not observed.' }),
  }),
});

const PageInfoType = builder.objectRef<Page<unknown>>('PageInfo').implement({
  description: 'Where a page stands in its listing. Paging goes forward only.',
  fields: (t) => ({
    hasNextPage: t.exposeBoolean('hasNextPage', {
      description:
        'Whether the listing goes on. Only false means its end: a filtered page may be short or empty before it.',
    }),
    hasPreviousPage: t.boolean({ description: 'Always false: paging goes forward only.', resolve: () => false }),
    startCursor: t.string({
      nullable: true,
      description: 'The cursor of the first edge; null on an empty page.',
      resolve: ({ nodes, cursors }) => (nodes.length > 0 ? cursors.at(0) : null),
    }),
    endCursor: t.string({
      nullable: true,
      description: 'Where the page ends: give it as `after` for the next one. Null when nothing was found.',
      resolve: ({ cursors }) => cursors.end(),
    }),
  }),
});

/** Arguments of every paged field. */
export const pageArguments = builder.args((t) => ({
  first: t.int({
    required: true,
    defaultValue: PAGE_DEFAULT,
    description: `Rows on a page: 1 to ${PAGE_MAX}.`,
    extensions: { minimum: 1, maximum: PAGE_MAX },
  }),
  after: t.string({ description: 'The cursor to go on after; it opens only for the same listing, filter and asker.' }),
}));

type AskedPage = { readonly first: number; readonly after?: string | null | undefined };

/** The page asked for, its size checked: batches do not pass core's own check. Throws `invalid_argument`. */
export function pageOf({ first, after }: AskedPage): PageArgs & { readonly first: number } {
  if (first < 1 || first > PAGE_MAX) invalid('first', `expected 1 to ${PAGE_MAX}`);
  return { first, after };
}

/** The cost of a paged field. Never below one row: a negative `first` must not pay for the rest of a document. */
export function pageCost({ first }: AskedPage): { field: number; multiplier: number } {
  return { field: 1, multiplier: Math.max(1, first) };
}

type Edge<Row> = { readonly node: Row; readonly page: Page<Row>; readonly index: number };

/** The Relay connection type `<name>Connection`, with its edge type, over pages that core made. */
export function connectionOf<Row>(name: string, row: ObjectRef<Types, Row>, rows: string) {
  const edge = builder.objectRef<Edge<Row>>(`${name}Edge`).implement({
    description: `One of the ${rows}, with its place in the listing.`,
    fields: (t) => ({
      node: t.expose('node', { type: row, description: 'The row itself.' }),
      cursor: t.string({
        description: 'Its place: opaque, for `after`.',
        resolve: ({ page, index }) => page.cursors.at(index),
      }),
    }),
  });
  return builder.objectRef<Page<Row>>(`${name}Connection`).implement({
    description: `A page of ${rows}, in a stable order.`,
    fields: (t) => ({
      edges: t.field({
        type: [edge],
        complexity: { field: 1, multiplier: 1 },
        description: 'The rows with their cursors.',
        resolve: (page) => page.nodes.map((node, index): Edge<Row> => ({ node, page, index })),
      }),
      nodes: t.field({
        type: [row],
        complexity: { field: 1, multiplier: 1 },
        description: 'The rows alone.',
        resolve: (page) => page.nodes,
      }),
      pageInfo: t.field({ type: PageInfoType, description: 'Where this page stands.', resolve: (page) => page }),
      nextCursor: t.string({
        nullable: true,
        description: 'What to give as `after` for the next page; null on the last one.',
        resolve: (page) => (page.hasNextPage ? page.cursors.end() : null),
      }),
      completeness: t.field({
        type: CompletenessType,
        description: 'What was and was not observed.',
        resolve: (page) => page.completeness,
      }),
    }),
  });
}
