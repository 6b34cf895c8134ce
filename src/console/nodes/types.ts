/** Defines the types that several files of the node pages use. Contains types only. */
import type { NodesQuery } from '../../generated/console.ts';

export type NodeRow = NodesQuery['delivery']['nodes']['nodes'][number];
