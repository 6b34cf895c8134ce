/**
 * Renders a kustomization on any machine, as far as those of deploy/ need it. Refuses what it does not know.
 * test/deploy/kubernetes.test.ts compares it with kustomize.
 */
import { posix } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import type { KubernetesObject } from './manifests.ts';
import { textOf, type Tree } from './tree.ts';

const PATCH = z.strictObject({
  target: z.strictObject({ kind: z.string(), name: z.string() }),
  patch: z.string(),
});
const KUSTOMIZATION = z.strictObject({
  apiVersion: z.literal('kustomize.config.k8s.io/v1beta1').optional(),
  kind: z.literal('Kustomization').optional(),
  resources: z.array(z.string()).optional(),
  configMapGenerator: z.array(z.strictObject({ name: z.string(), files: z.array(z.string()) })).optional(),
  images: z.array(z.strictObject({ name: z.string(), newName: z.string(), newTag: z.string() })).optional(),
  patches: z.array(PATCH).optional(),
});
const OPERATION = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('add'), path: z.string(), value: z.unknown() }),
  z.strictObject({ op: z.literal('replace'), path: z.string(), value: z.unknown() }),
]);
const OBJECT = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
});

/** Returns the objects of a folder of deploy/ that has a kustomization. Generated names have no hash. */
export function renderTree(tree: Tree, folder: string): readonly KubernetesObject[] {
  const path = posix.join(folder, 'kustomization.yaml');
  const { resources = [], configMapGenerator = [], ...rest } = readKustomization(textOf(tree, path));
  const objects = resources.flatMap((name) => {
    const at = posix.join(folder, name);
    return name.endsWith('.yaml') ? readObjects(textOf(tree, at)) : renderTree(tree, at);
  });
  const generated = configMapGenerator.map(({ name, files }) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
    data: Object.fromEntries(files.map((file) => [file, textOf(tree, posix.join(folder, file))])),
  }));
  return applyTo([...objects, ...generated], rest);
}

/** Applies a kustomization that has only patches and images, such as an example of deploy/README.md. */
export function applyPatches(objects: readonly KubernetesObject[], text: string): readonly KubernetesObject[] {
  const { resources, configMapGenerator, ...rest } = readKustomization(text);
  if (resources ?? configMapGenerator) throw new Error('only patches and images are expected here');
  return applyTo(objects, rest);
}

function readKustomization(text: string): z.infer<typeof KUSTOMIZATION> {
  return KUSTOMIZATION.parse(parse(text, { strict: true }));
}

function readObjects(text: string): readonly KubernetesObject[] {
  return parseAllDocuments(text, { strict: true }).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return OBJECT.parse(document.toJS());
  });
}

type Changes = Pick<z.infer<typeof KUSTOMIZATION>, 'images' | 'patches'>;

function applyTo(objects: readonly KubernetesObject[], { images = [], patches = [] }: Changes) {
  const named = objects.map((object) => OBJECT.parse(withImages(object, images)));
  for (const { target, patch } of patches) {
    const found = named.filter(({ kind, metadata }) => kind === target.kind && metadata.name === target.name);
    if (found.length !== 1) throw new Error(`a patch is for ${found.length} objects ${target.kind} ${target.name}`);
    for (const operation of z.array(OPERATION).parse(parse(patch, { strict: true })))
      for (const object of found) apply(object, operation);
  }
  return named;
}

/** Replaces the images of containers, wherever `image` is a member. */
function withImages(value: unknown, images: NonNullable<Changes['images']>): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => withImages(item, images));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]): [string, unknown] => {
    const image = name === 'image' ? images.find((one) => one.name === member) : undefined;
    return [name, image ? `${image.newName}:${image.newTag}` : withImages(member, images)];
  });
  return Object.fromEntries(members);
}

/** Applies one operation of a JSON patch (RFC 6902). A replaced member must exist. */
function apply(object: Record<string, unknown>, { op, path, value }: z.infer<typeof OPERATION>): void {
  const steps = path.split('/').slice(1);
  const last = steps.pop() ?? '';
  let at: unknown = object;
  for (const step of steps) at = memberOf(at, step, path);
  if (op === 'replace') memberOf(at, last, path);
  if (!Array.isArray(at)) Object.assign(Object(at), { [last]: value });
  else if (op === 'replace') at[Number(last)] = value;
  else at.splice(last === '-' ? at.length : Number(last), 0, value);
}

function memberOf(value: unknown, step: string, path: string): unknown {
  const members = new Map<string, unknown>(Object.entries(Object(value)));
  if (!members.has(step)) throw new Error(`a patch finds no ${path}`);
  return members.get(step);
}
