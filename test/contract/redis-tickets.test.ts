/** Runs the contract of tickets over Redis. */
import { redisBench } from './kit/redis-bench.ts';
import { ticketContract } from './tickets.ts';

ticketContract('Redis', () => redisBench());
