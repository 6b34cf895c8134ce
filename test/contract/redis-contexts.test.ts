/** Runs the contract of contexts over Redis. */
import { contextContract } from './contexts.ts';
import { redisBench } from './kit/redis-bench.ts';

contextContract('Redis', () => redisBench(), { runs: 25 });
