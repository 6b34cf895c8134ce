/** Reads the settings in files of deploy/ with the relay's own code, and makes the credentials that they name. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig, type Config } from '../../../src/config.ts';
import { PREFIX } from '../../../src/settings.ts';
import { textOf, type Tree } from './tree.ts';

/**
 * Reads the settings of a relay as it reads them at its start. `files`: the texts of the files that the settings name,
 * by their paths in the deployment. Throws for an unknown setting, a wrong value, a setting without effect, and a file
 * that is not there.
 */
export function configOf(environment: Readonly<Record<string, string>>, files: ReadonlyMap<string, string>): Config {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-settings-'));
  try {
    const written = new Map([...files].map(([path, text], at) => [path, write(join(folder, String(at)), text)]));
    const env = Object.entries(environment).map(([name, value]) => [name, written.get(value) ?? value]);
    const config = readConfig(Object.fromEntries(env), []);
    if (config.warnings.length > 0) throw new Error(config.warnings.join('\n'));
    if (config.generated) throw new Error('the relay would make credentials of its own');
    const unread = Object.entries(environment).filter(
      ([name, value]) => name.startsWith(PREFIX) && /_FILE$/.test(name) && isRead(name) && !files.has(value),
    );
    if (unread.length > 0) throw new Error(`no volume or secret has ${unread.join(', ')}`);
    return config;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether the relay reads the file at its start. It writes the file of the audit. */
function isRead(name: string): boolean {
  return name !== `${PREFIX}AUDIT_FILE`;
}

function write(path: string, text: string): string {
  writeFileSync(path, text);
  return path;
}

/** Runs make-secrets.sh of this tree in a new folder. Returns the texts of the files that it writes, by their names. */
export function makeSecrets(tree: Tree, ...args: readonly string[]): ReadonlyMap<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-secrets-'));
  try {
    const script = write(join(folder, 'make-secrets.sh'), textOf(tree, 'make-secrets.sh'));
    chmodSync(script, 0o755);
    const { status, stderr } = spawnSync(script, [...args], { encoding: 'utf8' });
    if (status !== 0 || stderr !== '') throw new Error(`make-secrets.sh: ${stderr}`);
    const made = join(folder, 'secrets');
    return new Map(readdirSync(made).map((name) => [name, readFileSync(join(made, name), 'utf8')]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
