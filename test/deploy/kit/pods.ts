/** Reads the parts of Kubernetes objects that the tests of deploy/ compare. */
import { z } from 'zod';

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
