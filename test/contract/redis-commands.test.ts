/** Runs the contract of commands over Redis. */
import { commandContract } from './commands.ts';
import { commandModel } from './commands-model.ts';
import { auditedBench } from './kit/redis-bench.ts';

commandContract('redis', () => auditedBench());
commandModel('redis', () => auditedBench(), 40);
