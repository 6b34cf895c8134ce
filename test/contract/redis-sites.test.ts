/** Runs the contract of sites over Redis. */
import { redisBench } from './kit/redis-bench.ts';
import { siteContract } from './sites.ts';

siteContract('Redis', () => redisBench());
