/** Builds the console once before the browser tests run. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { buildConsole } from '../../../scripts/bundles.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const BUILT = join(ROOT, 'dist', 'console');

/** Builds the console before the tests if its sources changed since the last build. Relays serve it from dist. */
export async function setup(): Promise<void> {
  if (newest(join(ROOT, 'src', 'console')) > builtAt()) await buildConsole(`${BUILT}/`);
}

function builtAt(): number {
  try {
    return statSync(join(BUILT, 'index.html')).mtimeMs;
  } catch {
    return 0;
  }
}

function newest(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Math.max(...files.map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs));
}
