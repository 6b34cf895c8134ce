import { readConfig } from '../config.ts';
import { splitFlags } from './flags.ts';
import { UsageError, type Io } from './io.ts';

const WITHIN_MS = 3_000;

/**
 * Asks `/readyz` of the relay that has these settings (host, port, base path) on this machine, and prints its answer.
 * For the health checks of containers, whose images have no curl. Throws if the relay is not ready, or does not answer
 * within 3 s (`--within`).
 */
export async function healthcheck(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--within'] });
  const within = Number(own.get('--within') ?? WITHIN_MS);
  if (!Number.isInteger(within) || within < 1) throw new UsageError('--within: expected milliseconds');
  const { host, port, basePath } = readConfig(io.env, rest);
  const url = `http://${reachable(host)}:${port}${basePath}/readyz`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(within) }).catch((error: unknown) => {
    throw new HealthError(`${url} does not answer (${reasonOf(error)})`);
  });
  const body = (await answer.text()).trim();
  if (!answer.ok) throw new HealthError(`${url} answers ${answer.status}: ${body}`);
  io.print(`${body}\n`);
}

/** The relay is not ready. The process exits with code 1. */
export class HealthError extends Error {
  override readonly name = 'HealthError';
}

/** A host that listens on all addresses is reached over loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::' || host === '[::]') return '[::1]';
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
