/** Runs the contract of sites over Redis. */
import { auditedBench } from './kit/redis-bench.ts';
import { siteContract } from './sites.ts';

siteContract('Redis', () => auditedBench());
