/**
 * Runs a complete relay in its own process for the benchmarks, as `callboard serve` starts it: with default
 * authentication, limits, masking and log.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Callboard } from '../../src/callboard.ts';
import type { Backend } from '../../src/core/backend.ts';
import type { Log } from '../../src/core/ports.ts';
import { systemClock, createCrypto } from '../../src/platform/system.ts';
import type { Started } from '../lib/child.ts';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));
/**
 * The form of the options. `env`: further settings, as CALLBOARD_ variables. `kept` false: the JSON cache is not used,
 * as with Redis. `source`: the folder of the relay's sources.
 */
const OPTIONS = z
  .object({
    env: z.record(z.string(), z.string()).default({}),
    kept: z.boolean().default(true),
    source: z.string().default(SOURCE),
  })
  .prefault({});

export async function start(given: unknown): Promise<Started> {
  const { env, kept, source } = OPTIONS.parse(given ?? {});
  const { openCallboard } = (await import(`${source}/callboard.ts`)) as typeof import('../../src/callboard.ts');
  const { readConfig } = (await import(`${source}/config.ts`)) as typeof import('../../src/config.ts');
  const { secretsIn } = (await import(
    `${source}/config/auth-config.ts`
  )) as typeof import('../../src/config/auth-config.ts');
  const { createLog } = (await import(`${source}/platform/log.ts`)) as typeof import('../../src/platform/log.ts');
  const config = readConfig({ CALLBOARD_PORT: '0', ...env }, []);
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config), sink: { write() {} } });
  const callboard = await openCallboard({ config, log, ...(!kept && { backend: withoutJsonCache(log) }) });
  const url = await callboard.listen({ host: config.host, port: config.port });
  const inert = config.warnings.find((text) => text.includes('FAST_PATH'));
  return {
    port: Number(new URL(url).port),
    note: inert ?? '',
    acts: { close: () => closed(callboard), turns: longestTurns() },
  };
}

/** Returns a function that returns the longest turn of the event loop since its last call, in milliseconds. */
function longestTurns(): () => number {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  return () => {
    const longest = delays.max / 1e6;
    delays.reset();
    return longest;
  };
}

async function closed(callboard: Callboard): Promise<null> {
  await callboard.close();
  return null;
}

/**
 * Creates a memory backend that claims to be shared, so that the relay assumes that entities may change at any time,
 * and caches no JSON.
 */
function withoutJsonCache(log: Log): Backend {
  const { sha256 } = createCrypto('');
  const memory = createMemoryBackend({ markSecret: 'x', clock: systemClock, log, sha256 });
  return { ...memory, capabilities: { ...memory.capabilities, shared: true } };
}
