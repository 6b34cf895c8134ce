/** Runs the contracts of the inspector over Redis. */
import { inspectorContract } from './inspector.ts';
import { newestContract } from './inspector-newest.ts';
import { auditedBench } from './kit/redis-bench.ts';

inspectorContract('redis', () => auditedBench());
newestContract('redis', () => auditedBench());
