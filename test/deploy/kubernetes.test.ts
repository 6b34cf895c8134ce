/** Tests the objects of deploy/kubernetes: schemas, times, what the pods may do, and who reaches them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AUDIT_ROWS, DRAIN_MS } from '../../src/core/limits.ts';
import { SHARE_BOUNDS } from '../../src/core/shares/share-bounds.ts';
import { applyPatches, renderTree } from './kit/kustomization.ts';
import {
  containerOf,
  type KubernetesObject,
  networkOf,
  type NetworkPolicy,
  type PodSpec,
  podSpecOf,
  render,
  renderer,
  typeFaults,
  validate,
  workloadOf,
} from './kit/manifests.ts';
import { redisSettings } from './kit/readers.ts';
import { readTree, ROOT, textOf } from './kit/tree.ts';

const MIB = 1024 * 1024;
const FOLDERS = ['overlays/direct', 'overlays/shared', 'redis'] as const;
const tree = readTree();
const rendered = new Map(FOLDERS.map((folder) => [folder, renderTree(tree, `kubernetes/${folder}`)]));
const objectsOf = (folder: (typeof FOLDERS)[number]): readonly KubernetesObject[] => rendered.get(folder) ?? [];
const of = (objects: readonly KubernetesObject[], kind: string): KubernetesObject | undefined =>
  objects.find((object) => object.kind === kind);
const podIn = (objects: readonly KubernetesObject[]): PodSpec =>
  podSpecOf(of(objects, 'Deployment') ?? of(objects, 'StatefulSet'));

const CLAIM = z.object({
  spec: z.object({ resources: z.object({ requests: z.object({ storage: z.string() }) }) }),
});
const nameOf = (object: KubernetesObject | undefined): unknown => Object(object?.['metadata'])['name'];

/** Returns a size of Kubernetes, such as `1536Mi`, in bytes. */
function bytesOf(size: string | undefined): number {
  const [, number, unit] = /^(\d+)(Mi|Gi)$/.exec(size ?? '') ?? [];
  return Number(number) * (unit === 'Gi' ? 1024 : 1) * MIB;
}

/** Returns what a pod may do beyond the Pod Security Standard `restricted`, a read-only root and bounded resources. */
function freedoms(pod: PodSpec): readonly string[] {
  const container = containerOf(pod);
  const wanted = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };
  const found: string[] = [];
  const check = (name: string, holds: boolean): void => void (holds || found.push(name));
  const context = z.looseObject({ runAsUser: z.number() }).parse(pod['securityContext']);
  check('runs as root', context.runAsUser > 0 && context['runAsNonRoot'] === true);
  check('seccomp', JSON.stringify(context['seccompProfile']) === '{"type":"RuntimeDefault"}');
  check('rights', JSON.stringify(container['securityContext']) === JSON.stringify(wanted));
  check('token of Kubernetes', pod['automountServiceAccountToken'] === false);
  const { requests, limits } = container.resources;
  check(
    'requests',
    ['cpu', 'memory'].every((name) => name in requests),
  );
  check(
    'limits',
    ['memory', 'ephemeral-storage'].every((name) => name in limits),
  );
  for (const { name, emptyDir } of pod.volumes)
    check(`emptyDir ${name}`, emptyDir === undefined || bytesOf(emptyDir.sizeLimit) > 0);
  for (const { name, mountPath, readOnly } of container.volumeMounts) {
    const volume = pod.volumes.find((one) => one.name === name);
    check(`${mountPath} is writable`, readOnly === true || !(volume?.secret ?? volume?.configMap));
  }
  const exact = /^[a-z./-]+:v?\d+\.\d+\.\d+(@sha256:[0-9a-f]{64})?$/;
  check(`image ${container.image}`, exact.test(container.image));
  return found;
}

/** Returns what a network policy leaves open: a direction, or a peer that is not named by pods and their namespace. */
function openings({ policyTypes, ingress, egress }: NetworkPolicy): readonly string[] {
  const closed = ['Ingress', 'Egress'].filter((one) => !policyTypes.some((type) => type === one));
  const rules = [
    ...ingress.map(({ ports, from }) => ({ ports, peers: from })),
    ...egress.map(({ ports, to }) => ({ ports, peers: to })),
  ];
  const wide = rules.filter(
    ({ ports, peers }) =>
      ports.length === 0 ||
      peers.length === 0 ||
      peers.some(({ podSelector, ipBlock }) => Object.keys(podSelector?.matchLabels ?? ipBlock ?? {}).length === 0),
  );
  return [...closed, ...wide.map((rule) => JSON.stringify(rule))];
}

