import assert from 'node:assert';
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { openTestRelay } from 'callboard/testing';

// Debian's package has the sources of the library where Go looks for them without modules.
const GO_PATH = '/usr/share/gocode';
const hasLibrary = existsSync(`${GO_PATH}/src/github.com/gorilla/websocket`);
const skip =
  spawnSync('go', ['version']).status === 0 && hasLibrary
    ? false
    : 'needs go and the package golang-github-gorilla-websocket-dev';

test('the lamp connects, is set by a caller in Go, and leaves', { skip }, async () => {
  const offline = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: GO_PATH,
    GOFLAGS: '',
    GOCACHE: `${process.cwd()}/.cache`,
  };
  execFileSync('go', ['build', '-o', 'callboard-example', '.'], { env: offline });
  await using relay = await openTestRelay();
  const env = { ...process.env, RELAY: relay.connectUrl, TOKEN: await relay.token('alice') };
  const lamp = spawn('./callboard-example', ['client', 'lamp-1'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(createInterface({ input: lamp.stdout }), 'line');
  const args = ['call', '--connect-within-ms', '10000', 'lamp-1', 'lamp.set', '{"on":true}'];
  const { stdout } = await promisify(execFile)('./callboard-example', args, { env });
  assert.match(stdout, /"outcome": ?"completed"/);
  const record = await relay.record({ userId: 'alice', clientId: 'lamp-1', action: 'lamp.set' });
  assert.equal(record.outcome, 'COMPLETED');
  lamp.kill('SIGTERM');
  assert.deepEqual(await once(lamp, 'exit'), [0, null]);
});
