/** Runs the contract of site sessions over Redis. */
import { redisBench } from './kit/redis-bench.ts';
import { sessionContract } from './sessions.ts';

sessionContract('Redis', () => redisBench());
