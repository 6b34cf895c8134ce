/**
 * Lists who reads each file of deploy/ in the tests, on any machine. Programs that read the same files where they are
 * installed (kustomize, promtool, systemd-analyze, redis-server and the proxies) have tests of their own.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, posix } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { dashboardText } from '../../../scripts/grafana/dashboard.ts';
import { SETTINGS } from '../../../src/settings.ts';
import { readCompose } from './compose.ts';
import { applyPatches, renderTree } from './kustomization.ts';
import { containerOf, type KubernetesObject, OBJECT, podSpecOf, validate } from './manifests.ts';
import { readCases, readRules } from './monitoring.ts';
import { configOf, makeSecrets } from './settings.ts';
import { ROOT, textOf, type Tree } from './tree.ts';

export type Reader = {
  /** Who reads the files, and how. */
  readonly by: string;
  /** Reads the files. Throws for a file that cannot be used. */
  readonly read: (tree: Tree) => unknown;
  /** The files that it reads. Each has a text that occurs in it, and a wrong text, with which the reader throws. */
  readonly notices: Readonly<Record<string, readonly [text: string, wrong: string]>>;
};

export const READERS: readonly Reader[] = [
  {
    by: 'the relay reads the settings and the policy of each overlay, and the schemas of Kubernetes its objects',
    read: async (tree) => {
      for (const overlay of ['direct', 'shared']) await readOverlay(tree, overlay);
    },
    notices: {
      'kubernetes/base/policy.json': ['user_capacity', 'userCapacity'],
      'kubernetes/base/deployment.yaml': ['CALLBOARD_SECRET_FILE', 'CALLBOARD_SECRETS_FILE'],
      'kubernetes/base/service.yaml': ['port: 80', 'port: eighty'],
      'kubernetes/base/disruption-budget.yaml': ['maxUnavailable: 1', 'maxUnavailable: [1]'],
      'kubernetes/base/network-policy.yaml': ['policyTypes: [Ingress, Egress]', 'policyTypes: Ingress'],
      'kubernetes/base/kustomization.yaml': ['policy.json', 'policies.json'],
      'kubernetes/overlays/direct/kustomization.yaml': ['CALLBOARD_DATA_DIR', 'CALLBOARD_DATA_DIRECTORY'],
      'kubernetes/overlays/direct/volume-claim.yaml': ['[ReadWriteOnce]', 'ReadWriteOnce'],
      'kubernetes/overlays/shared/kustomization.yaml': ['redis-url', 'redis-address'],
    },
  },
  {
    by: 'the schemas of Kubernetes read the objects of Redis, and a parser its configuration',
    read: readRedis,
    notices: {
      'kubernetes/redis/kustomization.yaml': ['redis.conf', 'redis.config'],
      'kubernetes/redis/stateful-set.yaml': ['replicas: 1', 'replicas: one'],
      'kubernetes/redis/service.yaml': ['port: 6379', 'port: redis'],
      'kubernetes/redis/network-policy.yaml': ['egress: []', 'egress: none'],
      'kubernetes/redis/redis.conf': ['maxmemory-policy noeviction', 'maxmemory-policy allkeys-lru'],
    },
  },
  {
    by: 'a shell runs it, and the relay reads what it writes',
    read: readSecrets,
    notices: { 'make-secrets.sh': ['head -c 32', 'head -c 3'] },
  },
  {
    by: 'the relay reads the settings of its services; a strict schema knows every other member',
    read: readCompose,
    notices: { 'compose.yaml': ['CALLBOARD_AUDIT_KEY_FILE', 'CALLBOARD_AUDIT_KEYS_FILE'] },
  },
  {
    by: 'its instructions are compared with package.json and with the settings of the relay',
    read: readDockerfile,
    notices: { Dockerfile: ['"dist/bin.js"', '"dist/main.js"'] },
  },
  {
    by: 'the relay reads the settings of the service, and the socket is where it listens by default',
    read: readUnits,
    notices: {
      'systemd/callboard.service': ['Environment=CALLBOARD_DATA_DIR', 'Environment=CALLBOARD_DATADIR'],
      'systemd/callboard.socket': ['127.0.0.1:4400', '127.0.0.1:4401'],
    },
  },
  {
    by: 'a parser reads their directives; the programs read them in test/deploy/proxies.test.ts',
    read: readProxies,
    notices: {
      'proxies/nginx.conf': ['keepalive_timeout', 'keepalive_timeouts'],
      'proxies/haproxy.cfg': ['option redispatch', 'options redispatch'],
      'proxies/Caddyfile': ['health_uri', 'health_url'],
      'compose/Caddyfile': ['health_interval 1s', 'health_interval 1m'],
    },
  },
  {
    by: 'strict schemas; promtool reads them in test/deploy/monitoring.test.ts',
    read: readMonitoring,
    notices: {
      'prometheus/alerts.yml': ['severity: page', 'severity: pages'],
      'prometheus/alerts.test.yml': ['exp_samples', 'expected_samples'],
      'compose/prometheus.yml': ['relay-b:4400', 'relay-c:4400'],
    },
  },
  {
    by: 'the dashboard is generated; strict schemas read what loads it',
    read: readGrafana,
    notices: {
      'grafana/callboard.json': ['"uid": "callboard"', '"uid": "callboards"'],
      'grafana/provisioning/dashboards/callboard.yml': ['/var/lib/grafana/dashboards', '/var/lib/grafana/boards'],
      'grafana/provisioning/datasources/prometheus.yml': ['http://prometheus:9090', 'http://prometheus:9091'],
    },
  },
  {
    by: 'its links lead to files, and its patches and secrets fit the overlays',
    read: readReadme,
    notices: { 'README.md': ['path: /spec/egress/1', 'path: /spec/egress/7'] },
  },
];

