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
