/** The types that the files of this folder share. Types only. */
import type { NodesQuery } from '../../generated/console.ts';

export type NodeRow = NodesQuery['delivery']['nodes']['nodes'][number];
