import { redisBench } from './redis-kit.ts';
import { sessionContract } from './sessions.ts';

sessionContract('Redis', () => redisBench());