describe.each(FOLDERS)('deploy/kubernetes/%s', (folder) => {
  const objects = objectsOf(folder);

  it('has objects that the schemas and the types of Kubernetes accept', async () => {
    for (const object of objects) await validate(object);
    expect(typeFaults(objects)).toEqual([]);
  });

  it('runs a pod that may do only what it needs, and whose files, memory and image are bounded', () => {
    const pod = podIn(objects);
    expect(freedoms(pod)).toEqual([]);
    const [container] = pod.containers;
    const free = {
      ...pod,
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [{ ...container, image: 'redis:7' }],
    };
    expect(freedoms(podSpecOf({ spec: { template: { metadata: { labels: {} }, spec: free } } }))).toEqual([
      ...['emptyDir data', 'image redis:7'],
    ]);
  });

  it('closes the network of its pods in both directions, except for the peers that it names', () => {
    const policy = networkOf(of(objects, 'NetworkPolicy'));
    expect(openings(policy)).toEqual([]);
    expect(openings({ ...policy, policyTypes: ['Ingress'] })).toEqual(['Egress']);
    expect(openings({ ...policy, ingress: [{ ports: [{ port: 'http' }], from: [] }] })).toHaveLength(1);
    const everyPod = { ports: [{ port: 'http' }], from: [{ podSelector: { matchLabels: {} } }] };
    expect(openings({ ...policy, ingress: [everyPod] })).toHaveLength(1);
  });

  it('selects its pods by their label', () => {
    const { template } = workloadOf(of(objects, 'Deployment') ?? of(objects, 'StatefulSet'));
    const { labels } = template.metadata;
    expect(labels).toEqual({ 'app.kubernetes.io/name': folder === 'redis' ? 'callboard-redis' : 'callboard' });
    expect(of(objects, 'Service')).toMatchObject({ spec: { selector: labels } });
    expect(networkOf(of(objects, 'NetworkPolicy')).podSelector).toEqual({ matchLabels: labels });
    if (folder !== 'redis')
      expect(of(objects, 'PodDisruptionBudget')).toMatchObject({ spec: { selector: { matchLabels: labels } } });
  });
});

