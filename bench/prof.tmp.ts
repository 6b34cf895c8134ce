import { startRelay, userToken } from './lib/callboard.ts';
import { startChild } from './lib/processes.ts';
import { openRedis } from './lib/redis.ts';
import { linkCalls } from './lib/rpc-paths.ts';
import { USER } from './lib/rpc.ts';
const ms = Number(process.argv[2] ?? 6000);
const kinds = (process.argv[3] ?? 'direct,owned').split(',');
const source = process.argv[4];
for (const kind of kinds) {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await openRedis());
  const env = kind === 'direct' ? {} : { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec', CALLBOARD_STORE: 'owned' };
  process.env.PROF_OUT = `/tmp/prof/${kind}.json`;
  const relay = stack.use(await startRelay(env, { execArgv: ['--import', '/work/main/bench/prof-hook.tmp.mjs'], ...(source && {source}) }));
  const token = await userToken(USER, 'connect', 'invoke');
  const end = { kind: 'bare', token, port: relay.port };
  stack.use(await startChild('loads/rpc-client.ts', { options: end }));
  const path = linkCalls(stack.use(await startChild('loads/rpc-caller.ts', { options: end })), relay);
  await path.drive({ inFlight: 64, count: 30000, ms: 8000 } as never);
  console.log(kind, await path.drive({ inFlight: 64, ms }));
  process.kill(relay.pid, 'SIGWINCH');
  console.log(kind, await path.drive({ inFlight: 64, ms }));
  process.kill(relay.pid, 'SIGUSR2'); await new Promise((d) => setTimeout(d, 1500));
}
