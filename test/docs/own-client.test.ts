/** Runs the smallest client of PROTOCOL.md: against a relay as the page says, and against `callboard conformance`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import type { ClaimResult } from '../../src/cli/run/conformance.ts';
import { startRunner } from './kit/example-runner.ts';
import { examplesOf, reasonNotRun, ROOT } from './kit/examples.ts';

const examples = examplesOf('PROTOCOL.md').filter(({ language }) => language !== 'ts');
const [client] = examples;

test('the client has about twenty lines and runs as pasted, with the call below it', async () => {
  expect(client?.info).toBe('file=own-client.mjs');
  expect(client?.text.trim().split('\n').length).toBeLessThanOrEqual(25);
  const run = examples.filter((example) => reasonNotRun(example) === null);
  expect(run.map(({ language }) => language)).toEqual(['js', 'sh']);
  await using runner = await startRunner();
  for (const example of run) await runner.run(example);
});

/** Runs the verb in a folder with the client, and returns its exit code and its output. */
async function check(...argv: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'callboard-own-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'own-client.mjs'), client?.text ?? '');
  const child = spawn(process.execPath, [join(ROOT, 'src/bin.ts'), 'conformance', ...argv], {
    cwd: folder,
    env: { ...process.env, XDG_CONFIG_HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, out, err };
}

/** The claims that it fails: it has no memory of commands, stops nothing, and does not come back. */
const LACKS = [
  ...['handler_failed', 'cancel', 'repeat_running', 'repeat_ended', 'remaining_ms', 'site_params', 'reconnect'],
];

test('`callboard conformance` names what the client lacks', async () => {
  const failing = async (within: string): Promise<readonly ClaimResult[]> => {
    const { code, out } = await check('--within', within, '--json', '--', process.execPath, 'own-client.mjs');
    const { ok, claims }: { ok: boolean; claims: readonly ClaimResult[] } = JSON.parse(out);
    expect([code, ok]).toEqual([1, false]);
    return claims.filter(({ verdict }) => verdict === 'fails');
  };
  // On a busy machine the client may need longer for what it can do.
  const brief = await failing('2s');
  const failed = brief.length === LACKS.length ? brief : await failing('20s');
  expect(failed.map(({ name }) => name)).toEqual(LACKS);
  expect(failed[0]).toMatchObject({ section: 5, expected: expect.any(String), received: expect.any(String) });
});

test('a program that does not start, a wrong claim and a port in use are said', async () => {
  expect(await check('--', 'no-such-program')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringMatching(/No client connected[^]*no-such-program ENOENT/),
  });
  expect(await check('--except', 'nothing')).toMatchObject({ code: 2, err: expect.stringContaining('see --list') });
  expect(await check('--port', '99999')).toMatchObject({ code: 2, err: expect.stringContaining('0 to 65535') });
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const address = server.address();
  const port = String(typeof address === 'object' && address?.port);
  expect(await check('--port', port)).toMatchObject({ code: 1, err: expect.stringMatching(/^port_in_use: /) });
  const list = await check('--list');
  expect([list.code, list.out]).toEqual([0, expect.stringContaining('repeat_ended           section 5: ')]);
});