describe('deploy/kubernetes', () => {
  it('is refused with a wrong value or an unknown member', async () => {
    const service = of(objectsOf('overlays/direct'), 'Service');
    const broken = { ...service, apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 'http' }] } };
    await expect(validate(broken)).rejects.toThrow('port must be integer');
    const misspelt = { ...service, apiVersion: 'v1', kind: 'Service', spec: { port: [] } };
    expect(typeFaults([misspelt])).toEqual([expect.stringContaining(`'"port"' does not exist`)]);
  });

  it('gives a pod the time to leave its service and to drain', () => {
    const pod = podIn(objectsOf('overlays/shared'));
    const [program, seconds] = containerOf(pod).lifecycle?.preStop.exec.command ?? [];
    expect(program).toBe('sleep');
    // After the drain, closing the links takes up to 5 s more.
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(Number(seconds) + DRAIN_MS / 1000 + 5);
  });

  it('direct has one relay that ends before the next one starts; shared has two, which are replaced one by one', () => {
    const [direct, shared] = (['overlays/direct', 'overlays/shared'] as const).map((folder) =>
      workloadOf(of(objectsOf(folder), 'Deployment')),
    );
    expect(direct).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(shared).toMatchObject({ replicas: 2, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } });
    const names = [direct, shared].map((one) => one?.template.spec.containers[0]?.env.map(({ name }) => name));
    expect(names[0]).toContain('CALLBOARD_DATA_DIR');
    // Nodes over Redis keep everything in Redis. They refuse a folder that is not common to all nodes.
    expect(names[1]).not.toEqual(expect.arrayContaining([expect.stringMatching(/CALLBOARD_(SPILL|DATA)_DIR/)]));
  });

  it('direct has room for the payloads, the audit and the snapshots that the relay keeps by default', () => {
    const { volumes } = podIn(objectsOf('overlays/direct'));
    const claim = of(objectsOf('overlays/direct'), 'PersistentVolumeClaim');
    expect(volumes.map((volume) => volume['persistentVolumeClaim'])).toContainEqual({ claimName: nameOf(claim) });
    // A row of the audit takes about 400 bytes, and the largest snapshot about 0.6 GB.
    const kept = (SHARE_BOUNDS.spilled_bytes.total ?? Infinity) + AUDIT_ROWS * 400 + 3 * 600 * MIB + 72 * MIB;
    expect(bytesOf(CLAIM.parse(claim).spec.resources.requests.storage)).toBeGreaterThan(kept * 1.2);
  });

  it('believes forwarded headers only of the ingress controller and Prometheus', () => {
    for (const folder of ['overlays/direct', 'overlays/shared'] as const) {
      const { ingress } = networkOf(of(objectsOf(folder), 'NetworkPolicy'));
      const peers = ingress.flatMap(({ from }) => from);
      const names = peers.map((peer) => [
        peer.namespaceSelector?.matchLabels['kubernetes.io/metadata.name'],
        peer.podSelector?.matchLabels['app.kubernetes.io/name'],
      ]);
      expect(names).toEqual([
        ['ingress-nginx', 'ingress-nginx'],
        ['monitoring', 'prometheus'],
      ]);
    }
  });

  it('lets relays reach names and their Redis, which only they reach, and which holds half of its pod’s memory', () => {
    const relays = networkOf(of(objectsOf('overlays/shared'), 'NetworkPolicy'));
    const ports = relays.egress.map((rule) => rule.ports.map(({ port }) => port));
    expect(ports).toEqual([[53, 53], [6379]]);
    expect(networkOf(of(objectsOf('overlays/direct'), 'NetworkPolicy')).egress).toHaveLength(1);
    const redis = networkOf(of(objectsOf('redis'), 'NetworkPolicy'));
    expect(relays.egress[1]?.to).toEqual([{ podSelector: redis.podSelector }]);
    expect([redis.ingress[0]?.from, redis.egress]).toEqual([[{ podSelector: relays.podSelector }], []]);
    const { limits } = containerOf(podIn(objectsOf('redis'))).resources;
    expect(redisSettings(tree).get('maxmemory')).toBe(`${bytesOf(limits['memory']) / 2 / 1024 / MIB}gb`);
  });

  it('names the version of the project as the relay’s image', () => {
    const { version } = z
      .object({ version: z.string() })
      .parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
    expect(containerOf(podIn(objectsOf('overlays/direct'))).image).toBe(`registry.example/callboard:${version}`);
  });

  it('has no password', () => {
    for (const path of tree.keys())
      expect(textOf(tree, path)).not.toMatch(/redis:\/\/[^\s]*:[^\s%$]+@|requirepass [a-z0-9]/i);
  });

  it('refuses a patch of what is not there', () => {
    const patch = (text: string) => () => applyPatches(objectsOf('overlays/direct'), `patches:\n${text}`);
    const target = '- target: { kind: Service, name: callboard }\n  patch: ';
    expect(patch(`${target}'[{ op: replace, path: /spec/absent, value: 1 }]'`)).toThrow('finds no /spec/absent');
    expect(patch(`- target: { kind: Service, name: other }\n  patch: '[]'`)).toThrow('0 objects Service other');
    expect(patch(`${target}'[{ op: move, path: /spec }]'`)).toThrow();
  });
});

// Without kustomize, the tests above read what a renderer of their own makes of the same files.
describe.runIf(renderer() !== null)('rendered by kustomize', () => {
  /** Removes the hash that kustomize appends to the names of generated objects. */
  const withoutHashes = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value).replaceAll(/"(callboard-(?:policy|redis))-[0-9a-z]{10}"/g, '"$1"'));
  it.each(FOLDERS)('%s is the same', (folder) => {
    const kind = ({ kind: name }: KubernetesObject): string => name;
    const theirs = render(folder).toSorted((a, b) => kind(a).localeCompare(kind(b)));
    const ours = objectsOf(folder).toSorted((a, b) => kind(a).localeCompare(kind(b)));
    expect(withoutHashes(theirs)).toEqual(ours);
  });
});
