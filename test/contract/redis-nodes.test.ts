/** Runs the contract of nodes over Redis. */
import { nodeContract } from './nodes.ts';
import { auditedBench } from './kit/redis-bench.ts';

nodeContract('Redis', () => auditedBench());
