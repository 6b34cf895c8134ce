/** Tests credentials and certificates that are read again when their files change. */
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { reloadOnChange } from '../../src/cli/reload.ts';
import { readConfig } from '../../src/config.ts';
import type { PolicyFile } from '../../src/core/auth/policy-file.ts';
import { fail } from '../../src/core/errors.ts';
import { createLog } from '../../src/platform/log.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from '../kit/certificates.ts';
import { FakeClock } from '../kit/clock.ts';

const FIRST = 'the first secret of more than 32 bytes';
const SECOND = 'the second secret of more than 32 bytes';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'callboard-reload-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = (name: string): string => join(folder, name);
const put = (name: string, text: string): void => writeFileSync(path(name), text);

/** Starts watching the files. Instead of a relay, it only records what is replaced. */
function started(env: Record<string, string>) {
  const replaced: unknown[] = [];
  const policies: (number | string | null)[] = [];
  const lines: string[] = [];
  const clock = new FakeClock();
  const log = createLog({ level: 'info', sink: { write: (line) => void lines.push(line) } });
  const callboard = {
    replaceCredentials: ({ adminTokens, secret, previousSecret }: Record<string, unknown>) =>
      void replaced.push({ adminTokens, secret, previousSecret }),
    replaceCertificate: (tls: unknown) => void replaced.push(tls),
    // As a relay of 127.0.0.1 does: only the login of its address can be replaced.
    replaceRedisLogin: (url: string) => {
      replaced.push(url);
      return new URL(url).hostname === '127.0.0.1';
    },
    policy: {
      replace: (file: PolicyFile | null) => {
        if (file?.userCapacity === 13) fail('invalid_argument', 'Refused by the relay.');
        policies.push(file?.userCapacity ?? null);
      },
      refuse: (reason: string) => void policies.push(reason),
    },
  };
  const stop = reloadOnChange(readConfig(env, []), { callboard, env, argv: [], clock, log });
  return { replaced, policies, lines, clock, log, stop, look: () => clock.advance(5_000) };
}

it('replaces the credentials when a file has changed, and never before', async () => {
  put('secret', FIRST);
  const { replaced, look } = started({ CALLBOARD_SECRET_FILE: path('secret') });
  await look();
  expect(replaced).toEqual([]);
  put('secret', `${SECOND}\n${FIRST}\n`);
  await look();
  await look();
  expect(replaced).toEqual([{ adminTokens: [], secret: SECOND, previousSecret: FIRST }]);
});

it('sees a file that is replaced by a symbolic link, as mounted secrets are', async () => {
  put('one', FIRST);
  put('two', SECOND);
  symlinkSync(path('one'), path('secret'));
  const { replaced, look } = started({ CALLBOARD_SECRET_FILE: path('secret') });
  symlinkSync(path('two'), path('next'));
  renameSync(path('next'), path('secret'));
  await look();
  expect(replaced).toMatchObject([{ secret: SECOND, previousSecret: null }]);
});

it('keeps the present credentials while a file is faulty or missing, logs that once, and takes the next valid file', async () => {
  put('secret', FIRST);
  const { replaced, lines, look } = started({ CALLBOARD_SECRET_FILE: path('secret') });
  put('secret', 'too short');
  await look();
  await look();
  expect([replaced, lines.length]).toEqual([[], 1]);
  expect(lines[0]).toContain('CALLBOARD_SECRET_FILE: expected at least 32 bytes');
  expect(lines[0]).not.toContain('too short');
  rmSync(path('secret'));
  await look();
  expect([replaced, lines.length]).toEqual([[], 2]);
  put('secret', SECOND);
  await look();
  expect(replaced).toMatchObject([{ secret: SECOND }]);
});

it('replaces the certificate when its files have changed', async () => {
  const write = ({ cert, key }: typeof CERTIFICATE): void => {
    put('tls.crt', cert);
    put('tls.key', key);
  };
  write(CERTIFICATE);
  const env = { CALLBOARD_TLS_CERT: path('tls.crt'), CALLBOARD_TLS_KEY: path('tls.key'), CALLBOARD_SECRET: FIRST };
  const { replaced, look } = started(env);
  put('tls.crt', OTHER_CERTIFICATE.cert);
  await look();
  expect(replaced).toEqual([]);
  write(OTHER_CERTIFICATE);
  await look();
  expect(replaced).toContainEqual({ cert: OTHER_CERTIFICATE.cert.trimEnd(), key: OTHER_CERTIFICATE.key.trimEnd() });
});

it('redacts a secret that it has read', async () => {
  put('secret', FIRST);
  const { lines, log, look } = started({ CALLBOARD_SECRET_FILE: path('secret') });
  put('secret', SECOND);
  await look();
  log.info({ text: SECOND }, `it is ${SECOND}`);
  expect(lines.join('')).not.toContain(SECOND);
});

it('reads nothing without such files, and nothing after it was stopped', async () => {
  const without = started({ CALLBOARD_SECRET: FIRST });
  await without.look();
  expect(without.replaced).toEqual([]);
  put('secret', FIRST);
  const { replaced, look, stop } = started({ CALLBOARD_SECRET_FILE: path('secret') });
  stop();
  put('secret', SECOND);
  await look();
  expect(replaced).toEqual([]);
});

it('gives the relay the new login of Redis, and says that another address needs a restart', async () => {
  put('redis', 'redis://:old@127.0.0.1');
  const credentials = {
    CALLBOARD_SECRET: FIRST,
    CALLBOARD_ADMIN_TOKEN: 'the-administrator',
    CALLBOARD_DURABILITY: 'memory',
  };
  const { replaced, lines, look } = started({ ...credentials, CALLBOARD_REDIS_URL_FILE: path('redis') });
  put('redis', 'redis://:new@127.0.0.1');
  await look();
  expect(replaced.at(-1)).toBe('redis://:new@127.0.0.1');
  expect(lines.join()).not.toContain('restart');
  put('redis', 'redis://:new@redis.example');
  await look();
  expect(replaced.at(-1)).toBe('redis://:new@redis.example');
  expect(lines.join()).toContain('it is used after a restart');
  expect(lines.join()).not.toMatch(/old|new@/);
});

it('replaces the policy when its file has changed, and reports a faulty one without keeping secrets from being replaced', async () => {
  put('secret', FIRST);
  put('policy.json', '{"user_capacity":7}');
  const env = { CALLBOARD_SECRET_FILE: path('secret'), CALLBOARD_POLICY_FILE: path('policy.json') };
  const { policies, replaced, look } = started(env);
  await look();
  expect(policies).toEqual([]);
  put('policy.json', '{"user_capacity":8}');
  await look();
  put('policy.json', '{"user_capacity":"many"}');
  put('secret', SECOND);
  await look();
  put('policy.json', '{"user_capacity":13}');
  await look();
  rmSync(path('policy.json'));
  await look();
  put('policy.json', '{}');
  await look();
  const [first, faulty, refused, missing, last] = policies;
  expect([first, refused, last]).toEqual([8, 'Refused by the relay.', null]);
  expect(faulty).toContain('CALLBOARD_POLICY_FILE user_capacity: ');
  expect(missing).toContain('CALLBOARD_POLICY_FILE: ');
  expect(replaced.at(-1)).toMatchObject({ secret: SECOND });
});
