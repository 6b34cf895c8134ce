import { nodeContract } from './nodes.ts';
import { redisBench } from './redis-kit.ts';

nodeContract('Redis', () => redisBench());
