import { inspectorContract } from './inspector.ts';
import { redisBench } from './kit/redis-bench.ts';

inspectorContract('redis', () => redisBench());
