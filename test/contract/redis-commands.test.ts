/** Runs the contract of commands over Redis. */
import { commandContract } from './commands.ts';
import { commandModel } from './commands-model.ts';
import { redisBench } from './kit/redis-bench.ts';

commandContract('redis', () => redisBench());
commandModel('redis', () => redisBench(), 40);
