/** Runs the contract of the history of links over Redis. */
import { auditedBench } from './kit/redis-bench.ts';
import { linkHistoryContract } from './link-history.ts';
import { boundsOf } from './redis-contracts.ts';

linkHistoryContract('Redis', ({ bytes: _, ...bounds } = {}) => auditedBench(boundsOf(bounds)));
