/** Tests that the log contains no secret, and that the metrics count. */
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/platform/log.ts';
import { createMetrics } from '../../src/platform/metrics.ts';

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl';

function collecting(secrets: readonly string[] = []): { lines: string[]; log: ReturnType<typeof createLog> } {
  const lines: string[] = [];
  return { lines, log: createLog({ level: 'debug', secrets, sink: { write: (line) => void lines.push(line) } }) };
}

describe('the log', () => {
  it('writes one JSON line with a level, a time and the message', () => {
    const { lines, log } = collecting();
    log.warn({ node: 'n1', count: 3 }, 'a message\nwith a line break');
    expect(lines).toHaveLength(1);
    expect(lines[0]?.trimEnd()).not.toContain('\n');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'warn', node: 'n1', count: 3, time: expect.any(String) });
  });

  it('never writes secrets, in whatever field, depth, error or message they occur', () => {
    const { lines, log } = collecting(['planted-admin-token']);
    const error = new Error(`refused Bearer planted-bearer, ${JWT}`, { cause: new Error('planted-admin-token') });
    log.error({ error, err: error, nested: { deep: { token: 'planted-1', list: [{ payload: 'planted-2' }] } } }, 'x');
    log.info({ headers: { authorization: 'planted-3' }, Authorization: 'planted-4', admin_token: 'planted-5' }, 'x');
    log.info({ url: '/s?a=1&ticket=planted-6&b=2', params: { card: 'planted-7' }, result: 'planted-8' }, 'x');
    log.info({ set_cookie: 'planted-9', secret: 'planted-10' }, `got planted-admin-token and ${JWT}`);
    log.warn(
      { note: `grant cbg_${'planted-'.repeat(6)}`, at: `cbt_${'planted-'.repeat(6)}` },
      `cbg_${'planted_'.repeat(6)}`,
    );
    const written = lines.join('');
    expect(written).not.toMatch(/planted|eyJ/);
    expect(written).toContain('b=2');
    expect(written).toContain('refused');
  });

  it('writes no part of a secret at the place where a long text is cut', () => {
    const secret = 'planted-admin-token-'.repeat(5);
    const { lines, log } = collecting([secret]);
    for (const credential of [
      secret,
      JWT,
      'Bearer planted-bearer',
      `cbg_${'planted-'.repeat(6)}`,
      '?ticket=planted-6',
    ]) {
      for (let cut = 1; cut < credential.length; cut++) {
        for (const end of [4_096, 16_384, 16_384 + secret.length]) {
          const text = `${' '.repeat(end - cut)}${credential} ${'y'.repeat(20_000)}`;
          log.info({ text }, text);
        }
        // The token before the credential is replaced too, which changes the position of the credential.
        log.info({}, `Bearer ${'x'.repeat(16_384 + secret.length - 7 - cut)} ${credential}`);
      }
    }
    expect(lines.join('')).not.toMatch(/plant|eyJ|cbg_/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(9_000);
  });

  it('writes shared fields into each line, without what it has learned to redact by then', () => {
    const { lines, log } = collecting(['planted-1']);
    const shared = { path: '/planted-1', user: 'planted-2', token: 'planted-3', status: 200 };
    const members = (): Record<string, unknown>[] => lines.splice(0).map((line) => JSON.parse(line));
    for (const id of ['a', 'b', 'Bearer planted-4']) log.info({ id }, 'request', shared);
    log.info({}, 'other planted-1', shared);
    log.redact(['planted-2']);
    log.info({ id: 'c' }, 'request', shared);
    log.info({ id: 'd' }, 'request', {});
    const known = { path: '/[redacted]', token: '[redacted]', status: 200 };
    const before = { level: 'info', time: expect.any(String), ...known, user: 'planted-2' };
    expect(members()).toEqual([
      { ...before, id: 'a', msg: 'request' },
      { ...before, id: 'b', msg: 'request' },
      { ...before, id: '[redacted]', msg: 'request' },
      { ...before, msg: 'other [redacted]' },
      { ...before, user: '[redacted]', id: 'c', msg: 'request' },
      { level: 'info', time: expect.any(String), id: 'd', msg: 'request' },
    ]);
  });

  it('redacts names of members like other texts', () => {
    const { lines, log } = collecting(['planted-admin-token']);
    log.info({ nested: { 'planted-admin-token': 1, [JWT]: 2, [`x${JWT}`]: 3 }, 'Bearer planted-bearer': 4 }, 'x');
    expect(lines.join('')).not.toMatch(/planted|eyJ/);
  });

  it('redacts flat entries too, and secrets that JSON escapes', () => {
    const { lines, log } = collecting(['planted "quoted" \\ token', 'plänted']);
    log.info({ id: 1, path: '/x', note: 'planted "quoted" \\ token' }, 'x');
    log.info({ id: 1, path: '/plänted/x' }, 'x');
    log.info({ id: 1, path: '/x', note: 'Bearer planted' }, 'x');
    log.info({ id: 1, path: `/${JWT}` }, 'x');
    log.info({ id: 1, token: 'planted' }, 'x');
    log.info({ id: 1, path: '/clean', none: undefined, null: null, ok: true }, 'x');
    expect(lines.join('')).not.toMatch(/pl[aä]nted|eyJ/);
    expect(lines.map((line) => JSON.parse(line).id)).toEqual([1, 1, 1, 1, 1, 1]);
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual({
      ...{ level: 'info', time: expect.any(String), id: 1, path: '/clean', null: null, ok: true, msg: 'x' },
    });
  });

  it('tolerates fields that cannot be written as JSON', () => {
    const { lines, log } = collecting();
    const loop: Record<string, unknown> = { big: 10n, run: () => 1, text: 'y'.repeat(10_000) };
    loop['self'] = loop;
    log.info({ loop }, 'x');
    expect(lines[0]?.length).toBeLessThan(30_000);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ loop: { big: '10' } });
  });

  it('writes nothing below its level', () => {
    const lines: string[] = [];
    const log = createLog({ level: 'error', sink: { write: (line) => void lines.push(line) } });
    log.debug({}, 'a');
    log.info({}, 'b');
    log.warn({}, 'c');
    expect(lines).toEqual([]);
  });
});

describe('the metrics', () => {
  it('count by name and label, for the node and for Prometheus alike', async () => {
    const meter = createMetrics();
    meter.count('commands_admitted');
    meter.count('commands_ended', 'completed');
    meter.count('commands_ended', 'completed');
    meter.gauge('links', () => 7);
    meter.gauge('waiters', () => {
      throw new Error('no');
    });
    expect(Object.fromEntries(meter.snapshot())).toEqual({ commands_admitted: 1, 'commands_ended:completed': 2 });
    const { text } = await meter.expose();
    expect(text).toContain('callboard_commands_admitted_total 1');
    expect(text).toContain('callboard_commands_ended_total{outcome="completed"} 2');
    expect(text).toContain('callboard_links 7');
    expect(text).toContain('process_cpu_user_seconds_total');
    meter.close();
  });

  it('stay of low cardinality for any labels', async () => {
    const meter = createMetrics();
    for (let i = 0; i < 1000; i++) meter.count('commands_refused', `label-${i}`);
    const { text } = await meter.expose();
    expect(text.match(/callboard_commands_refused_total\{/g)).toHaveLength(65);
    expect(meter.snapshot().get('commands_refused:other')).toBe(936);
    meter.close();
  });
});
