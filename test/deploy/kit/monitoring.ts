/** Reads the files of deploy/ for Prometheus and Grafana, and finds the names of metrics in PromQL. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

export const DEPLOY = join(import.meta.dirname, '..', '..', '..', 'deploy');

const RULE = z.object({
  alert: z.string(),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(['page', 'ticket']) }),
  annotations: z.strictObject({ summary: z.string(), runbook_url: z.url() }),
});
export type Rule = z.infer<typeof RULE>;
const GROUPS = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(RULE) })) });
const SAMPLE = z.object({ labels: z.string() });
const CASES = z.object({
  tests: z.array(
    z.object({
      name: z.string(),
      promql_expr_test: z.array(z.object({ exp_samples: z.array(SAMPLE) })).optional(),
    }),
  ),
});
const PANELS = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).optional() })),
});

export function readRules(text = read('prometheus/alerts.yml')): readonly Rule[] {
  return GROUPS.parse(parse(text)).groups.flatMap(({ rules }) => rules);
}

/** Returns the cases of the alert tests: the alert that each is about, and whether it fires. */
export function readCases(
  text = read('prometheus/alerts.test.yml'),
): readonly { readonly alert: string; readonly fires: boolean }[] {
  return CASES.parse(parse(text)).tests.flatMap(({ name, promql_expr_test: tests = [] }) => {
    const alert = name.split(':')[0] ?? '';
    return tests.map(({ exp_samples: samples }) => ({
      alert,
      fires: samples.some(({ labels }) => labels === `{alertname="${alert}"}`),
    }));
  });
}

/** Returns the queries of the dashboard, with values in place of Grafana's variables. */
export function readQueries(): readonly string[] {
  const { panels } = PANELS.parse(JSON.parse(read('grafana/callboard.json')));
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => resolved(expr)));
}

function resolved(expr: string): string {
  return expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'callboard').replaceAll('$instance', '.*');
}

/** Returns the names of the relay's metrics that an expression uses. */
export function metricNames(expr: string): readonly string[] {
  return expr.match(/\b(callboard|nodejs|process)_[a-z0-9_]+/g) ?? [];
}

function read(path: string): string {
  return readFileSync(join(DEPLOY, path), 'utf8');
}
