/** Logs when the machine did not run the proxies of a run, which are in this process, or its Redis. */
import { Redis } from 'ioredis';
import { createTurnMeter } from '../../lib/cost-probe.ts';
import { openLog } from '../log/log.ts';

/** The interval at which stalls are checked, and the minimum duration of a stall that is logged, in milliseconds. */
const LOOK_MS = 500;
const LONG_MS = 500;

/** Watches until it is disposed. `redisUrls`: the URLs of the servers that relays use. */
export function watchMachine(folder: string, redisUrls: readonly string[]): AsyncDisposable {
  const log = openLog({ folder, proc: 'machine', boot: '1' });
  const meter = createTurnMeter();
  const servers = redisUrls.map((url) => new Redis(url, { maxRetriesPerRequest: null }));
  // Errors are ignored, because a run kills its Redis.
  for (const server of servers) server.on('error', () => {});
  // The answer to a ping may arrive after the end.
  let isClosed = false;
  const note = (of: string, turnMs: number, stalledMs: number): void => {
    if (stalledMs >= LONG_MS && !isClosed) log.write({ event: 'turns', of, turnMs, stalledMs });
  };
  const asked = new Set<Redis>();
  const ask = async (server: Redis): Promise<void> => {
    if (asked.has(server)) return;
    asked.add(server);
    const from = performance.now();
    await server.ping().catch(() => undefined);
    note('redis', 0, performance.now() - from);
    asked.delete(server);
  };
  let readAt = performance.now();
  const timer = setInterval(() => {
    const { worstMs, stalledMs: timersMs } = meter.take();
    // The meter does not notice a stall that begins right after it was read.
    const stalledMs = Math.max(timersMs, performance.now() - readAt - LOOK_MS);
    readAt = performance.now();
    note('proxies', worstMs, stalledMs);
    for (const server of servers) void ask(server);
  }, LOOK_MS);
  return {
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearInterval(timer);
      for (const server of servers) server.disconnect();
      log.close();
    },
  };
}
