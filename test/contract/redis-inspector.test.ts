/** Runs the contracts of the inspector over Redis. */
import { inspectorContract } from './inspector.ts';
import { newestContract } from './inspector-newest.ts';
import { redisBench } from './kit/redis-bench.ts';

inspectorContract('redis', () => redisBench());
newestContract('redis', () => redisBench());
