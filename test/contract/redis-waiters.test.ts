/** Runs the contract of waiters over Redis. */
import { auditedBench } from './kit/redis-bench.ts';
import { waiterContract } from './waiters.ts';

waiterContract('Redis', () => auditedBench());
