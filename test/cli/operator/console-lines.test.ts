/** Tests what the console's "Copy as command line" copies, read by a real shell and then by the real parser. */
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { ownFolder } from '../../kit/folder.ts';
import { operatorOf } from './kit/operator.ts';

let relay: RealRelay;
let desk: Runtime;
beforeAll(async () => {
  relay = await startRealRelay();
  const token = await relay.token("o'neil smith", 'connect');
  desk = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  desk.handle('echo', {}, (params) => params);
  desk.connect();
  await desk.ready();
  // The console derives its URL from that of its scripts, which here is the path of a file. So the module that derives
  // it is replaced.
  vi.doMock('../../../src/console/base.ts', () => ({ relayUrl: () => relay.url, segments: () => '' }));
});
afterAll(async () => {
  await desk.close({ withinMs: 0 });
  await relay[Symbol.asyncDispose]();
});

it.each([
  ['{}', {}],
  [
    '{"text":"it\'s $HOME `x` \\\\n","n":[1,2.5,null]}',
    { commandId: 'c-1', respondWithinMs: 5000, connectWithinMs: 250 },
  ],
])('a line with the params %s calls the client with them', async (params, more) => {
  const { commandLine } = await import('../../../src/console/invoke/command-line.ts');
  const line = commandLine({ userId: "o'neil smith", clientId: 'desk', action: 'echo', params, ...more });
  const folder = ownFolder();
  const shim = join(folder, 'callboard');
  writeFileSync(shim, `#!/bin/sh\nprintf '%s\\0' "$@" > "${folder}/words"\ncat > "${folder}/input"\n`);
  chmodSync(shim, 0o755);
  await promisify(execFile)('/bin/sh', ['-c', line], { env: { PATH: `${folder}:/usr/bin:/bin` } });
  const words = readFileSync(join(folder, 'words'), 'utf8').split('\0').slice(0, -1);
  // The command reads this file and not standard input, which belongs to the process of this test.
  const argv = words.map((word) => (word === '-' ? join(folder, 'input') : word));
  const run = operatorOf({ CALLBOARD_TOKEN: await relay.token("o'neil smith", 'invoke') });
  const { code, out, err } = await run([...argv, '-o', 'json']);
  expect([code, err]).toEqual([0, '']);
  expect(JSON.parse(out)).toMatchObject({ outcome: 'completed', result: JSON.parse(params) });
});
