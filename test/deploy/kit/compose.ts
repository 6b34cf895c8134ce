/** Reads deploy/compose.yaml: a strict schema knows each member that it uses, and the relay reads its settings. */
import { posix } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { configOf, makeSecrets } from './settings.ts';
import { textOf, type Tree } from './tree.ts';

const HEALTH = z.strictObject({
  test: z.array(z.string()),
  interval: z.string(),
  timeout: z.string(),
  retries: z.number(),
});
const SERVICE = z.strictObject({
  profiles: z.array(z.string()).optional(),
  image: z.string(),
  build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
  user: z.string().optional(),
  init: z.boolean().optional(),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).optional(),
  ports: z.array(z.string()).optional(),
  networks: z.array(z.string()),
  secrets: z.array(z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  tmpfs: z.array(z.string()).optional(),
  depends_on: z
    .union([
      z.array(z.string()),
      z.record(z.string(), z.strictObject({ condition: z.enum(['service_healthy', 'service_started']) })),
    ])
    .optional(),
  healthcheck: HEALTH.optional(),
  restart: z.literal('unless-stopped'),
  stop_grace_period: z.string().optional(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.string()).optional(),
  cap_add: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
  mem_limit: z.string().optional(),
  pids_limit: z.number().optional(),
  ulimits: z.strictObject({ nofile: z.number() }).optional(),
});
const COMPOSE = z.strictObject({
  name: z.string(),
  'x-closed': z.unknown(),
  'x-relay': z.unknown(),
  services: z.record(z.string(), SERVICE),
  networks: z.record(z.string(), z.union([z.null(), z.strictObject({ internal: z.boolean() })])),
  secrets: z.record(z.string(), z.strictObject({ file: z.string() })),
  volumes: z.record(z.string(), z.null()),
});
export type Compose = z.infer<typeof COMPOSE>;

/** Returns the services with their settings checked. Throws for an unknown member or a wrong setting of a relay. */
export function readCompose(tree: Tree): Compose {
  const compose = COMPOSE.parse(parse(textOf(tree, 'compose.yaml'), { merge: true, strict: true }));
  const made = makeSecrets(tree);
  for (const { environment = {}, secrets = [] } of Object.values(compose.services)) {
    if (!Object.keys(environment).some((name) => name.startsWith('CALLBOARD_'))) continue;
    const files = secrets.map((name): [string, string] => {
      const text = made.get(posix.basename(compose.secrets[name]?.file ?? ''));
      if (text === undefined) throw new Error(`make-secrets.sh makes no file of the secret ${name}`);
      return [`/run/secrets/${name}`, text];
    });
    configOf(environment, new Map(files));
  }
  return compose;
}
