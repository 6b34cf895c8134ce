/** Tests deploy/compose.yaml: its settings, files, secrets, volumes and instructions. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { settingOfFile } from '../../src/settings-files.ts';
import { SETTING_NAMES } from '../../src/settings.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const COMPOSE = z.object({
  services: z.record(
    z.string(),
    z.object({
      profiles: z.array(z.string()).optional(),
      environment: z.record(z.string(), z.string()).optional(),
      secrets: z.array(z.string()).optional(),
      volumes: z.array(z.string()).optional(),
      depends_on: z.union([z.array(z.string()), z.record(z.string(), z.unknown())]).optional(),
    }),
  ),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
  volumes: z.record(z.string(), z.null()),
});
const text = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8');
const { services, secrets, volumes } = COMPOSE.parse(parse(text, { merge: true }));
const all = Object.entries(services);

describe('deploy/compose.yaml', () => {
  it('sets only what callboard knows', () => {
    const names = all.flatMap(([, { environment = {} }]) => Object.keys(environment));
    const own = names.flatMap((name) => (name.startsWith('CALLBOARD_') ? [name.replace('CALLBOARD_', '')] : []));
    expect(own).toContain('METRICS_TOKEN_FILE');
    expect(own.filter((name) => !SETTING_NAMES.some((known) => known === name) && !settingOfFile(name))).toEqual([]);
  });

  it('mounts files that exist, volumes and secrets that are declared, and starts what it depends on', () => {
    for (const [name, { volumes: mounted = [], secrets: used = [], depends_on: needed = [] }] of all) {
      const sources = mounted.map((mount) => mount.split(':')[0] ?? '');
      for (const source of sources)
        expect([name, source, source.startsWith('.') ? existsSync(join(DEPLOY, source)) : source in volumes]).toEqual([
          name,
          source,
          true,
        ]);
      expect(used.filter((secret) => !(secret in secrets))).toEqual([]);
      for (const other of Array.isArray(needed) ? needed : Object.keys(needed)) expect(services).toHaveProperty(other);
    }
  });

  it('gives each secret that it needs a line of its instructions', () => {
    for (const { file } of Object.values(secrets))
      expect(text.split('name:')[0]).toContain(file.replace('./secrets/', ''));
  });

  it('starts Prometheus and Grafana only with the profile `observe`', () => {
    const observed = all.filter(([, { profiles }]) => profiles?.includes('observe')).map(([name]) => name);
    expect(observed).toEqual(['prometheus', 'grafana']);
    const scraped = readFileSync(join(DEPLOY, 'compose/prometheus.yml'), 'utf8');
    for (const relay of all.map(([name]) => name).filter((name) => name.startsWith('relay-')))
      expect(scraped).toContain(`${relay}:4400`);
  });
});
