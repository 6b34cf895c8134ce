/** Runs the contract of deduplication over Redis. */
import { dedupContract } from './dedup.ts';
import { redisBench } from './kit/redis-bench.ts';

dedupContract('Redis', () => redisBench(), { runs: 30 });
