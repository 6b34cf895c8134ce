/** Tests the units of deploy/systemd and socket activation with systemd's own tools. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { settingOfFile } from '../../src/settings/setting-files.ts';
import { SETTING_NAMES } from '../../src/settings.ts';
import { freePort } from '../kit/free-port.ts';
import { find } from './kit/programs.ts';
import { ownFolder } from '../kit/folder.ts';

const UNITS = join(import.meta.dirname, '..', '..', 'deploy', 'systemd');
const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
const analyze = find('systemd-analyze');
const activate = find('systemd-socket-activate');
/** The highest overall exposure that `systemd-analyze security` may find for the unit. Its scale ends at 10. */
const EXPOSURE_MAX = 2.0;

/**
 * Writes the units into the folder and returns their path. They name a program that exists on this machine, because
 * `systemd-analyze verify` looks for it.
 */
function prepared(folder: string): string {
  const units = join(folder, 'units');
  mkdirSync(units);
  copyFileSync(join(UNITS, 'callboard.socket'), join(units, 'callboard.socket'));
  const service = readFileSync(join(UNITS, 'callboard.service'), 'utf8');
  writeFileSync(join(units, 'callboard.service'), service.replace('/opt/callboard/dist/bin.js', '/dev/null'));
  return units;
}

describe('deploy/systemd', () => {
  it('sets only what callboard knows', () => {
    const service = readFileSync(join(UNITS, 'callboard.service'), 'utf8');
    const names = [...service.matchAll(/CALLBOARD_([A-Z_]+)=/g)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(0);
    const unknown = names.filter((name) => !SETTING_NAMES.some((known) => known === name) && !settingOfFile(name));
    expect(unknown).toEqual([]);
  });

  // These tests are skipped without systemd's tools, because nothing else can read a unit.
  describe.runIf(analyze !== null)('read by systemd', () => {
    it('has units without a fault', () => {
      const folder = ownFolder();
      const units = prepared(folder);
      const paths = ['callboard.service', 'callboard.socket'].map((name) => join(units, name));
      const { stdout, stderr } = spawnSync(analyze ?? '', ['verify', '--man=no', ...paths], { encoding: 'utf8' });
      const ours = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('callboard'));
      expect(ours).toEqual([]);
    });

    it(`leaves an exposure of at most ${EXPOSURE_MAX}`, () => {
      const folder = ownFolder();
      const unit = join(prepared(folder), 'callboard.service');
      const text = execFileSync(analyze ?? '', ['security', '--offline=true', unit], { encoding: 'utf8' });
      const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(text) ?? [];
      expect(Number(exposure)).toBeLessThanOrEqual(EXPOSURE_MAX);
    });
  });

  // Only systemd's own program passes sockets exactly as systemd does.
  it.runIf(activate !== null)(
    'answers the connection for which systemd starts it, and stops in order',
    async () => {
      const port = await freePort();
      const env = { PATH: process.env['PATH'] ?? '', XDG_STATE_HOME: ownFolder() };
      const passed = Object.entries(env).flatMap(([name, value]) => ['-E', `${name}=${value}`]);
      const args = ['-l', `127.0.0.1:${port}`, ...passed, process.execPath, BIN, 'serve', '--json', '--port', '1'];
      const relay = spawn(activate ?? '', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
      const errors = createInterface({ input: relay.stderr });
      for await (const line of errors) if (line.startsWith('Listening on')) break;
      relay.stderr.resume();
      const line = once(createInterface({ input: relay.stdout }), 'line');
      expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
      expect(JSON.parse(String((await line)[0]))).toMatchObject({ url: `http://127.0.0.1:${port}` });
      relay.kill('SIGTERM');
      expect(await once(relay, 'exit')).toEqual([0, null]);
    },
    60_000,
  );
});