/** Reads the settings of the relay in these objects, with the files that its volumes mount. */
function readSettings(objects: readonly KubernetesObject[], secrets: ReadonlyMap<string, string>): void {
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  const pod = podSpecOf(deployment);
  const container = containerOf(pod);
  const files = new Map<string, string>();
  for (const { name, mountPath } of container.volumeMounts) {
    const volume = pod.volumes.find((one) => one.name === name);
    if (!volume) throw new Error(`no volume ${name}`);
    const config = objects.find((one) => one.kind === 'ConfigMap' && nameOf(one) === volume.configMap?.name);
    const data = z.record(z.string(), z.string()).optional().parse(config?.['data']);
    for (const [file, text] of Object.entries(data ?? {})) files.set(posix.join(mountPath, file), text);
    if (volume.secret) for (const [file, text] of secrets) files.set(posix.join(mountPath, file), text);
  }
  const environment = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  const { spillDir, dataDir, audit } = configOf(environment, files);
  for (const path of [spillDir, dataDir, audit.file]) {
    const mount = container.volumeMounts.find(({ mountPath }) => path?.startsWith(`${mountPath}/`));
    if (path !== null && (!mount || mount.readOnly)) throw new Error(`no writable volume has ${path}`);
  }
}

function nameOf(object: KubernetesObject): string {
  return z.object({ name: z.string() }).parse(object['metadata']).name;
}

/** Returns the members of a secret, with the files that the instructions of README.md give them. */
function secretOf(tree: Tree, name: string, made: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const line = new RegExp(`kubectl create secret generic ${name} (.*)$`, 'm').exec(textOf(tree, 'README.md'))?.[1];
  if (line === undefined) throw new Error(`README.md does not make the secret ${name}`);
  const keys = line.split(' ').map((word) => word.replace('--from-file=', '').split('='));
  return new Map(
    keys.map(([key = '', file = key]) => [key, made.get(file) ?? fail(`make-secrets.sh makes no ${file}`)]),
  );
}

function fail(message: string): never {
  throw new Error(message);
}

async function readOverlay(tree: Tree, overlay: string): Promise<readonly KubernetesObject[]> {
  const objects = renderTree(tree, `kubernetes/overlays/${overlay}`);
  for (const object of objects) await validate(object);
  readSettings(objects, secretOf(tree, 'callboard', makeSecrets(tree, 'callboard-redis')));
  return objects;
}

/** Returns the directives of a redis.conf. */
export function redisSettings(tree: Tree): ReadonlyMap<string, string> {
  const lines = textOf(tree, 'kubernetes/redis/redis.conf').split('\n');
  const own = lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(' '));
  return new Map(own.map(([name = '', ...values]) => [name, values.join(' ')]));
}

