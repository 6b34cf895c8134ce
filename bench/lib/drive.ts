/**
 * Makes calls with a fixed number of calls in flight, and measures how long they take. The caller of `drive` provides
 * the function that makes one call.
 */
import { z } from 'zod';
import { quantile } from './numbers.ts';

/** The options of `drive`. `count`: the maximum number of calls; by default as many as fit into the time. */
export const DRIVE = z.object({ inFlight: z.number(), ms: z.number(), count: z.number().default(Infinity) });

/** The maximum number of latencies that are kept (the newest ones) for computing percentiles. */
const LATENCIES = 1_000_000;

/**
 * Keeps this many calls in flight for this long, or until `count` calls were made. Counts all calls that returned,
 * including those that returned after the time.
 */
export async function drive(call: () => Promise<unknown>, { inFlight, ms, count: most }: z.infer<typeof DRIVE>) {
  const latencies = new Float64Array(LATENCIES);
  let count = 0;
  let begun = 0;
  const began = performance.now();
  const until = began + ms;
  const lane = async (): Promise<void> => {
    for (let at = performance.now(); at < until;) {
      if (begun++ >= most) return;
      await call();
      const now = performance.now();
      latencies[count++ % LATENCIES] = now - at;
      at = now;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  const took = performance.now() - began;
  const sorted = latencies.subarray(0, Math.min(count, LATENCIES)).sort();
  return { count, ms: took, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}
