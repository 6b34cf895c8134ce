/** Explains which program already uses the port on which a relay should listen. */
import type { Config } from '../config.ts';
import { parseObject } from '../protocol/json.ts';
import { CommandError } from './exit-codes.ts';
import { pasteable } from './installation.ts';
import { ask, addressOf } from './tools.ts';

/** How long the program on the port may take to answer what it is, in milliseconds. */
const HOLDER_MS = 2_000;

/**
 * If the error says that the port is taken, returns an error that says which program uses it and what to do. Returns
 * any other error unchanged.
 */
export async function explainTaken(error: unknown, config: Config, verb: 'serve' | 'demo'): Promise<unknown> {
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) return error;
  const { host, port } = config;
  const holder = await ask(`${addressOf(config)}/healthz`, HOLDER_MS).catch(() => null);
  const { version, node_id, pid } = parseObject(holder?.body ?? '') ?? {};
  const isRelay = typeof version === 'string' && typeof node_id === 'string' && typeof pid === 'number';
  const who = isRelay
    ? `the relay ${node_id} (callboard ${version}, process ${pid})`
    : 'a program that is no callboard';
  const stop = isRelay ? `Stop that relay (kill ${pid})` : 'Stop that program';
  const other = pasteable(verb, '--port', String(port + 1));
  return new CommandError(`EADDRINUSE: port ${port} of ${host} is taken by ${who}.
${stop}, or choose another port, as with: ${other}`);
}