async function readRedis(tree: Tree): Promise<void> {
  const objects = renderTree(tree, 'kubernetes/redis');
  for (const object of objects) await validate(object);
  const pod = podSpecOf(objects.find(({ kind }) => kind === 'StatefulSet'));
  const { args = [], volumeMounts } = containerOf(pod);
  const secret = secretOf(tree, 'callboard-redis', makeSecrets(tree, 'callboard-redis'));
  const auth = volumeMounts.map(({ mountPath }) => [...secret.keys()].map((key) => posix.join(mountPath, key))).flat();
  if (!auth.includes(args.at(-1) ?? '') || args.at(-2) !== '--include') throw new Error('Redis has no password');
  const settings = redisSettings(tree);
  const wanted = { appendonly: 'yes', appendfsync: 'everysec', 'maxmemory-policy': 'noeviction' };
  for (const [name, value] of Object.entries({ ...wanted, 'protected-mode': 'yes', maxmemory: '1gb' }))
    if (settings.get(name) !== value) throw new Error(`redis.conf: ${name} is ${settings.get(name)}`);
}

function readSecrets(tree: Tree): void {
  const secrets = makeSecrets(tree, 'redis.example');
  const environment = { SECRET: 'secret', AUDIT_KEY: 'audit-key', ADMIN_TOKEN: 'admin-token' };
  const all = { ...environment, METRICS_TOKEN: 'metrics-token', REDIS_URL: 'redis-url' };
  const { redis } = configOf(
    Object.fromEntries(Object.entries(all).map(([name, file]) => [`CALLBOARD_${name}_FILE`, file])),
    secrets,
  );
  const password = secrets.get('redis-password')?.trim();
  if (redis?.url !== `redis://:${password}@redis.example:6379`) throw new Error('redis-url has another password');
  if (secrets.get('redis-auth.conf') !== `requirepass ${password}\n`) throw new Error('redis-auth.conf has another');
  if (new Set(secrets.values()).size !== secrets.size) throw new Error('two secrets are equal');
}

function readUnits(tree: Tree): void {
  const made = makeSecrets(tree);
  const service = unitOf(textOf(tree, 'systemd/callboard.service'));
  const loaded = service.flatMap(([key, value]) => (key === 'LoadCredential' ? [value.split(':')] : []));
  const credentials = new Map(
    loaded.map(([name = '', path = '']) => [
      `%d/${name}`,
      made.get(posix.basename(path)) ?? fail(`make-secrets.sh makes no ${path}`),
    ]),
  );
  const set = service.flatMap(([key, value]) => (key === 'Environment' ? [value.split('=')] : []));
  configOf(Object.fromEntries(set.map(([name = '', ...rest]) => [name, rest.join('=')])), credentials);
  const { HOST, PORT } = SETTINGS.parse({});
  const socket = unitOf(textOf(tree, 'systemd/callboard.socket'));
  const listens = socket.flatMap(([key, value]) => (key === 'ListenStream' ? [value] : []));
  if (listens.join(' ') !== `${HOST}:${PORT}`) throw new Error(`callboard.socket listens on ${listens.join(' ')}`);
}

