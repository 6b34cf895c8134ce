/** Runs the command `callboard healthcheck`, which asks a relay on this machine whether it is ready. */
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { readConfig } from '../config.ts';
import { splitFlags } from './flags.ts';
import { UsageError, type Io } from './io.ts';

/** The default of `--within`: how long the relay may take to answer, in milliseconds. */
const WITHIN_MS = 3_000;

/**
 * Requests `/readyz` of the relay on this machine and prints the answer. The settings give its host, port and base
 * path. Made for health checks of containers whose images have no curl. Throws if the relay is not ready, or does not
 * answer within 3 s (`--within`).
 */
export async function healthcheck(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--within'] });
  const within = Number(own.get('--within') ?? WITHIN_MS);
  if (!Number.isInteger(within) || within < 1) throw new UsageError('--within: expected milliseconds');
  const { host, port, basePath, tls } = readConfig(io.env, rest);
  const url = `${tls ? 'https' : 'http'}://${reachable(host)}:${port}${basePath}/readyz`;
  const { status, body } = await ask(url, within);
  if (status !== 200) throw new HealthError(`${url} answers ${status}: ${body}`);
  io.print(`${body}\n`);
}

/** The error for a relay that is not ready. The process exits with code 1. */
export class HealthError extends Error {
  override readonly name = 'HealthError';
}

/**
 * Requests a URL of the relay. It does not verify the certificate, because the certificate names the relay's public
 * host. The request stays on this machine and carries no secret.
 */
async function ask(url: string, within: number): Promise<{ readonly status: number; readonly body: string }> {
  const signal = AbortSignal.timeout(within);
  const open = url.startsWith('https:') ? https.get : http.get;
  try {
    const request = open(url, { agent: false, signal, rejectUnauthorized: false });
    const [answer]: IncomingMessage[] = await once(request, 'response', { signal });
    if (!answer) throw new Error('no response');
    return { status: answer.statusCode ?? 0, body: (await text(answer)).trim() };
  } catch (error) {
    throw new HealthError(`${url} does not answer (${signal.aborted ? `within ${within} ms` : reasonOf(error)})`);
  }
}

/** Returns the host at which this machine reaches the relay: loopback for a relay that listens on all addresses. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::' || host === '[::]') return '[::1]';
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
