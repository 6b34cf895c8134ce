/** The command `callboard serve`. */
import { openCallboard, secretsIn, type Callboard } from '../callboard.ts';
import { readConfig, type Config } from '../config.ts';
import { DRAIN_MS } from '../core/limits.ts';
import { createSignIn } from '../http/sign-in.ts';
import { createLog } from '../platform/log.ts';
import { activatedSocket } from './activated-socket.ts';
import { splitFlags } from './flags.ts';
import { greeting, jsonLine } from './greeting.ts';
import { allowHeapGrowth } from './heap-growth.ts';
import type { Io } from './io.ts';
import { trialCredentials } from './trial.ts';

/** Runs a relay until the first stop signal, then drains and closes it. */
export async function serve(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { switches: ['--json'] });
  const config = readConfig(io.env, rest);
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config) });
  for (const warning of config.warnings) log.warn({}, warning);
  const credentials = config.generated ? await trialCredentials(config) : null;
  const signIn = credentials && createSignIn(credentials.adminToken);
  const callboard = await openCallboard({ config, log, ...(signIn && { signIn }) });
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  const url = await listen(callboard, config, activatedSocket(io.env, process.pid));
  const { mode, nodeId } = callboard.core;
  const started = { url, mode, nodeId, credentials, code: signIn?.code ?? null };
  io.print(own.has('--json') ? jsonLine(started) : greeting(started));
  allowHeapGrowth();
  await stopped;
  log.info({}, 'stopping');
  await callboard.close({ withinMs: DRAIN_MS });
  log.info({}, 'stopped');
}

/** Starts listening. If that fails, it closes the relay again and rethrows. */
async function listen(callboard: Callboard, { host, port }: Config, fd: number | null): Promise<string> {
  try {
    return await callboard.listen(fd === null ? { host, port } : { host, fd });
  } catch (error) {
    await callboard.close();
    throw error;
  }
}