/** Returns the assignments of a unit file. Throws for a line that is none, no section and no comment. */
function unitOf(text: string): readonly (readonly [key: string, value: string])[] {
  const lines = text
    .split('\n')
    .filter((line) => line !== '' && !/^(#.*|\[(Unit|Service|Socket|Install)\])$/.test(line));
  return lines.map((line) => {
    const [, key, value] = /^([A-Z][A-Za-z]*)=(.*)$/.exec(line) ?? [];
    if (key === undefined || value === undefined) throw new Error(`no assignment: ${line}`);
    return [key, value];
  });
}

/** The directives that the configurations of proxies use. */
const DIRECTIVES = {
  nginx: [
    ...['map', 'default', "''", 'upstream', 'server', 'keepalive', 'keepalive_timeout', 'listen', 'server_name'],
    ...['ssl_certificate', 'ssl_certificate_key', 'client_max_body_size', 'location', 'proxy_pass'],
    ...['proxy_http_version', 'proxy_set_header', 'proxy_read_timeout', 'proxy_send_timeout'],
    ...['proxy_connect_timeout', 'proxy_next_upstream'],
  ],
  haproxy: [
    ...['defaults', 'frontend', 'backend', 'mode', 'timeout', 'option', 'bind', 'http-request', 'default_backend'],
    ...['balance', 'retries', 'retry-on', 'default-server', 'server'],
  ],
  caddy: [
    ...['reverse_proxy', 'lb_policy', 'health_uri', 'health_interval', 'fail_duration', 'lb_try_duration'],
    ...['transport', 'dial_timeout', 'keepalive'],
  ],
};

function readProxies(tree: Tree): void {
  const own = new Set(['relay.example', 'localhost']);
  for (const [path, known] of [
    ['proxies/nginx.conf', DIRECTIVES.nginx],
    ['proxies/haproxy.cfg', DIRECTIVES.haproxy],
    ['proxies/Caddyfile', DIRECTIVES.caddy],
    ['compose/Caddyfile', DIRECTIVES.caddy],
  ] as const) {
    const lines = textOf(tree, path)
      .split('\n')
      .map((line) => line.trim());
    const words = lines.filter((line) => line !== '' && !/^[#}]/.test(line)).map((line) => line.split(/\s+/)[0] ?? '');
    const strange = words.filter((word) => !known.some((one) => one === word) && !own.has(word));
    if (strange.length > 0) throw new Error(`${path}: ${strange.join(', ')}`);
    const [opened, closed] = [/\{/g, /\}/g].map((brace) => textOf(tree, path).match(brace)?.length ?? 0);
    if (opened !== closed) throw new Error(`${path}: braces`);
  }
  const [ours, theirs] = ['proxies/Caddyfile', 'compose/Caddyfile'].map(
    (path) => /\n\t\tlb_policy[^]*$/.exec(textOf(tree, path))?.[0],
  );
  if (ours !== theirs) throw new Error('the configurations of Caddy are not alike');
}

const SCRAPING = z.strictObject({
  global: z.strictObject({ scrape_interval: z.string(), evaluation_interval: z.string() }),
  rule_files: z.tuple([z.string()]),
  scrape_configs: z.tuple([
    z.strictObject({
      job_name: z.literal('callboard'),
      authorization: z.strictObject({ credentials_file: z.string() }),
      static_configs: z.tuple([z.strictObject({ targets: z.array(z.string()) })]),
    }),
  ]),
});

function readMonitoring(tree: Tree): void {
  const rules = readRules(textOf(tree, 'prometheus/alerts.yml'));
  const cases = readCases(textOf(tree, 'prometheus/alerts.test.yml'));
  const untried = rules.filter(({ alert }) => !cases.some((one) => one.alert === alert && one.fires));
  if (untried.length > 0) throw new Error(`no case for ${untried.map(({ alert }) => alert).join(', ')}`);
  const { rule_files: files, scrape_configs: jobs } = SCRAPING.parse(parse(textOf(tree, 'compose/prometheus.yml')));
  const { services, secrets } = readCompose(tree);
  const [{ authorization, static_configs: targets }] = jobs;
  const relays = Object.keys(services).filter((name) => name.startsWith('relay-'));
  const { PORT } = SETTINGS.parse({});
  if (targets[0].targets.join() !== relays.map((name) => `${name}:${PORT}`).join()) throw new Error('other targets');
  if (!(posix.basename(authorization.credentials_file) in secrets)) throw new Error('no such credentials');
  const mounted = services['prometheus']?.volumes?.map((volume) => volume.split(':')[1]) ?? [];
  if (!mounted.includes(files[0])) throw new Error(`Prometheus has no ${files[0]}`);
}

const PROVIDERS = z.strictObject({
  apiVersion: z.literal(1),
  providers: z.tuple([
    z.strictObject({ name: z.string(), type: z.literal('file'), options: z.strictObject({ path: z.string() }) }),
  ]),
});
const SOURCES = z.strictObject({
  apiVersion: z.literal(1),
  datasources: z.tuple([
    z.strictObject({
      ...{ name: z.string(), uid: z.string(), type: z.literal('prometheus'), access: z.literal('proxy') },
      ...{ url: z.url(), isDefault: z.literal(true) },
    }),
  ]),
});

function readGrafana(tree: Tree): void {
  if (textOf(tree, 'grafana/callboard.json') !== dashboardText()) throw new Error('run npm run dashboard');
  const { providers } = PROVIDERS.parse(parse(textOf(tree, 'grafana/provisioning/dashboards/callboard.yml')));
  const { datasources } = SOURCES.parse(parse(textOf(tree, 'grafana/provisioning/datasources/prometheus.yml')));
  const { services } = readCompose(tree);
  const mounts = services['grafana']?.volumes?.map((volume) => volume.split(':')) ?? [];
  const board = mounts.find(([source]) => source === './grafana/callboard.json')?.[1] ?? '';
  if (posix.dirname(board) !== providers[0].options.path) throw new Error('the dashboard is in another folder');
  const { hostname, port } = new URL(datasources[0].url);
  if (!services[hostname]?.ports?.some((one) => one.endsWith(`:${port}`))) throw new Error('no such data source');
}

async function readReadme(tree: Tree): Promise<void> {
  const text = textOf(tree, 'README.md');
  const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target);
  const absent = links.filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(ROOT, 'deploy', target)));
  if (absent.length > 0) throw new Error(`README.md links to ${absent.join(', ')}`);
  const tops = new Set([...tree.keys()].map((path) => path.split('/')[0] ?? ''));
  const unnamed = [...tops].filter((top) => top !== 'README.md' && !links.includes(top));
  if (unnamed.length > 0) throw new Error(`README.md does not name ${unnamed.join(', ')}`);
  const examples = [...text.matchAll(/```yaml\n([^]*?)```/g)].map(([, example = '']) => example);
  if (examples.length === 0) throw new Error('README.md has no patches');
  const secrets = secretOf(tree, 'callboard', makeSecrets(tree, 'callboard-redis'));
  for (const example of examples) {
    const objects = applyPatches(renderTree(tree, 'kubernetes/overlays/shared'), example);
    for (const object of objects) await validate(OBJECT.parse(object));
    readSettings(objects, secrets);
  }
}

// Reads deploy/Dockerfile and compares its instructions with package.json, the build and the settings of the relay.

const MANIFEST = z.object({
  bin: z.object({ callboard: z.string() }),
  devDependencies: z.object({ node: z.string() }),
});
const WORDS = z.array(z.string());
const INSTRUCTIONS = new Set([
  ...['ARG', 'FROM', 'RUN', 'WORKDIR', 'COPY', 'LABEL', 'ENV', 'USER', 'EXPOSE', 'STOPSIGNAL'],
  ...['HEALTHCHECK', 'ENTRYPOINT', 'CMD'],
]);
/** What the first stage makes; the second copies it. */
const MADE = ['node_modules', 'dist', 'sbom.cdx.json', '/usr/bin/tini'];

type Instruction = { readonly name: string; readonly rest: string };

function instructionsOf(text: string): readonly Instruction[] {
  const lines = text.replaceAll(/\\\n\s*/g, '').split('\n');
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
      if (!INSTRUCTIONS.has(name)) throw new Error(`Dockerfile: ${line}`);
      return { name, rest };
    });
}

