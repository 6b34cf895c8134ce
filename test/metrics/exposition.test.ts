/** Tests metrics as text, in the formats of Prometheus and OpenMetrics. */
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SHOWN_BOUNDS_MS } from '../../src/core/metrics/buckets.ts';
import { METRICS } from '../../src/core/metrics/metric-texts.ts';
import { createMetrics, type Meter } from '../../src/platform/metrics.ts';
import { parseExposition } from './kit/exposition.ts';

const AT = Date.UTC(2026, 0, 1);
const COMMAND = { commandId: 'c1', traceId: null, traceFlags: null, callSpan: null };

/** Returns a meter with a value in each histogram and counter. */
function busyMeter(): Meter {
  const meter = createMetrics(() => AT);
  meter.count('commands_ended', 'completed');
  meter.count('payloads_spilled');
  for (const ms of [0.2, 5, 5.1, 700, 400_000]) meter.observe('command_seconds', ms, 'completed', COMMAND);
  meter.observe('ack_seconds', 12);
  meter.gauge('links', () => 3);
  meter.gauges('share_used', () => [['links', 3]]);
  return meter;
}

async function sampleOf(meter: Meter, name: string, labels: Record<string, string>): Promise<number | undefined> {
  const samples = [...parseExposition((await meter.expose()).text).values()].flatMap((family) => family.samples);
  return samples.find((one) => one.name === name && isSame(one.labels, labels))?.value;
}

function isSame(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

describe('histograms', () => {
  it('count each duration below every bound that is not smaller, whatever the durations are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.double({ min: 0, max: 700_000, noNaN: true }), fc.constantFrom(...SHOWN_BOUNDS_MS))),
        async (all) => {
          const meter = createMetrics(() => AT);
          for (const ms of all) meter.observe('ack_seconds', ms);
          if (all.length === 0) return;
          for (const bound of SHOWN_BOUNDS_MS) {
            const counted = await sampleOf(meter, 'callboard_ack_seconds_bucket', { le: String(bound / 1000) });
            expect(counted).toBe(all.filter((ms) => ms <= bound).length);
          }
          expect(await sampleOf(meter, 'callboard_ack_seconds_sum', {})).toBeCloseTo(
            all.reduce((a, b) => a + b, 0) / 1000,
          );
          meter.close();
        },
      ),
      { numRuns: 10 },
    );
  });

  it('show the outcome of commands, and keep counting when time slots close', async () => {
    const meter = busyMeter();
    const labels = { outcome: 'completed' };
    expect(await sampleOf(meter, 'callboard_command_seconds_count', labels)).toBe(5);
    for (let i = 0; i < 20; i++) {
      meter.closeSlot(AT + i * 5_000);
      meter.observe('command_seconds', 5, 'completed');
    }
    expect(await sampleOf(meter, 'callboard_command_seconds_count', labels)).toBe(25);
    expect(await sampleOf(meter, 'callboard_command_seconds_bucket', { ...labels, le: '0.005' })).toBe(22);
    meter.close();
  });

  it('count a negative duration as zero', async () => {
    const meter = createMetrics(() => AT);
    meter.observe('ack_seconds', -3);
    expect(await sampleOf(meter, 'callboard_ack_seconds_sum', {})).toBe(0);
    expect(await sampleOf(meter, 'callboard_ack_seconds_bucket', { le: '0.005' })).toBe(1);
    meter.close();
  });
});

