import { inspectorContract } from './inspector.ts';
import { redisBench } from './redis-kit.ts';

inspectorContract('redis', () => redisBench());
