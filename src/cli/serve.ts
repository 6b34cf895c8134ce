/** Runs the command `callboard serve`: a relay, until it is stopped. */
import { openCallboard, type Callboard } from '../callboard.ts';
import { readConfig, secretsIn, type Config } from '../config.ts';
import { DRAIN_MS } from '../core/limits.ts';
import { createSignIn } from '../http/sign-in.ts';
import { systemClock } from '../platform/clock.ts';
import { createLog } from '../platform/log.ts';
import { endOnCrash } from './crash.ts';
import { activatedSocket } from './activated-socket.ts';
import { splitFlags } from './flags.ts';
import { greeting, jsonLine } from './greeting.ts';
import { allowHeapGrowth } from './heap-growth.ts';
import type { Io } from './io.ts';
import { reloadOnChange } from './reload.ts';
import { openTraceExport } from './trace-export.ts';
import { trialCredentials } from './trial.ts';

/** Runs a relay until the first stop signal, then drains and closes it. */
export async function serve(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { switches: ['--json'] });
  const config = readConfig(io.env, rest);
  const log = createLog({ level: config.logLevel, secrets: secretsIn(config) });
  for (const warning of config.warnings) log.warn({}, warning);
  // A trial run with generated credentials gets no warning, because it keeps nothing anyway.
  if (config.redis === null && !config.audit.file && !config.generated)
    log.warn({}, 'the audit is kept in memory and is lost when the relay ends: set AUDIT_FILE to keep it');
  const credentials = config.generated ? await trialCredentials(config) : null;
  const signIn = credentials && createSignIn(credentials.adminToken);
  const traces = await openTraceExport(io.env, log);
  const tracing = traces && { tracing: traces.api };
  const crash = endOnCrash(io, log);
  const callboard = await openCallboard({ config, log, ...(signIn && { signIn }), ...tracing });
  crash.ends(callboard);
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  const stopReload = reloadOnChange(config, { callboard, env: io.env, argv: rest, clock: systemClock, log });
  const url = await listen(callboard, config, activatedSocket(io.env, process.pid));
  const { mode, nodeId } = callboard.core;
  const started = { url, mode, nodeId, credentials, code: signIn?.code ?? null, consoleCode: signIn?.issue() ?? null };
  io.print(own.has('--json') ? jsonLine(started) : greeting(started));
  allowHeapGrowth();
  await stopped;
  stopReload();
  log.info({}, 'stopping');
  await callboard.close({ withinMs: DRAIN_MS });
  await traces?.close();
  log.info({}, 'stopped');
}

/** Starts to listen and returns the address. If that fails, it closes the relay again and rethrows. */
async function listen(callboard: Callboard, { host, port }: Config, fd: number | null): Promise<string> {
  try {
    return await callboard.listen(fd === null ? { host, port } : { host, fd });
  } catch (error) {
    await callboard.close();
    throw error;
  }
}
