/** Renders deploy/kubernetes and checks the rendered objects against the schemas of Kubernetes. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { find } from './programs.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const KUBERNETES = join(ROOT, 'deploy', 'kubernetes');

/** The module of the package `kubernetes-models` with the type and the schema of each kind of object in deploy/. */
const MODULES: Readonly<Record<string, string>> = {
  'v1/ConfigMap': 'v1/ConfigMap',
  'v1/PersistentVolumeClaim': 'v1/PersistentVolumeClaim',
  'v1/Service': 'v1/Service',
  'apps/v1/StatefulSet': 'apps/v1/StatefulSet',
  'apps/v1/Deployment': 'apps/v1/Deployment',
  'policy/v1/PodDisruptionBudget': 'policy/v1/PodDisruptionBudget',
  'networking.k8s.io/v1/NetworkPolicy': 'networking.k8s.io/v1/NetworkPolicy',
};

export const OBJECT = z.looseObject({ apiVersion: z.string(), kind: z.string() });
export type KubernetesObject = z.infer<typeof OBJECT>;

/**
 * Returns the command that runs kustomize: `kustomize` itself, or kubectl of version 1.21 or newer. Null if there is
 * none.
 */
export function renderer(): readonly string[] | null {
  const kustomize = find('kustomize');
  if (kustomize !== null) return [kustomize, 'build'];
  const kubectl = find('kubectl');
  const text = kubectl === null ? '' : spawnSync(kubectl, ['version', '--client'], { encoding: 'utf8' }).stdout;
  // Older versions of kubectl had kustomize 2, which knows neither folders as resources nor `patches`.
  return kubectl !== null && /Kustomize Version: v[4-9]/.test(text) ? [kubectl, 'kustomize'] : null;
}

/** Returns the objects of a folder of deploy/kubernetes, as kustomize renders them. Throws the errors of kustomize. */
export function render(folder: string): readonly KubernetesObject[] {
  const [program = '', ...args] = renderer() ?? [];
  const { status, stdout, stderr } = spawnSync(program, [...args, join(KUBERNETES, folder)], { encoding: 'utf8' });
  if (status !== 0 || stderr !== '') throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return parseAllDocuments(stdout).map((document) => OBJECT.parse(document.toJS()));
}

/**
 * Throws for a value that the schema of its kind refuses. The schema accepts unknown members; `typeFaults` finds them.
 */
export async function validate(object: KubernetesObject): Promise<void> {
  const { path, kind } = moduleOf(object);
  const loaded: Record<string, new (data: object) => { validate(): void }> = await import(`kubernetes-models/${path}`);
  const Model = loaded[kind];
  if (!Model) throw new Error(`kubernetes-models has no ${kind}`);
  const { apiVersion: _, kind: __, ...data } = object;
  new Model(data).validate();
}

/**
 * Writes these objects as literals of their types, and returns the errors of the TypeScript compiler. An unknown member
 * is such an error.
 */
export function typeFaults(objects: readonly KubernetesObject[]): readonly string[] {
  // The file is inside the project, so that the compiler finds the package.
  const cache = join(ROOT, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'manifests-'));
  try {
    const lines = objects.map((object, at) => {
      const { path, kind } = moduleOf(object);
      return `import type { I${kind} as T${at} } from 'kubernetes-models/${path}';\nexport const o${at}: T${at} = ${JSON.stringify(object)};\n`;
    });
    writeFileSync(join(folder, 'manifests.ts'), lines.join(''));
    const options = { strict: true, noEmit: true, skipLibCheck: true, module: 'nodenext', types: [] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['manifests.ts'] }));
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    const { stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { encoding: 'utf8' });
    return stdout.split('\n').filter((line) => line.includes('error TS'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function moduleOf({ apiVersion, kind }: KubernetesObject): { readonly path: string; readonly kind: string } {
  const path = MODULES[`${apiVersion}/${kind}`];
  if (path === undefined) throw new Error(`add ${apiVersion}/${kind} to test/deploy/kit/manifests.ts`);
  return { path, kind };
}

// Reads the parts of Kubernetes objects that the tests of deploy/ compare.

const LABELS = z.record(z.string(), z.string());
const RESOURCES = z.record(z.string(), z.string());
const MOUNT = z.looseObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() });
const CONTAINER = z.looseObject({
  image: z.string(),
  args: z.array(z.string()).optional(),
  env: z.array(z.strictObject({ name: z.string(), value: z.string() })).default([]),
  volumeMounts: z.array(MOUNT),
  resources: z.strictObject({ requests: RESOURCES, limits: RESOURCES }),
  lifecycle: z.object({ preStop: z.object({ exec: z.object({ command: z.array(z.string()) }) }) }).optional(),
});
const VOLUME = z.looseObject({
  name: z.string(),
  configMap: z.object({ name: z.string() }).optional(),
  secret: z.object({ secretName: z.string() }).optional(),
  emptyDir: z.object({ sizeLimit: z.string().optional() }).optional(),
});
const POD = z.looseObject({
  terminationGracePeriodSeconds: z.number(),
  containers: z.array(CONTAINER),
  volumes: z.array(VOLUME),
});
export type PodSpec = z.infer<typeof POD>;
const WORKLOAD = z.object({
  spec: z.looseObject({
    replicas: z.number().optional(),
    template: z.object({ metadata: z.object({ labels: LABELS }), spec: POD }),
  }),
});
const PEER = z.strictObject({
  namespaceSelector: z.strictObject({ matchLabels: LABELS }).optional(),
  podSelector: z.strictObject({ matchLabels: LABELS }).optional(),
  ipBlock: z.strictObject({ cidr: z.string() }).optional(),
});
const PORTS = z.array(
  z.strictObject({ port: z.union([z.string(), z.number()]), protocol: z.enum(['UDP', 'TCP']).optional() }),
);
const NETWORK = z.object({
  spec: z.strictObject({
    podSelector: z.strictObject({ matchLabels: LABELS }),
    policyTypes: z.array(z.enum(['Ingress', 'Egress'])),
    ingress: z.array(z.strictObject({ ports: PORTS, from: z.array(PEER) })),
    egress: z.array(z.strictObject({ ports: PORTS, to: z.array(PEER) })),
  }),
});
export type NetworkPolicy = z.infer<typeof NETWORK>['spec'];

/** Returns the specification of a Deployment or a StatefulSet. Throws if it lacks a member that every pod needs. */
export function workloadOf(object: unknown): z.infer<typeof WORKLOAD>['spec'] {
  return WORKLOAD.parse(object).spec;
}

export function podSpecOf(object: unknown): PodSpec {
  return workloadOf(object).template.spec;
}

/** Returns the only container of a pod. */
export function containerOf({ containers }: PodSpec): PodSpec['containers'][number] {
  const [container, ...others] = containers;
  if (!container || others.length > 0) throw new Error('expected one container');
  return container;
}

export function networkOf(object: unknown): NetworkPolicy {
  return NETWORK.parse(object).spec;
}