/** Throws for an instruction that does not fit the project. */
function readDockerfile(tree: Tree): void {
  const { bin, devDependencies } = MANIFEST.parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
  const instructions = instructionsOf(textOf(tree, 'Dockerfile'));
  const all = (name: string): readonly string[] => instructions.flatMap((one) => (one.name === name ? [one.rest] : []));
  const expect = (name: string, holds: boolean): void => {
    if (!holds) throw new Error(`Dockerfile: ${name} does not fit`);
  };
  expect('ARG BASE', all('ARG')[0] === `BASE=node:${devDependencies.node}-trixie-slim`);
  expect(
    'FROM',
    all('FROM').every((from) => from.startsWith('${BASE}')),
  );
  for (const copied of all('COPY')) {
    const made = copied.startsWith('--from=build ');
    const sources = copied.replace('--from=build ', '').split(' ').slice(0, -1);
    const paths = sources.map((source) => source.replace('/build/', ''));
    for (const path of paths) expect(`COPY ${path}`, (made && MADE.includes(path)) || existsSync(join(ROOT, path)));
  }
  const copies = all('COPY').join(' ');
  for (const path of ['LICENSE', 'sbom.cdx.json']) expect(`COPY ${path}`, copies.includes(`/build/${path} `));
  const environment = Object.fromEntries(all('ENV').flatMap((line) => line.split(' ').map((one) => one.split('='))));
  const secrets = new Map([['/secret', 's'.repeat(32)]]);
  const { host, port } = configOf({ ...environment, CALLBOARD_SECRET_FILE: '/secret' }, secrets);
  expect('ENV', isIP(host) === 4 && port === SETTINGS.parse({}).PORT && environment['NODE_ENV'] === 'production');
  expect('EXPOSE', all('EXPOSE').join() === String(port));
  expect('USER', /^[1-9]\d*:[1-9]\d*$/.test(all('USER').join()));
  expect('STOPSIGNAL', all('STOPSIGNAL').join() === 'SIGTERM');
  const start = WORDS.parse(JSON.parse(all('ENTRYPOINT').join()));
  expect('ENTRYPOINT', start.join(' ') === `/usr/bin/tini -- node ${bin.callboard}`);
  expect('CMD', all('CMD').join() === '["serve"]');
  const health = WORDS.parse(JSON.parse(/CMD (.*)$/.exec(all('HEALTHCHECK').join())?.[1] ?? ''));
  expect('HEALTHCHECK', health.join(' ') === `node ${bin.callboard} healthcheck`);
}
