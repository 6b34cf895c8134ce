/** Runs the contracts of commands and waiters over Redis with the rules of core as transactions, in both ways. */
import { commandContract } from './commands.ts';
import { commandModel } from './commands-model.ts';
import { inspectorContract } from './inspector.ts';
import { waiterContract } from './waiters.ts';
import { redisBench } from './kit/redis-bench.ts';

for (const transactions of ['on', 'careful'] as const) {
  const make = () => redisBench({ transactions });
  commandContract(`redis, transactions ${transactions}`, make);
  commandModel(`redis, transactions ${transactions}`, make, 20);
  waiterContract(`redis, transactions ${transactions}`, make);
  inspectorContract(`redis, transactions ${transactions}`, make);
}
