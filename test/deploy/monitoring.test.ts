/**
 * Tests the alert rules and the dashboard of deploy/: the metrics that they use, the cases of the alerts, and their
 * validity.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { checkGroups, dashboardText, GROUPS } from '../../scripts/grafana/dashboard.ts';
import { startHttpRelay } from '../http/kit/http-relay.ts';
import { parseExposition } from '../metrics/kit/exposition.ts';
import { DEPLOY, metricNames, readCases, readQueries, readRules } from './kit/monitoring.ts';
import { find } from './kit/programs.ts';
import { ownFolder } from '../kit/folder.ts';

const promtool = find('promtool');
const rules = readRules();

/** Runs promtool; returns its exit code and what it wrote. */
function check(args: readonly string[], cwd: string): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(promtool ?? '', [...args], { cwd, encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

describe('alert rules and dashboard', () => {
  it('use only metrics that a running relay exposes', async () => {
    await using relay = await startHttpRelay();
    const families = parseExposition((await relay.ask('/metrics')).text);
    const exposed = new Set<string>();
    for (const [name, { type }] of families)
      for (const suffix of type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) exposed.add(name + suffix);
    const used = [...rules.map(({ expr }) => expr), ...readQueries()].flatMap(metricNames);
    expect(used.length).toBeGreaterThan(80);
    expect(used.filter((name) => !exposed.has(name))).toEqual([]);
  });
});

describe('the dashboard', () => {
  it('is what the list of metrics yields', () => {
    expect(readFileSync(join(DEPLOY, 'grafana/callboard.json'), 'utf8')).toBe(dashboardText());
  });

  it('has a place for every metric', () => {
    const [first, ...rest] = GROUPS;
    if (!first) throw new Error('no group');
    const [dropped, ...metrics] = first.metrics;
    expect(() => checkGroups([{ ...first, metrics }, ...rest])).toThrow(`no group for ${dropped}`);
    expect(() => checkGroups([...GROUPS, first])).toThrow(`has ${first.metrics.join(', ')} in several groups`);
  });
});

describe('alert rules', () => {
  it('have each a case in which they fire and one in which they do not, and no name twice', () => {
    const cases = readCases();
    for (const { alert } of rules) {
      const own = cases.filter((one) => one.alert === alert).map(({ fires }) => fires);
      expect([alert, new Set(own)]).toEqual([alert, new Set([true, false])]);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it('have each a runbook in docs/runbooks.md, with commands', () => {
    const page = readFileSync(join(DEPLOY, '../docs/runbooks.md'), 'utf8');
    const { homepage } = JSON.parse(readFileSync(join(DEPLOY, '../package.json'), 'utf8'));
    for (const { alert, annotations } of rules) {
      expect(annotations.runbook_url).toBe(`${homepage}/runbooks#${alert.toLowerCase()}`);
      const [, text = ''] = page.split(`\n## ${alert}\n`);
      expect([alert, text.split('\n#')[0]]).toEqual([
        alert,
        expect.stringMatching(/^1\. .*\n(.*\n)*2\. .*\n(.*\n)*3\. /m),
      ]);
    }
    const described = [...page.matchAll(/^## (Callboard\w+)$/gm)].map(([, alert]) => alert);
    expect(described.filter((alert) => !rules.some((rule) => rule.alert === alert))).toEqual([]);
  });
});

// promtool comes with Prometheus. Without it nothing here can evaluate a rule.
describe.runIf(promtool !== null)('read by promtool', () => {
  const folder = join(DEPLOY, 'prometheus');

  it('the rules are valid, and fire in their cases and in no other', () => {
    expect(check(['check', 'rules', 'alerts.yml'], folder)).toMatchObject({ status: 0 });
    expect(check(['test', 'rules', 'alerts.test.yml'], folder)).toMatchObject({ status: 0 });
  });

  it('the cases notice each rule that never fires', () => {
    const own = ownFolder();
    writeFileSync(join(own, 'alerts.test.yml'), readFileSync(join(folder, 'alerts.test.yml')));
    const never = rules.map((rule) => ({ ...rule, expr: 'vector(1) < 0' }));
    writeFileSync(join(own, 'alerts.yml'), stringify({ groups: [{ name: 'callboard', rules: never }] }));
    const { status, text } = check(['test', 'rules', 'alerts.test.yml'], own);
    const noticed = new Set([...text.matchAll(/alertname="(\w+)"/g)].map(([, alert]) => alert));
    expect([status, [...noticed].sort()]).toEqual([1, rules.map(({ alert }) => alert).sort()]);
  });

  it('the queries of the dashboard are valid', () => {
    const own = ownFolder();
    const queries = readQueries().map((expr, at) => ({ record: `query:${at}`, expr }));
    writeFileSync(join(own, 'queries.yml'), stringify({ groups: [{ name: 'dashboard', rules: queries }] }));
    expect(check(['check', 'rules', 'queries.yml'], own)).toMatchObject({ status: 0 });
  });

  it('the configuration of deploy/compose.yaml is valid', () => {
    const own = ownFolder();
    const text = readFileSync(join(DEPLOY, 'compose/prometheus.yml'), 'utf8')
      .replace('/etc/prometheus/alerts.yml', join(folder, 'alerts.yml'))
      .replace('/run/secrets/callboard_metrics_token', join(own, 'token'));
    writeFileSync(join(own, 'token'), 'a-token-of-at-least-32-characters!');
    writeFileSync(join(own, 'prometheus.yml'), text);
    expect(check(['check', 'config', 'prometheus.yml'], own)).toMatchObject({ status: 0 });
  });
});
