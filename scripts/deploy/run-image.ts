/** Runs programs of the built image as the image's user, with a read-only root file system. */
import { spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { freePort } from '../../test/kit/free-port.ts';
import { signToken } from '../../src/http/tokens.ts';
import type { BuiltImage } from './image.ts';
import { startLoad } from './load.ts';
import { startRelayProcess, type RelayProcess, type ServeCommand } from './relay-process.ts';
import type { Say } from './steps.ts';

const SECRET = 'a secret of the check, long enough for HS256';
/** The number of commands that are running when the relay is stopped, each on its own client. */
const RUNNING = 3;

/**
 * A shell script that runs a program in a new mount namespace, in which the root is mounted read-only. Each program
 * replaces the previous one (`exec`), so that a signal reaches the image's entry point. Arguments: the root, the
 * image's user, the image's folder, and the program.
 */
const SCRIPT = `set -e
root=$1 user=$2 folder=$3; shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" /bin/sh -c 'cd "$1"; shift; exec "$@"' sh "$folder" "$@"`;

function inImage({ root, config }: BuiltImage, program: readonly string[]): { program: string; args: string[] } {
  const args = ['--mount', '--propagation', 'private', 'sh', '-c', SCRIPT, 'sh', root, config.User, config.WorkingDir];
  return { program: 'unshare', args: [...args, ...program] };
}

function environmentOf({ config }: BuiltImage): Record<string, string> {
  return Object.fromEntries(
    config.Env.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/** Returns a command that runs the image's entry point, instead of the relay of the checkout. */
export function ofImage(image: BuiltImage): ServeCommand {
  return (env) => ({
    ...inImage(image, [...image.config.Entrypoint, ...image.config.Cmd, '--json']),
    env: { ...environmentOf(image), ...env },
  });
}

/**
 * Throws unless the image contains its licence, and a bill of materials that names the packages of the running relay.
 */
export function checkContents({ root, config }: BuiltImage): void {
  const textOf = (name: string): string => readFileSync(join(root, config.WorkingDir, name), 'utf8');
  if (!textOf('LICENSE').startsWith('MIT License')) throw new Error('LICENSE is not the licence');
  const bill = z
    .object({ bomFormat: z.literal('CycloneDX'), components: z.array(z.object({ name: z.string() })) })
    .parse(JSON.parse(textOf('sbom.cdx.json')));
  const names = new Set(bill.components.map(({ name }) => name));
  const installed = Object.keys(JSON.parse(textOf('package.json')).dependencies);
  const unnamed = installed.filter((name) => !names.has(name.replace(/^@[^/]+\//, '')) && !names.has(name));
  if (unnamed.length > 0) throw new Error(`sbom.cdx.json does not name ${unnamed.join(', ')}`);
}

/** Checks one relay of the image: user, root file system, readiness, health check and stop. */
export async function tryImage(image: BuiltImage, say: Say): Promise<void> {
  const { config } = image;
  if (!/^[1-9]\d*:[1-9]\d*$/.test(config.User))
    throw new Error(`the user is "${config.User}", not a number beside root`);
  checkContents(image);
  say('has its licence and its bill of materials');
  const env = environmentOf(image);
  const run = (...program: string[]) => {
    const { program: first, args } = inImage(image, program);
    return spawnSync(first, args, { env: { ...env, ...settings }, encoding: 'utf8' });
  };
  const port = await freePort();
  const settings = {
    CALLBOARD_HOST: '127.0.0.1',
    CALLBOARD_PORT: String(port),
    CALLBOARD_SECRET: SECRET,
    CALLBOARD_ADMIN_TOKEN: 'admin-token-of-the-check',
  };
  // Every user may write to /tmp, so only a read-only root refuses this file.
  const touched = run('touch', '/tmp/probe');
  if (!touched.stderr.includes('Read-only file system')) throw new Error(`the root can be written: ${touched.stderr}`);
  say('root file system: read-only');
  await using relay = await startRelayProcess(settings, ofImage(image));
  const [, uid] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${relay.pid}/status`, 'utf8')) ?? [];
  if (uid !== config.User.split(':')[0]) throw new Error(`it runs as user ${uid}`);
  say(`runs as user ${uid}`);
  for (const path of ['/readyz', '/clients/runtime.js', '/console/']) {
    const status = await statusOf(port, path);
    if (status !== 200) throw new Error(`${path} answered ${status}: ${relay.output}`);
  }
  say('answers /readyz, /clients/runtime.js and /console/ with 200');
  const health = run('node', 'dist/bin.js', 'healthcheck');
  if (health.status !== 0)
    throw new Error(`the health check ended with ${health.status}: ${health.stdout}${health.stderr}`);
  say('health check: exit code 0');
  await stopWhileCommandsRun(relay, { url: `http://127.0.0.1:${port}`, say });
}

/** Throws unless a stopped relay lets the running commands end and then exits with 0. */
async function stopWhileCommandsRun(
  relay: RelayProcess,
  { url, say }: { readonly url: string; readonly say: Say },
): Promise<void> {
  const scopes = ['connect', 'invoke'];
  const token = (): Promise<string> =>
    signToken({ secret: SECRET, user: 'alice', scopes, ttlSeconds: 600, now: Date.now() });
  await using load = await startLoad({ url, token, clients: RUNNING, callers: 0 });
  const held = await load.hold();
  const { draining, ended } = relay.stop();
  await draining;
  held.release();
  await held.ended;
  const { outcomes } = await load.finish();
  const code = await ended;
  if (code !== 0) throw new Error(`SIGTERM ended it with ${code}: ${relay.output}`);
  if (outcomes['completed'] !== RUNNING) throw new Error(`the commands that ran ended ${JSON.stringify(outcomes)}`);
  say(`SIGTERM while ${RUNNING} commands ran: all completed, exit code 0`);
}

function statusOf(port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    asked.on('error', reject);
    asked.end();
  });
}
