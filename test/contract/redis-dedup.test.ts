/** Runs the contract of deduplication over Redis. */
import { dedupContract } from './dedup.ts';
import { auditedBench } from './kit/redis-bench.ts';

dedupContract('Redis', () => auditedBench(), { runs: 30 });
