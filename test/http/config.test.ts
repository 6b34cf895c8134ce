/** Tests the settings of a relay: defaults, files, checks and messages. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownFolder } from '../kit/folder.ts';
import { secretsIn } from '../../src/config/auth-config.ts';
import { readConfig } from '../../src/config.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { SHARE_BOUNDS, SPILL_IN_MEMORY } from '../../src/core/shares/share-bounds.ts';
import { SETTING_NAMES } from '../../src/settings.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from '../kit/certificates.ts';

const SECRET = 'a secret of more than thirty-two bytes';
const CREDENTIALS = { CALLBOARD_SECRET: SECRET, CALLBOARD_ADMIN_TOKEN: 'the-administrator' };

function faultsOf(env: Record<string, string>, argv: readonly string[] = []): Record<string, string> {
  try {
    readConfig(env, argv);
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    return Object.fromEntries((error.details.errors ?? []).map(({ parameter, detail }) => [parameter, detail]));
  }
  return {};
}

function file(text: string): string {
  const path = join(ownFolder(), 'policy.json');
  writeFileSync(path, text);
  return path;
}

describe('configuration', () => {
  it('is direct mode on 127.0.0.1:4400 when nothing is set', () => {
    expect(readConfig({}, [])).toMatchObject({
      host: '127.0.0.1',
      port: 4400,
      basePath: '',
      introspection: 'admin',
      trustProxy: false,
      allowedOrigins: [],
      maxBodyBytes: 1024 * 1024,
      logLevel: 'info',
      rawMessages: false,
      spillDir: null,
      redis: null,
      warnings: [],
    });
  });

  it('generates an admin token and a secret on loopback if nothing is configured, new ones each time', () => {
    const one = readConfig({}, []);
    const two = readConfig({}, ['--host', '::1']);
    expect(one.generated).toBe(true);
    expect(Buffer.byteLength(one.auth.secret ?? '')).toBeGreaterThanOrEqual(32);
    expect(one.auth.adminTokens[0]?.length).toBeGreaterThanOrEqual(32);
    expect(two.auth.secret).not.toBe(one.auth.secret);
    expect(two.auth.adminTokens).not.toEqual(one.auth.adminTokens);
  });

  it('takes the address of traces only if it is one, with the id after its host', () => {
    const url = 'https://traces.example/trace/{traceId}?from=0';
    expect(readConfig({ CALLBOARD_TRACE_URL: url }, []).traceUrl).toBe(url);
    expect(readConfig({}, []).traceUrl).toBeNull();
    for (const wrong of [
      ...[
        'javascript:alert(1)//{traceId}',
        'https://traces.example/',
        'https://{traceId}.example/',
        'traces/{traceId}',
      ],
      ...['https://name:secret@traces.example/{traceId}', 'https://traces.example?{traceid}'],
    ])
      expect([wrong, faultsOf({ CALLBOARD_TRACE_URL: wrong })]).toEqual([
        wrong,
        { CALLBOARD_TRACE_URL: expect.stringContaining('{traceId}') },
      ]);
  });

  it('takes the address that clients are told only if they can connect there, and if it holds no password', () => {
    for (const url of ['wss://relay-1.example/connect', 'ws://10.0.0.5:4401/base/connect', 'ws://[::1]:4400/connect'])
      expect(readConfig({ CALLBOARD_ADVERTISE_URL: url }, []).advertiseUrl).toBe(url);
    expect(readConfig({}, []).advertiseUrl).toBeNull();
    for (const wrong of [
      ...['https://relay-1.example/connect', 'relay-1.example/connect', 'wss://relay-1.example', 'wss:///connect'],
      ...['wss://user:secret@relay-1.example/connect', 'wss://relay-1.example/connect?token=t', 'wss://a/c#x'],
      ...['wss://relay 1/connect', `wss://relay-1.example/${'c'.repeat(1024)}`],
    ])
      expect([wrong, faultsOf({ CALLBOARD_ADVERTISE_URL: wrong })]).toEqual([
        wrong,
        { CALLBOARD_ADVERTISE_URL: expect.stringContaining('wss://relay-1.example/connect') },
      ]);
  });

  it('takes the token of the scraper from a variable or a file, and not if it is short or an administrator’s', () => {
    const token = 'a-token-that-only-prometheus-has-1';
    expect(readConfig({ ...CREDENTIALS }, []).auth.metricsToken).toBe(null);
    expect(readConfig({ ...CREDENTIALS, CALLBOARD_METRICS_TOKEN: token }, []).auth.metricsToken).toBe(token);
    const inFile = { ...CREDENTIALS, CALLBOARD_METRICS_TOKEN_FILE: file(`${token}\n`) };
    expect(readConfig(inFile, []).auth.metricsToken).toBe(token);
    expect(readConfig(CREDENTIALS, ['--metrics-token-file', file(token)]).auth.metricsToken).toBe(token);
    const faults = (text: string) => faultsOf({ ...CREDENTIALS, CALLBOARD_METRICS_TOKEN: text });
    expect(faults(token.slice(0, 31))).toEqual({ CALLBOARD_METRICS_TOKEN: 'expected at least 32 characters' });
    expect(faults('with a space'.repeat(4))).toMatchObject({
      CALLBOARD_METRICS_TOKEN: expect.stringContaining('visible ASCII'),
    });
    expect(faultsOf({ CALLBOARD_ADMIN_TOKEN: `ops=${token}`, CALLBOARD_METRICS_TOKEN: token })).toEqual({
      CALLBOARD_METRICS_TOKEN: 'must not be the token of an administrator',
    });
    // The token of the scraper admits only the scraper, so it does not count as a credential.
    expect(readConfig({ CALLBOARD_METRICS_TOKEN: token }, []).generated).toBe(true);
  });

  it.each([
    { CALLBOARD_SECRET: SECRET },
    { CALLBOARD_ADMIN_TOKEN: 'short' },
    { CALLBOARD_JWKS_URL: 'https://id.example/keys', CALLBOARD_ISSUER: 'i', CALLBOARD_AUDIENCE: 'a' },
  ])('generates nothing once any credential is configured: %j', (env) => {
    const config = readConfig(env, []);
    expect(config.generated).toBe(false);
    expect(config.auth.secret).toBe(env.CALLBOARD_SECRET ?? null);
    expect(config.auth.adminTokens).toEqual(env.CALLBOARD_ADMIN_TOKEN ? [env.CALLBOARD_ADMIN_TOKEN] : []);
  });

  it.each(['0.0.0.0', '::', '192.168.1.4', 'relay.example', '127.0.0.1.evil.example'])(
    'refuses to listen on %s without configured credentials',
    (host) => {
      expect(faultsOf({ CALLBOARD_HOST: host })).toHaveProperty('CALLBOARD_HOST');
      expect(faultsOf({ CALLBOARD_HOST: host, CALLBOARD_ADMIN_TOKEN: ' , ' })).toHaveProperty('CALLBOARD_HOST');
      expect(faultsOf({ CALLBOARD_HOST: host, CALLBOARD_SECRET: SECRET })).toEqual({});
    },
  );

  it('requires longer admin tokens if others can reach the relay', () => {
    const env = { CALLBOARD_HOST: '0.0.0.0', CALLBOARD_ADMIN_TOKEN: 'a-token-of-twenty-chars,short' };
    expect(faultsOf(env)).toHaveProperty('CALLBOARD_ADMIN_TOKEN');
  });

  it('accepts names of admin tokens, and requires at least 16 characters after a name', () => {
    const named = { CALLBOARD_ADMIN_TOKEN: 'ops=a-token-of-twenty-chars, bare, cGFkZGVk==' };
    expect(readConfig(named, []).auth.adminTokens).toEqual(['ops=a-token-of-twenty-chars', 'bare', 'cGFkZGVk==']);
    for (const text of ['ops=short', 'bare,ops=short', 'ops=short=']) {
      expect(faultsOf({ CALLBOARD_ADMIN_TOKEN: text })).toHaveProperty('CALLBOARD_ADMIN_TOKEN');
    }
    expect(faultsOf({ CALLBOARD_HOST: '0.0.0.0', CALLBOARD_ADMIN_TOKEN: 'ops=a-token-of-twenty-chars' })).toEqual({});
    expect(faultsOf({ CALLBOARD_HOST: '0.0.0.0', CALLBOARD_ADMIN_TOKEN: 'named-short=12345' })).toHaveProperty(
      'CALLBOARD_ADMIN_TOKEN',
    );
  });

  it('reports every fault at once, each by the name of its variable or flag', () => {
    const env = {
      CALLBOARD_SECRET: 'too short',
      CALLBOARD_JWKS_URL: 'ftp://id.example',
      CALLBOARD_REDIS_URL: 'redis://:hunter2@127.0.0.1,127.0.0.2',
      CALLBOARD_LOG_LEVEL: 'loud',
      CALLBOARD_ALLOWED_ORIGINS: 'https://app.example/path',
      CALLBOARD_TRUST_PROXY: 'perhaps',
      CALLBOARD_POLICY_FILE: '/no/such/file.json',
    };
    const faults = faultsOf(env, [
      '--port',
      '70000',
      '--max-body-bytes',
      'many',
      '--prot',
      '1',
      'stray',
      '--namespace',
    ]);
    expect(Object.keys(faults).sort()).toEqual(
      [
        ...['--max-body-bytes', '--namespace', '--port', '--prot', '1', 'stray'],
        ...['CALLBOARD_ALLOWED_ORIGINS', 'CALLBOARD_AUDIENCE', 'CALLBOARD_ISSUER', 'CALLBOARD_JWKS_URL'],
        ...['CALLBOARD_LOG_LEVEL', 'CALLBOARD_POLICY_FILE', 'CALLBOARD_REDIS_URL', 'CALLBOARD_SECRET'],
        'CALLBOARD_TRUST_PROXY',
      ].sort(),
    );
    expect(faults['CALLBOARD_REDIS_URL']).toContain('one host was expected');
    expect(faults['CALLBOARD_POLICY_FILE']).toContain('ENOENT');
  });

  it('never repeats the value of a secret in a fault', () => {
    const env = {
      CALLBOARD_SECRET: 'hunter2',
      CALLBOARD_ADMIN_TOKEN: 'has a space',
      CALLBOARD_REDIS_URL: 'redis://:hunter2@a/b',
    };
    const text = JSON.stringify(faultsOf(env));
    expect(text).toContain('CALLBOARD_REDIS_URL');
    expect(text).toContain('CALLBOARD_SECRET');
    expect(text).toContain('CALLBOARD_ADMIN_TOKEN');
    expect(text).not.toMatch(/hunter2|has a space/);
  });

  it.each([[], ['--host', '0.0.0.0']])(
    'generates nothing in shared mode, because a token must hold on all nodes: %j',
    (...argv) => {
      const CALLBOARD_REDIS_URL = 'redis://127.0.0.1';
      const faults = faultsOf({ CALLBOARD_REDIS_URL }, argv);
      expect(Object.keys(faults)).toEqual(['CALLBOARD_REDIS_URL']);
      expect(faults['CALLBOARD_REDIS_URL']).toMatch(
        /CALLBOARD_ADMIN_TOKEN and CALLBOARD_SECRET \(or CALLBOARD_JWKS_URL\)/,
      );
      expect(faults['CALLBOARD_REDIS_URL']).not.toContain('\n');
      expect(readConfig({ CALLBOARD_REDIS_URL, ...CREDENTIALS }, argv).generated).toBe(false);
      expect(readConfig({ CALLBOARD_REDIS_URL, CALLBOARD_SECRET: SECRET }, argv).generated).toBe(false);
    },
  );

  it('lets flags override variables and treats an empty variable as absent', () => {
    const config = readConfig({ CALLBOARD_PORT: '1', CALLBOARD_NODE_ID: '', CALLBOARD_TRUST_PROXY: 'true' }, [
      '--port=0',
      '--trust-proxy=false',
      '--allowed-origins',
      'https://a.example, http://localhost:3000',
      '--base-path',
      '/relay/',
    ]);
    expect(config).toMatchObject({ port: 0, nodeId: null, trustProxy: false, basePath: '/relay' });
    expect(config.allowedOrigins).toEqual(['https://a.example', 'http://localhost:3000']);
  });

  it.each([
    ...['*', 'https://app.example/', 'app.example', 'https://App.example', 'https://app.example:443', 'https://'],
    ...[
      'chrome-extension://id/page',
      'app',
      'Null',
      'chrome-extension://*',
      'wss://app.example',
      'Capacitor://localhost',
    ],
  ])('refuses the origin %s', (origin) => {
    expect(faultsOf({ CALLBOARD_ALLOWED_ORIGINS: origin })).toHaveProperty('CALLBOARD_ALLOWED_ORIGINS');
  });

  it('takes the origins of extensions, of app shells and, if it is named, of pages without an origin', () => {
    const origins = [
      ...[
        'chrome-extension://fmkadmapgofadopljbjfkapdkoienihi',
        'moz-extension://0a1b2c3d-0000-4000-8000-000000000000',
      ],
      ...['capacitor://localhost', 'ionic://localhost', 'tauri://localhost', 'app://', 'app://.', 'file://', 'null'],
    ];
    expect(readConfig({ CALLBOARD_ALLOWED_ORIGINS: origins.join(',') }, []).allowedOrigins).toEqual(origins);
  });

  it('counts trusted proxies', () => {
    const trusted = (text: string) => readConfig({ CALLBOARD_TRUST_PROXY: text }, []).trustProxy;
    expect(['true', 'on', 'off', '0', '1', '3'].map(trusted)).toEqual([true, true, false, 0, 1, 3]);
    expect(readConfig({}, ['--trust-proxy=2']).trustProxy).toBe(2);
    for (const wrong of ['-1', '11', '1.5', 'all'])
      expect(faultsOf({ CALLBOARD_TRUST_PROXY: wrong })).toHaveProperty('CALLBOARD_TRUST_PROXY');
  });

  it.each(['/../x', '/x/..', '/.', '/a/./b'])('refuses the base path %s, which no URL has', (path) => {
    expect(faultsOf({ CALLBOARD_BASE_PATH: path })).toHaveProperty('CALLBOARD_BASE_PATH');
    expect(faultsOf({ CALLBOARD_BASE_PATH: '/..x/.well-known' })).toEqual({});
  });

  it('takes the present key of the audit and the ones before it, which are all kept out of the log', () => {
    const [present, earlier] = ['p'.repeat(32), 'e'.repeat(32)];
    const config = readConfig({ CALLBOARD_AUDIT_KEY: `${present}\r\n${earlier}` }, []);
    expect(config.audit).toMatchObject({ key: present, earlierKeys: [earlier] });
    expect(secretsIn(config)).toEqual(expect.arrayContaining([present, earlier]));
    const short = faultsOf({ CALLBOARD_AUDIT_KEY: `${present}\nshort` });
    expect(short).toEqual({ CALLBOARD_AUDIT_KEY: 'expected at least 32 bytes in each line' });
    const many = faultsOf({ CALLBOARD_AUDIT_KEY: Array(13).fill(present).join('\n') });
    expect(many).toEqual({ CALLBOARD_AUDIT_KEY: expect.stringContaining('at most 12 lines') });
  });

  it('needs a key for the rows of an audit file', () => {
    const audit = { CALLBOARD_ADMIN_TOKEN: 'ops=0123456789abcdef', CALLBOARD_AUDIT_FILE: '/audit' };
    expect(faultsOf(audit)).toEqual({ CALLBOARD_AUDIT_FILE: expect.stringContaining('AUDIT_KEY or SECRET') });
    const { audit: read, reveal } = readConfig({ ...audit, CALLBOARD_AUDIT_KEY: 'k'.repeat(32) }, []);
    expect([read, reveal]).toEqual([
      { file: '/audit', key: 'k'.repeat(32), earlierKeys: [], days: 90, maxRows: 100_000 },
      'argument',
    ]);
  });

  it('has every setting as a variable and as a flag', () => {
    const values: Partial<Record<string, string>> = {
      HOST: '127.0.0.1',
      UNAUTHENTICATED_SOCKETS_PER_ADDRESS: '64',
      BASE_PATH: '/b',
      SECRET,
      METRICS_TOKEN: 'm'.repeat(32),
      JWKS_URL: 'https://id.example',
      REDIS_URL: 'redis://127.0.0.1',
      STORE: 'redis',
      DURABILITY: 'memory',
      POLICY_FILE: file('{}'),
      DATA_SYNC: 'always',
      AUDIT_KEY: 'k'.repeat(32),
      AUDIT_DAYS: '30',
      AUDIT_MAX_ROWS: '1000',
      REVEAL: 'mutation',
      TLS_CERT: file(CERTIFICATE.cert),
      TLS_KEY: file(CERTIFICATE.key),
      ALLOWED_ORIGINS: 'https://a.example',
      TRACE_URL: 'https://traces.example/{traceId}',
      ADVERTISE_URL: 'wss://relay-1.example/connect',
      INTROSPECTION: 'all',
      LOG_LEVEL: 'warn',
      REDIS_TLS_CA: file(CERTIFICATE.cert),
      REDIS_TLS_CERT: file(CERTIFICATE.cert),
      REDIS_TLS_KEY: file(CERTIFICATE.key),
      KEEP_ALIVE_MS: '75000',
      PING_MS: '5000',
    };
    const argv = SETTING_NAMES.flatMap((name) => {
      const flag = `--${name.toLowerCase().replaceAll('_', '-')}`;
      return /RAW|TRUST|STRICT|FAST|TRACE_IDS|FOLD|FROM_CLIENT|^CONSOLE$|^MCP$/.test(name)
        ? [flag]
        : [flag, values[name] ?? '1048576'.slice(0, name === 'PORT' || name === 'PARTITIONS' ? 3 : 9)];
    });
    expect(faultsOf({}, argv)).toEqual({});
    expect(SETTING_NAMES).toHaveLength(85);
  });

  it('has the bounds of each share; a default guarantee does not exceed its total', () => {
    expect(readConfig({}, []).shares).toEqual({ ...SHARE_BOUNDS, spilled_bytes: SPILL_IN_MEMORY });
    const argv = ['--links-share', '5', '--links-max', '50', '--queued-max-bytes', '2097152', '--spill-dir', '/s'];
    expect(readConfig({}, argv).shares).toEqual({
      ...SHARE_BOUNDS,
      links: { guarantee: 5, total: 50 },
      queued_bytes: { guarantee: 2_097_152, total: 2_097_152 },
    });
  });

  it('refuses a guarantee that exceeds its total, together with all other faults', () => {
    const argv = ['--links-share', '51', '--links-max', '50', '--marks-share', '3000000', '--waits-share', '0'];
    expect(faultsOf({}, argv)).toEqual({
      '--links-share': 'the guarantee 51 exceeds the total 50',
      '--marks-share': 'the guarantee 3000000 exceeds the total 2000000',
      '--waits-share': 'expected at least 1',
    });
  });

  it('is shared mode with the address of a Redis, and its own settings', () => {
    const url = 'redis+cluster://:pass@a:7000,b:7001';
    const { redis, warnings } = readConfig({ CALLBOARD_REDIS_URL: url, ...CREDENTIALS }, []);
    expect(redis).toEqual({
      url,
      store: 'owned',
      partitions: 1,
      durability: null,
      namespace: 'callboard',
      strictMigration: false,
      legacy: { commandStream: null, pending: null },
    });
    expect(warnings).toEqual([]);
    const argv = ['--partitions=6', '--durability=aof_always', '--namespace=blue', '--strict-migration'];
    const legacy = { CALLBOARD_LEGACY_COMMAND_STREAM: 'old:commands', CALLBOARD_LEGACY_PENDING: 'old:pending' };
    const full = readConfig({ CALLBOARD_REDIS_URL: url, ...CREDENTIALS, ...legacy }, argv);
    expect(full.redis).toEqual({
      url,
      store: 'owned',
      partitions: 6,
      durability: 'aof_always',
      namespace: 'blue',
      strictMigration: true,
      legacy: { commandStream: 'old:commands', pending: 'old:pending' },
    });
    expect(full.warnings).toEqual([]);
  });

  it('reports each setting of the other mode as without effect', () => {
    const shared = ['--partitions=2', '--durability=memory', '--namespace=n', '--strict-migration'];
    const legacy = ['--legacy-command-stream=s', '--legacy-pending=p'];
    const argv = [...shared, ...legacy];
    expect(readConfig({}, argv).warnings.map((line) => line.split(' ')[0])).toEqual(
      [...shared, ...legacy].map((flag) => flag.split('=')[0]),
    );
    const direct = [...argv, '--audit-file=a', '--data-sync=10'];
    expect(readConfig({ CALLBOARD_REDIS_URL: 'redis://h', ...CREDENTIALS }, direct).warnings).toEqual([
      '--audit-file has no effect with CALLBOARD_REDIS_URL.',
      '--data-sync has no effect with CALLBOARD_REDIS_URL.',
    ]);
  });

  it('reports which variables it ignored', () => {
    const { warnings } = readConfig({ CALLBOARD_ADMIN_TOKENS: 'typo' }, []);
    expect(warnings).toEqual(['CALLBOARD_ADMIN_TOKENS is not a setting and was ignored.']);
  });

  it('says which claims are set without a key set to read them from', () => {
    const env = { CALLBOARD_SECRET: 'a secret of more than thirty-two bytes', CALLBOARD_USER_CLAIM: 'email' };
    expect(readConfig(env, ['--scope-prefix', 'x:']).warnings).toEqual([
      'CALLBOARD_USER_CLAIM has no effect without CALLBOARD_JWKS_URL.',
      '--scope-prefix has no effect without CALLBOARD_JWKS_URL.',
    ]);
    const keys = { CALLBOARD_JWKS_URL: 'https://id.example/keys', CALLBOARD_ISSUER: 'i', CALLBOARD_AUDIENCE: 'a' };
    const { auth, warnings } = readConfig({ ...env, ...keys }, ['--scope-claim', 'roles']);
    expect(auth).toMatchObject({ userClaim: ['email'], scopeClaim: ['roles'], scopePrefix: '' });
    expect(warnings).toEqual([]);
  });

  it('disables a switch with --no-, which has no value and exists for switches only', () => {
    expect(readConfig({}, []).fastPath).toBe(true);
    expect(readConfig({}, ['--no-fast-path']).fastPath).toBe(false);
    expect(readConfig({ CALLBOARD_FAST_PATH: 'off' }, []).fastPath).toBe(false);
    expect(readConfig({ CALLBOARD_TRUST_PROXY: 'on' }, ['--no-trust-proxy']).trustProxy).toBe(false);
    expect(() => readConfig({}, ['--no-fast-path=true'])).toThrow(/takes no value/);
    expect(() => readConfig({}, ['--no-port'])).toThrow(/not a known flag/);
  });
});

describe('the policy file', () => {
  it('is parsed into rules and scopes', () => {
    const path = file(
      JSON.stringify({
        rules: [{ effect: 'deny', user: 'alice', action: ['wipe', 'drop*'] }],
        scopes: [{ id: 'team', members: '*@team.example', capacity: 5, member_capacity: 2 }],
        user_capacity: 7,
        rates: [
          { name: 'slow', action: 'tab.*', burst: 10, per_second: 0.5 },
          { burst: 1, per_second: 2 },
        ],
      }),
    );
    expect(readConfig({ CALLBOARD_POLICY_FILE: path }, []).policy).toEqual({
      rules: [
        expect.objectContaining({ name: 'rules[0]', effect: 'deny', users: ['alice'], actions: ['wipe', 'drop*'] }),
      ],
      scopes: [{ id: 'team', members: ['*@team.example'], capacity: 5, memberCapacity: 2 }],
      userCapacity: 7,
      rates: [
        expect.objectContaining({ name: 'slow', actions: ['tab.*'], burst: 10, perSecond: 0.5 }),
        expect.objectContaining({ name: 'rates[1]', burst: 1, perSecond: 2 }),
      ],
    });
  });

  it('has no two rates of one name, and no rate without a burst', () => {
    const slow = { name: 'slow', burst: 1, per_second: 1 };
    const faults = (rates: readonly object[]) =>
      Object.keys(faultsOf({ CALLBOARD_POLICY_FILE: file(JSON.stringify({ rates })) }));
    expect(faults([slow, slow])).toEqual(['CALLBOARD_POLICY_FILE rates']);
    expect(
      faults([
        { ...slow, burst: 0 },
        { name: 'fast', burst: 1, per_second: 0 },
      ]),
    ).toEqual(['CALLBOARD_POLICY_FILE rates[0].burst', 'CALLBOARD_POLICY_FILE rates[1].per_second']);
  });

  it('has every fault named by its place', () => {
    const path = file(
      JSON.stringify({ rules: [{ effect: 'maybe' }, { effect: 'deny', acton: 'x' }], scopes: [{ id: 'a/b' }] }),
    );
    const faults = Object.keys(faultsOf({ CALLBOARD_POLICY_FILE: path }));
    expect(faults).toEqual(
      expect.arrayContaining([
        'CALLBOARD_POLICY_FILE rules[0].effect',
        'CALLBOARD_POLICY_FILE rules[1]',
        'CALLBOARD_POLICY_FILE scopes[0].id',
        'CALLBOARD_POLICY_FILE scopes[0].members',
        'CALLBOARD_POLICY_FILE scopes[0].capacity',
      ]),
    );
  });

  it.each(['', '{"rules": [', '[]', '"text"'])('that holds %j stops the start', (text) => {
    expect(Object.keys(faultsOf({ CALLBOARD_POLICY_FILE: file(text) }))).toHaveLength(1);
  });
});

describe('settings from files', () => {
  const secretFile = (text: string): string => {
    const path = join(ownFolder(), 'secret');
    writeFileSync(path, text);
    return path;
  };

  it('are read from the file that the variable or the flag names, without the line end', () => {
    const path = secretFile(`${SECRET}\n`);
    const token = secretFile('ops=an-admin-token-of-16\n');
    const config = readConfig({ CALLBOARD_SECRET_FILE: path }, ['--admin-token-file', token]);
    expect([config.auth.secret, config.auth.adminTokens]).toEqual([SECRET, ['ops=an-admin-token-of-16']]);
    expect([config.generated, config.warnings]).toEqual([false, []]);
  });

  it('hold the secret and the one before it, a line each', () => {
    const older = 'an older secret of more than thirty-two bytes';
    const read = (text: string) => faultsOf({ CALLBOARD_SECRET_FILE: secretFile(text) });
    const { auth } = readConfig({ CALLBOARD_SECRET_FILE: secretFile(`${SECRET}\r\n${older}\n`) }, []);
    expect([auth.secret, auth.previousSecret]).toEqual([SECRET, older]);
    expect(read(`${SECRET}\nshort`)).toEqual({ CALLBOARD_SECRET_FILE: 'expected at least 32 bytes' });
    expect(read(`${SECRET}\n${older}\n${older}`)).toEqual({
      CALLBOARD_SECRET_FILE: 'expected at most two lines: the secret, and the one before it',
    });
  });

  it('are given by a flag in place of the variables', () => {
    const env = { CALLBOARD_SECRET: SECRET };
    const other = 'another secret of more than thirty-two bytes';
    expect(readConfig(env, ['--secret-file', secretFile(other)]).auth.secret).toBe(other);
    expect(readConfig({ CALLBOARD_SECRET_FILE: secretFile(other) }, ['--secret', SECRET]).auth.secret).toBe(SECRET);
  });

  it('have faults that name the file’s setting and never its content', () => {
    expect(faultsOf({ CALLBOARD_SECRET_FILE: '/no/such/file' })).toEqual({
      CALLBOARD_SECRET_FILE: 'the file cannot be read (ENOENT)',
    });
    expect(faultsOf({ CALLBOARD_SECRET_FILE: secretFile('\n') })).toEqual({
      CALLBOARD_SECRET_FILE: 'the file is empty',
    });
    expect(faultsOf({ CALLBOARD_SECRET_FILE: secretFile('too short') })).toEqual({
      CALLBOARD_SECRET_FILE: 'expected at least 32 bytes',
    });
    expect(faultsOf({ ...CREDENTIALS, CALLBOARD_SECRET_FILE: secretFile(SECRET) })).toEqual({
      CALLBOARD_SECRET_FILE: 'is not allowed together with CALLBOARD_SECRET',
    });
    expect(faultsOf({}, [`--host-file=${secretFile('0.0.0.0')}`])).toEqual({ '--host-file': 'is not a known flag' });
    expect(faultsOf({}, ['--secret-file'])).toEqual({ '--secret-file': 'needs a value' });
  });
});

describe('TLS', () => {
  const { cert, key } = CERTIFICATE;

  it('is off without a certificate, and on with one and its key', () => {
    expect(readConfig({}, []).tls).toBeNull();
    const env = { CALLBOARD_TLS_CERT: file(cert), CALLBOARD_TLS_KEY: file(key) };
    const config = readConfig(env, []);
    expect(config.tls).toEqual({ cert: cert.trimEnd(), key: key.trimEnd() });
    expect(config.files).toEqual([env.CALLBOARD_TLS_CERT, env.CALLBOARD_TLS_KEY]);
  });

  it('needs both files, readable and fitting together, and never shows the key', () => {
    const unfit = 'the certificate and the key are not PEM texts that fit together';
    const both = (certText: string, keyText: string) =>
      faultsOf({ CALLBOARD_TLS_CERT: file(certText), CALLBOARD_TLS_KEY: file(keyText) });
    expect(faultsOf({ CALLBOARD_TLS_CERT: file(cert) })).toEqual({ CALLBOARD_TLS_CERT: 'needs TLS_KEY too' });
    expect(faultsOf({ CALLBOARD_TLS_KEY: file(key) })).toEqual({ CALLBOARD_TLS_KEY: 'needs TLS_CERT too' });
    expect(both(cert, OTHER_CERTIFICATE.key)).toEqual({ CALLBOARD_TLS_CERT: unfit });
    expect(both('no certificate', key)).toEqual({ CALLBOARD_TLS_CERT: unfit });
    expect(faultsOf({ CALLBOARD_TLS_CERT: '/no/cert', CALLBOARD_TLS_KEY: '/no/key' })).toEqual({
      CALLBOARD_TLS_CERT: 'the file cannot be read (ENOENT)',
      CALLBOARD_TLS_KEY: 'the file cannot be read (ENOENT)',
    });
  });
});
