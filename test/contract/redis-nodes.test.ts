/** Runs the contract of nodes over Redis. */
import { nodeContract } from './nodes.ts';
import { redisBench } from './kit/redis-bench.ts';

nodeContract('Redis', () => redisBench());
