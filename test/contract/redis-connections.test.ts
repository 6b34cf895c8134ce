import { connectionContract } from './connections.ts';
import { redisBench } from './redis-kit.ts';

connectionContract('Redis', () => redisBench(), { runs: 25, order: 'bytes' });
