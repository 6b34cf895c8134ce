/** Runs the contract of history over Redis. */
import { historyContract } from './history.ts';
import { auditedBench } from './kit/redis-bench.ts';
import { boundsOf } from './redis-contracts.ts';

// There are fewer random runs than in memory, because each act is a round trip.
historyContract('Redis', (bounds) => auditedBench(boundsOf(bounds)), { runs: 12 });
