/** Finds and runs programs of this machine for the tests of deploy/. */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CERTIFICATE } from '../../kit/certificates.ts';

/**
 * Returns the path of an installed program; null if it is not installed. Also searches the folders where Debian
 * installs servers.
 */
export function find(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/bin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Writes a certificate for localhost and relay.example, and its key, into this folder, and returns the paths of both.
 */
export function makeCertificate(folder: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  writeFileSync(cert, CERTIFICATE.cert);
  writeFileSync(key, CERTIFICATE.key);
  return { cert, key };
}

/** A program that runs until it is disposed. What it writes is kept for error messages. */
export class Running implements AsyncDisposable {
  readonly #child: ChildProcess;
  #output = '';

  constructor(program: string, args: readonly string[], options: { cwd: string; env?: Record<string, string> }) {
    const env = { ...process.env, ...options.env };
    this.#child = spawn(program, [...args], { cwd: options.cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk) => (this.#output = (this.#output + String(chunk)).slice(-4_000)));
  }

  get output(): string {
    return this.#output;
  }

  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.ended) return;
    const ended = new Promise((done) => this.#child.once('exit', done));
    this.#child.kill('SIGKILL');
    await ended;
  }
}
