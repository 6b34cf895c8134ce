import { dedupContract } from './dedup.ts';
import { redisBench } from './redis-kit.ts';

dedupContract('Redis', () => redisBench(), { runs: 30 });
