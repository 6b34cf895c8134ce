import { contextContract } from './contexts.ts';
import { redisBench } from './redis-kit.ts';

contextContract('Redis', () => redisBench(), { runs: 25 });
