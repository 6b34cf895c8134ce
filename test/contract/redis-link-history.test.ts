/** Runs the contract of the history of links over Redis. */
import { redisBench } from './kit/redis-bench.ts';
import { linkHistoryContract } from './link-history.ts';
import { boundsOf } from './redis-contracts.ts';

linkHistoryContract('Redis', ({ bytes: _, ...bounds } = {}) => redisBench(boundsOf(bounds)));
