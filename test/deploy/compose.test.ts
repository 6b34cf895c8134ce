/** Tests deploy/compose.yaml: its files, secrets and volumes, what its services may do, and who reaches them. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownFolder } from '../kit/folder.ts';
import { readCompose, type Compose } from './kit/compose.ts';
import { redisSettings } from './kit/readers.ts';
import { changed, readTree, ROOT, textOf } from './kit/tree.ts';

const tree = readTree();
const compose = readCompose(tree);
const { services, secrets, volumes, networks } = compose;
const all = Object.entries(services);

/** Returns the services that share a network with this one. */
function peersOf({ services: given }: Compose, name: string): readonly string[] {
  const own = given[name]?.networks ?? [];
  const others = Object.entries(given).filter(([, one]) => one.networks.some((network) => own.includes(network)));
  return others.flatMap(([other]) => (other === name ? [] : [other])).sort();
}

/** Returns what a service may do or use without a bound, and its image if that is not named by exact version. */
function freedoms({ services: given }: Compose): readonly string[] {
  const exact = /:v?\d+\.\d+\.\d+(@sha256:[0-9a-f]{64})?$/;
  return Object.entries(given).flatMap(([name, one]) => [
    ...(one.read_only ? [] : [`${name}: writes its root`]),
    ...(one.cap_drop?.join() === 'ALL' ? [] : [`${name}: has capabilities`]),
    ...((one.cap_add ?? []).join() === (name === 'proxy' ? 'NET_BIND_SERVICE' : '')
      ? []
      : [`${name}: gets capabilities`]),
    ...(one.security_opt?.includes('no-new-privileges:true') ? [] : [`${name}: gains privileges`]),
    ...(one.mem_limit !== undefined && one.pids_limit !== undefined ? [] : [`${name}: has no bounds`]),
    ...(one.build || exact.test(one.image) ? [] : [`${name}: ${one.image}`]),
  ]);
}

const altered = (from: string, to: string): Compose => readCompose(changed(tree, 'compose.yaml', from, to));

describe('deploy/compose.yaml', () => {
  it('mounts files that exist, volumes and secrets that are declared, and starts what it depends on', () => {
    for (const [name, { volumes: mounted = [], secrets: used = [], depends_on: needed = [] }] of all) {
      const sources = mounted.map((mount) => mount.split(':')[0] ?? '');
      for (const source of sources)
        expect([
          name,
          source,
          source.startsWith('.') ? existsSync(join(ROOT, 'deploy', source)) : source in volumes,
        ]).toEqual([name, source, true]);
      expect(used.filter((secret) => !(secret in secrets))).toEqual([]);
      for (const other of Array.isArray(needed) ? needed : Object.keys(needed)) expect(services).toHaveProperty(other);
    }
  });

  it('uses each secret and each network that it declares', () => {
    const used = new Set(all.flatMap(([, one]) => one.secrets ?? []));
    expect(Object.keys(secrets).filter((name) => !used.has(name))).toEqual([]);
    expect([...new Set(all.flatMap(([, one]) => one.networks))].sort()).toEqual(Object.keys(networks).sort());
  });

  it('starts Prometheus and Grafana only with the profile `observe`', () => {
    const observed = all.filter(([, { profiles }]) => profiles?.includes('observe')).map(([name]) => name);
    expect(observed).toEqual(['prometheus', 'grafana']);
    const scraped = textOf(tree, 'compose/prometheus.yml');
    for (const relay of all.map(([name]) => name).filter((name) => name.startsWith('relay-')))
      expect(scraped).toContain(`${relay}:4400`);
  });

  it('runs services that may do only what they need, with bounds, and with images of exact versions', () => {
    expect(freedoms(compose)).toEqual([]);
    expect(freedoms(altered('redis:7.4.6', 'redis:7'))).toEqual(['redis: redis:7']);
    expect(freedoms(altered('  cap_drop: [ALL]\n', ''))).toHaveLength(all.length);
    expect(freedoms(altered('  read_only: true\n', ''))).toHaveLength(all.length);
  });

  it('publishes the ports of Caddy only, and others on loopback', () => {
    const published = all.filter(([, { ports = [] }]) => ports.some((port) => !port.startsWith('127.0.0.1:')));
    expect(published.map(([name]) => name)).toEqual(['proxy']);
  });

  it('lets relays believe forwarded headers, which only Caddy and Prometheus can send them', () => {
    for (const [name, { environment, networks: own, ports }] of all) {
      if (environment?.['CALLBOARD_TRUST_PROXY'] !== 'true') continue;
      expect(ports).toBeUndefined();
      expect(own.filter((network) => !networks[network]?.internal)).toEqual([]);
      const others = peersOf(compose, name).filter((peer) => !peer.startsWith('relay-'));
      expect(others).toEqual(['prometheus', 'proxy', 'redis']);
    }
    expect(peersOf(altered('networks: [outside]', 'networks: [outside, relays]'), 'relay-a')).toContain('grafana');
  });

  it('lets only relays reach Redis, which wants a password and holds half of its memory', () => {
    expect(peersOf(compose, 'redis')).toEqual(['relay-a', 'relay-b']);
    expect(services['redis']).toMatchObject({
      user: '999:999',
      command: ['redis-server', '/etc/redis/redis.conf', '--include', '/run/secrets/redis_auth'],
      volumes: expect.arrayContaining(['./kubernetes/redis/redis.conf:/etc/redis/redis.conf:ro']),
    });
    const gigabytes = Number(/^(\d+)gb$/.exec(redisSettings(tree).get('maxmemory') ?? '')?.[1]);
    expect(services['redis']?.mem_limit).toBe(`${2 * gigabytes}g`);
  });

  it('gets its credentials from a program that keeps those that exist, in a folder that only its owner may open', () => {
    const folder = ownFolder();
    const script = join(folder, 'make-secrets.sh');
    writeFileSync(script, textOf(tree, 'make-secrets.sh'), { mode: 0o755 });
    const made = () => {
      execFileSync(script);
      const names = readdirSync(join(folder, 'secrets'));
      return names.map((name) => [name, readFileSync(join(folder, 'secrets', name), 'utf8')]);
    };
    const first = made();
    expect(made()).toEqual(first);
    expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700);
    expect(
      Object.values(secrets)
        .map(({ file }) => posix.basename(file))
        .sort(),
    ).toEqual(first.map(([name]) => name));
  });

  it('keeps its credentials out of the repository', () => {
    const files = Object.values(secrets).map(({ file }) => file);
    expect(files.filter((file) => !file.startsWith('./secrets/'))).toEqual([]);
    expect(readFileSync(join(ROOT, '.gitignore'), 'utf8').split('\n')).toContain('deploy/secrets/');
    expect(readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')).toContain('**/secrets');
  });
});
