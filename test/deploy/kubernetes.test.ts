/** Tests the objects of deploy/kubernetes: their settings, times and schemas, also as kustomize renders them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { DRAIN_MS } from '../../src/core/limits.ts';
import { settingOfFile } from '../../src/settings-files.ts';
import { SETTING_NAMES } from '../../src/settings.ts';
import { render, renderer, typeFaults, validate, type KubernetesObject } from './kit/manifests.ts';

// The compiler reads all types of Kubernetes, which takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const DEPLOYMENT = z.object({
  spec: z.object({
    replicas: z.number().optional(),
    strategy: z.unknown(),
    template: z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()) }).optional(),
      spec: z.object({
        terminationGracePeriodSeconds: z.number(),
        containers: z.tuple([
          z.object({
            env: z.array(z.object({ name: z.string(), value: z.string() })),
            lifecycle: z.object({ preStop: z.object({ exec: z.object({ command: z.array(z.string()) }) }) }),
          }),
        ]),
      }),
    }),
  }),
});

function readDeployment(text: unknown): z.infer<typeof DEPLOYMENT>['spec'] {
  return DEPLOYMENT.parse(text).spec;
}

function settingsOf(object: unknown): readonly string[] {
  const [{ env }] = readDeployment(object).template.spec.containers;
  return env.map(({ name }) => name.replace('CALLBOARD_', ''));
}

const BASE = join(import.meta.dirname, '../../deploy/kubernetes/base');

describe('deploy/kubernetes', () => {
  const base: unknown = parse(readFileSync(join(BASE, 'deployment.yaml'), 'utf8'));

  it('sets only what callboard knows', () => {
    const unknown = settingsOf(base).filter(
      (name) => !SETTING_NAMES.some((own) => own === name) && !settingOfFile(name),
    );
    expect(unknown).toEqual([]);
  });

  it('gives a pod the time to leave its service and to drain', () => {
    const { terminationGracePeriodSeconds: grace, containers } = readDeployment(base).template.spec;
    const [program, seconds] = containers[0].lifecycle.preStop.exec.command;
    expect(program).toBe('sleep');
    // After the drain, closing the links takes up to 5 s more.
    expect(grace).toBeGreaterThan(Number(seconds) + DRAIN_MS / 1000 + 5);
  });
});

// Only kustomize knows what its files mean; a renderer of our own would prove nothing.
describe.runIf(renderer() !== null)('rendered by kustomize', () => {
  const of = (objects: readonly KubernetesObject[], kind: string): KubernetesObject | undefined =>
    objects.find((object) => object.kind === kind);

  it.each(['direct', 'shared'])('%s has objects that the schemas of Kubernetes accept', async (overlay) => {
    const objects = render(overlay);
    expect(objects.map(({ kind }) => kind).sort()).toEqual([
      ...['ConfigMap', 'Deployment', 'NetworkPolicy', 'PodDisruptionBudget', 'Service'],
    ]);
    for (const object of objects) await validate(object);
    expect(typeFaults(objects)).toEqual([]);
  });

  it('is refused with a wrong value or an unknown member', async () => {
    const service = of(render('direct'), 'Service');
    const broken = { ...service, apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 'http' }] } };
    await expect(validate(broken)).rejects.toThrow('port must be integer');
    const misspelt = { ...service, apiVersion: 'v1', kind: 'Service', spec: { port: [] } };
    expect(typeFaults([misspelt])).toEqual([expect.stringContaining(`'"port"' does not exist`)]);
  });

  it('direct has one relay that ends before the next one starts; shared has two, which are replaced one by one', () => {
    const [direct, shared] = ['direct', 'shared'].map((overlay) => of(render(overlay), 'Deployment'));
    expect(readDeployment(direct)).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(readDeployment(shared)).toMatchObject({
      replicas: 2,
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    });
    expect(settingsOf(shared)).toContain('REDIS_URL_FILE');
    expect(settingsOf(direct)).not.toContain('REDIS_URL_FILE');
    // Nodes over Redis keep large payloads in Redis. They refuse a folder that is not common to all nodes.
    expect(settingsOf(shared)).not.toContain('SPILL_DIR');
  });

  it('selects the pods of the deployment by its label', () => {
    for (const overlay of ['direct', 'shared']) {
      const objects = render(overlay);
      const labels = readDeployment(of(objects, 'Deployment')).template.metadata?.labels;
      expect(labels).toEqual({ 'app.kubernetes.io/name': 'callboard' });
      expect(of(objects, 'Service')).toMatchObject({ spec: { selector: labels } });
      expect(of(objects, 'PodDisruptionBudget')).toMatchObject({ spec: { selector: { matchLabels: labels } } });
      expect(of(objects, 'NetworkPolicy')).toMatchObject({ spec: { podSelector: { matchLabels: labels } } });
    }
  });
});
