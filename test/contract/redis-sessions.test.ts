/** Runs the contract of site sessions over Redis. */
import { auditedBench } from './kit/redis-bench.ts';
import { sessionContract } from './sessions.ts';

sessionContract('Redis', () => auditedBench());
