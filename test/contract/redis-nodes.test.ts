import { nodeContract } from './nodes.ts';
import { redisBench } from './kit/redis-bench.ts';

nodeContract('Redis', () => redisBench());
