import assert from 'node:assert';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { openTestRelay } from 'callboard/testing';

// Debian installs `websockets` for its own Python, which may not be the first one in PATH.
const python = ['python3', '/usr/bin/python3'].find(
  (path) => spawnSync(path, ['-c', 'import websockets']).status === 0,
);
const skip = python ? false : 'needs python3 and the package websockets';

test('the lamp connects, is set by a caller in Python, and leaves', { skip }, async () => {
  await using relay = await openTestRelay();
  const env = { ...process.env, RELAY: relay.connectUrl, TOKEN: await relay.token('alice') };
  const lamp = spawn(python, ['-B', 'lamp.py', 'lamp-1'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(createInterface({ input: lamp.stdout }), 'line');
  const args = ['-B', 'call.py', 'lamp-1', 'lamp.set', '{"on":true}', '--connect-within-ms', '10000'];
  const { stdout } = await promisify(execFile)(python, args, { env });
  assert.match(stdout, /"outcome": ?"completed"/);
  const record = await relay.record({ userId: 'alice', clientId: 'lamp-1', action: 'lamp.set' });
  assert.equal(record.outcome, 'COMPLETED');
  lamp.kill('SIGTERM');
  assert.deepEqual(await once(lamp, 'exit'), [0, null]);
});
