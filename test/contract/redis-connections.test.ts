/** Runs the contract of connections over Redis. */
import { connectionContract } from './connections.ts';
import { redisBench } from './kit/redis-bench.ts';

connectionContract('Redis', () => redisBench(), { runs: 25, order: 'bytes' });
