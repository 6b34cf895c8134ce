/** A whole relay in its own process, as `callboard serve` starts it: authentication, limits, masking and log as they are by default. */
import { z } from 'zod';
import { openCallboard, secretsIn, type Callboard } from '../../src/callboard.ts';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/platform/log.ts';
import type { Started } from '../lib/child.ts';

/** `env`: further settings, as CALLBOARD_ variables. */
const OPTIONS = z.object({ env: z.record(z.string(), z.string()).default({}) }).prefault({});

export async function start(given: unknown): Promise<Started> {
  const { env } = OPTIONS.parse(given ?? {});
  const config = readConfig({ ...env, CALLBOARD_PORT: '0' }, []);
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config), sink: { write() {} } });
  const callboard = await openCallboard({ config, log });
  const url = await callboard.listen({ host: config.host, port: config.port });
  const inert = config.warnings.find((text) => text.includes('FAST_PATH'));
  return { port: Number(new URL(url).port), note: inert ?? '', acts: { close: () => closed(callboard) } };
}

async function closed(callboard: Callboard): Promise<null> {
  await callboard.close();
  return null;
}
