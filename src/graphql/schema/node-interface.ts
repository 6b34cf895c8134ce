/**
 * Defines the interface `Node`, which every type with an opaque id implements. node-lookup.ts finds the row of an id.
 */
import { builder } from './builder.ts';
import { PURE } from './cache-hints.ts';
import type { NodeKind } from './node-ids.ts';

/** The types that implement `Node`. */
export type NodeType = Exclude<NodeKind, 'SiteOfSession'>;

const types = new WeakMap<object, NodeType>();

/** Records the type of a row, so that the row can be returned as a `Node`. */
export function asNode<Row extends object>(type: NodeType, row: Row): Row {
  types.set(row, type);
  return row;
}

/** The options of the field `id` of every type that implements `Node`, without its resolver. */
export const NODE_ID = {
  description:
    'An opaque id, unique in the deployment and the same for as long as the row is: the argument of `node`. It is not one of the ids that other arguments and REST take.',
  extensions: PURE,
} as const;

export const NodeInterface = builder.interfaceRef<object>('Node').implement({
  description: 'A row with an id that is unique in the deployment, so that a cache can keep it by its id.',
  resolveType: (row) => types.get(row),
  fields: (t) => ({
    id: t.id(NODE_ID),
  }),
});
