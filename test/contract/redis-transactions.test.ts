/** Runs the contracts of commands and waiters over Redis with each act of a call decided on its own. */
import { commandContract } from './commands.ts';
import { commandModel } from './commands-model.ts';
import { inspectorContract } from './inspector.ts';
import { waiterContract } from './waiters.ts';
import { redisBench } from './kit/redis-bench.ts';

const make = () => redisBench({ careful: true });
commandContract('redis, act by act', make);
commandModel('redis, act by act', make, 20);
waiterContract('redis, act by act', make);
inspectorContract('redis, act by act', make);
