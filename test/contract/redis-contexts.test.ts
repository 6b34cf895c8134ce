/** Runs the contract of contexts over Redis. */
import { contextContract } from './contexts.ts';
import { auditedBench } from './kit/redis-bench.ts';

contextContract('Redis', () => auditedBench(), { runs: 25 });
