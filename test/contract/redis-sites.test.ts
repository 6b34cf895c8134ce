import { redisBench } from './redis-kit.ts';
import { siteContract } from './sites.ts';

siteContract('Redis', () => redisBench());
