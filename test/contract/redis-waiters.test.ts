/** Runs the contract of waiters over Redis. */
import { redisBench } from './kit/redis-bench.ts';
import { waiterContract } from './waiters.ts';

waiterContract('Redis', () => redisBench());
