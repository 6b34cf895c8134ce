/** Runs the contract of the counts of reconnects over Redis. */
import { redisBench } from './kit/redis-bench.ts';
import { reconnectContract } from './reconnects.ts';

reconnectContract('redis', () => redisBench());
