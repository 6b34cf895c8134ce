import { redisBench } from './kit/redis-bench.ts';
import { sessionContract } from './sessions.ts';

sessionContract('Redis', () => redisBench());
