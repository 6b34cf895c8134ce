import { commandContract } from './commands.ts';
import { commandModel } from './model.ts';
import { redisBench } from './redis-kit.ts';

commandContract('redis', () => redisBench());
commandModel('redis', () => redisBench(), 40);
