import { redisBench } from './redis-kit.ts';
import { waiterContract } from './waiters.ts';

waiterContract('Redis', () => redisBench());