describe('the text formats', () => {
  it('follow their format strictly, and promtool finds nothing to improve', async () => {
    const meter = busyMeter();
    const { contentType, text } = await meter.expose();
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(parseExposition(text).get('callboard_commands_ended_total')?.type).toBe('counter');
    const promtool = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
    // Few machines have promtool (Debian: the package prometheus). Without it, the strict parser above is the check.
    if (promtool.error === undefined) expect(promtool).toMatchObject({ status: 0, stdout: '', stderr: '' });
    meter.close();
  });

  it('are OpenMetrics on request, with an example of a command in each bucket that has one', async () => {
    const meter = createMetrics(() => AT);
    await meter.expose('openmetrics');
    meter.observe('command_seconds', 700, 'completed', { ...COMMAND, traceId: 't1' });
    meter.observe('command_seconds', 3, 'completed', COMMAND);
    const { contentType, text } = await meter.expose('openmetrics');
    expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    const families = parseExposition(text, { openMetrics: true });
    expect(families.get('callboard_commands_ended')?.type).toBe('counter');
    const line = (le: string): string | undefined =>
      text
        .split('\n')
        .find((row) => row.startsWith(`callboard_command_seconds_bucket{outcome="completed",le="${le}"}`));
    expect(line('0.005')).toMatch(/ 1 # \{command_id="c1"\} 0\.003 1767225600$/);
    expect(line('1.0')).toMatch(/ 2 # \{trace_id="t1",command_id="c1"\} 0\.7 1767225600$/);
    expect(line('0.5')).toMatch(/ 1$/);
    // The other format is not affected, although both are made at the same time.
    expect(parseExposition((await meter.expose()).text).has('callboard_commands_ended_total')).toBe(true);
    meter.close();
  });

  it('never show an example of more than 128 characters', async () => {
    const meter = createMetrics(() => AT);
    await meter.expose('openmetrics');
    const [long, fits] = ['x'.repeat(256), 'y'.repeat(118)];
    meter.observe('command_seconds', 3, 'long', { ...COMMAND, commandId: long, traceId: long });
    meter.observe('command_seconds', 3, 'fits', { ...COMMAND, commandId: fits, traceId: long });
    meter.observe('command_seconds', 3, 'over', { ...COMMAND, commandId: `${fits}y` });
    const { text } = await meter.expose('openmetrics');
    expect(parseExposition(text, { openMetrics: true }).size).toBeGreaterThan(0);
    expect(text.match(/ # \{.*\}/g)).toEqual([` # {command_id="${fits}"}`]);
    meter.close();
  });

  it('lead to a trace that is recorded, and to the command: by the relay, else by the caller', async () => {
    const meter = createMetrics(() => AT);
    await meter.expose('openmetrics');
    const [own, callers] = ['0af7651916cd43dd8448eb211c80319c', '4bf92f3577b34da6a3ce929d0e0e4736'];
    const cases = {
      recorded: { traceId: callers, traceFlags: '00', callSpan: `00-${own}-b7ad6b7169203331-01` },
      not: { traceId: callers, traceFlags: '01', callSpan: `00-${own}-b7ad6b7169203331-00` },
      caller: { traceId: callers, traceFlags: '03', callSpan: null },
      neither: { traceId: callers, traceFlags: '02', callSpan: null },
    };
    for (const [outcome, trace] of Object.entries(cases))
      meter.observe('command_seconds', 3, outcome, { commandId: 'c1', ...trace });
    const { text } = await meter.expose('openmetrics');
    expect(text.match(/# \{.*\}/g)).toEqual([
      `# {trace_id="${own}",command_id="c1"}`,
      '# {command_id="c1"}',
      `# {trace_id="${callers}",command_id="c1"}`,
      '# {command_id="c1"}',
    ]);
    meter.close();
  });

  it('keep no examples before somebody reads OpenMetrics', async () => {
    const meter = busyMeter();
    await meter.expose();
    const { text } = await meter.expose('openmetrics');
    expect(text).not.toContain(' # {');
    meter.close();
  });
});

describe('gauges', () => {
  it('are computed for each exposition and at no other time', async () => {
    const meter = createMetrics(() => AT);
    let reads = 0;
    meter.gauge('links', () => ++reads);
    meter.gauges('share_used', () => {
      reads++;
      return [['links', 1]];
    });
    for (let i = 0; i < 100; i++) {
      meter.count('requests', 'rest');
      meter.observe('ack_seconds', i);
      meter.closeSlot(AT + i * 5_000);
    }
    meter.read({ names: ['requests'], from: AT, slotMs: 5_000, stepMs: 5_000, points: 10 }, AT + 500_000);
    expect(reads).toBe(0);
    await meter.expose();
    expect(reads).toBe(2);
    meter.close();
  });

  it('stop showing a label when its value is gone', async () => {
    const meter = createMetrics(() => AT);
    let scopes = ['a', 'b'];
    meter.gauges('reservations', () => scopes.map((scope) => [scope, 1]));
    expect(await sampleOf(meter, 'callboard_reservations', { scope: 'a' })).toBe(1);
    scopes = ['b'];
    expect(await sampleOf(meter, 'callboard_reservations', { scope: 'a' })).toBe(undefined);
    meter.close();
  });
});

it('every help text can be written without escapes, and every name follows the conventions', () => {
  for (const { exposedName, help } of METRICS) {
    expect(help).not.toMatch(/["\\\n]/);
    expect(exposedName).toMatch(/^callboard_[a-z]+(_[a-z]+)*$/);
  }
  expect(new Set(METRICS.map(({ exposedName }) => exposedName)).size).toBe(METRICS.length);
});
