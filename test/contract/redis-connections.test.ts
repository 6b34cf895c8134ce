/** Runs the contract of connections over Redis. */
import { connectionContract } from './connections.ts';
import { auditedBench } from './kit/redis-bench.ts';

connectionContract('Redis', () => auditedBench(), { runs: 25, order: 'bytes' });
