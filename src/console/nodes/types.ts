/** The types that the files of the node pages share. Types only. */
import type { NodesQuery } from '../../generated/console.ts';

export type NodeRow = NodesQuery['delivery']['nodes']['nodes'][number];
