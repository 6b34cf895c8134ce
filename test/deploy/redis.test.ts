/** Tests deploy/kubernetes/redis/redis.conf with redis-server and with a relay that uses it. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { openCallboard } from '../../src/callboard.ts';
import { ownFolder } from '../kit/folder.ts';
import { connectCommands, startRedis } from '../kit/redis.ts';
import { readCompose } from './kit/compose.ts';
import { renderTree } from './kit/kustomization.ts';
import { containerOf, podSpecOf } from './kit/manifests.ts';
import { find } from './kit/programs.ts';
import { configOf, makeSecrets } from './kit/settings.ts';
import { changed, readTree, textOf, type Tree } from './kit/tree.ts';
import { eventually } from '../kit/patience.ts';

const tree = readTree();
const secrets = makeSecrets(tree, '127.0.0.1');
const FOLDER = 'dir /data';

/** Starts redis-server with the configuration of this tree, in a folder of its own. */
async function start(given: Tree) {
  const folder = ownFolder();
  const [config, auth] = [join(folder, 'redis.conf'), join(folder, 'auth.conf')];
  const own = changed(given, 'kubernetes/redis/redis.conf', FOLDER, `dir ${folder}`);
  writeFileSync(config, textOf(own, 'kubernetes/redis/redis.conf'));
  writeFileSync(auth, secrets.get('redis-auth.conf') ?? '');
  return startRedis(['--include', config, '--include', auth]);
}

/** Returns the settings of a relay that uses this Redis. */
function settingsOf(port: number) {
  const url = (secrets.get('redis-url') ?? '').replace(':6379', `:${port}`);
  const files = new Map([...secrets, ['redis-url', url]]);
  const names = { SECRET: 'secret', ADMIN_TOKEN: 'admin-token', REDIS_URL: 'redis-url' };
  const env = Object.entries(names).map(([name, file]) => [`CALLBOARD_${name}_FILE`, file]);
  return configOf({ ...Object.fromEntries(env), CALLBOARD_PORT: '0' }, files);
}

/** Returns what Redis answers to a command without a password. */
async function answerOf(port: number, command: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`${command}\r\n`);
  const [answer] = await once(socket, 'data');
  socket.destroy();
  return String(answer);
}

it('refuses a connection without the password, and keeps what relays write', async () => {
  const redis = await start(tree);
  try {
    expect(await answerOf(redis.port, 'GET key')).toMatch(/^-NOAUTH /);
    const relay = await openCallboard({ config: settingsOf(redis.port) });
    try {
      const url = await relay.listen();
      await eventually(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
    } finally {
      await relay.close();
    }
    const password = (secrets.get('redis-password') ?? '').trim();
    const known = connectCommands(redis.url.replace('//', `//:${password}@`));
    await known.connect();
    expect(await known.config('GET', 'maxmemory')).toEqual(['maxmemory', String(1024 ** 3)]);
    known.disconnect();
  } finally {
    await redis.stop();
  }
});

it('is what the relay demands: it does not start over a Redis that evicts, or that does not write to disk', async () => {
  for (const [text, wrong, named] of [
    ['maxmemory-policy noeviction', 'maxmemory-policy allkeys-lru', 'maxmemory-policy'],
    ['appendonly yes', 'appendonly no', 'appendonly'],
  ] as const) {
    const redis = await start(changed(tree, 'kubernetes/redis/redis.conf', text, wrong));
    try {
      await expect(openCallboard({ config: settingsOf(redis.port) })).rejects.toThrow(named);
    } finally {
      await redis.stop();
    }
  }
});

const PROBE = z.looseObject({ exec: z.object({ command: z.array(z.string()) }) });

// redis-cli comes with Redis in the image, and not with every redis-server.
it.runIf(find('redis-cli') !== null)('passes its probes with the password, and not with another', async () => {
  const container = containerOf(
    podSpecOf(renderTree(tree, 'kubernetes/redis').find(({ kind }) => kind === 'StatefulSet')),
  );
  const inPod = ['startupProbe', 'readinessProbe'].map((name) => PROBE.parse(container[name]).exec.command.slice(2));
  const [form, ...inCompose] = readCompose(tree).services['redis']?.healthcheck?.test ?? [];
  expect(form).toBe('CMD-SHELL');
  const texts = [...inPod, inCompose.map((text) => text.replaceAll('$$', '$'))];
  const redis = await start(tree);
  try {
    const password = join(ownFolder(), 'password');
    const probe = ([text = '', ...rest]: readonly string[]) => {
      expect(rest).toEqual([]);
      const here = text.replace(/\/run\/secrets\/(redis\/|redis_)password/, password);
      const { status } = spawnSync('sh', ['-c', here.replace('redis-cli', `redis-cli -p ${redis.port}`)]);
      return status;
    };
    writeFileSync(password, secrets.get('redis-password') ?? '');
    expect(texts.map(probe)).toEqual([0, 0, 0]);
    writeFileSync(password, 'another');
    expect(texts.map(probe)).toEqual([1, 1, 1]);
  } finally {
    await redis.stop();
  }
});
