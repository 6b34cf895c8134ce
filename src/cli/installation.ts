/** Finds out where this program was installed from, so that commands to paste and new projects use the same. */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { isRecord } from '../protocol/json.ts';
import { VERSION } from '../version.ts';

/** The folder of the package, or of the checkout. */
const ROOT = join(import.meta.dirname, '..', '..');

/** Whether this program runs from its sources. */
export const IN_CHECKOUT = import.meta.filename.endsWith('.ts');

/** Whether npx runs this program from its cache: the folder where it was started has no `callboard`. */
const BY_NPX = ROOT.includes(`${sep}_npx${sep}`);

/**
 * Returns what a project names to get the same package: the path of a tarball or of a checkout, or else the version.
 */
export function packageSource(): { readonly path: string } | { readonly version: string } {
  if (IN_CHECKOUT) return { path: ROOT };
  const project = dirname(dirname(ROOT));
  const path = installedFile(project);
  return path === null ? { version: VERSION } : { path: resolve(project, path) };
}

/** Returns the file or folder from which npm installed the package in this project; null: from a registry. */
function installedFile(project: string): string | null {
  try {
    const lock: unknown = JSON.parse(readFileSync(join(project, 'node_modules', '.package-lock.json'), 'utf8'));
    const packages = isRecord(lock) && isRecord(lock['packages']) ? lock['packages'] : {};
    const entry = packages['node_modules/callboard'];
    const resolved = isRecord(entry) ? entry['resolved'] : undefined;
    return typeof resolved === 'string' && resolved.startsWith('file:') ? resolved.slice('file:'.length) : null;
  } catch {
    return null;
  }
}

/** Returns the command that runs `callboard` with these words in the folder where this program was started. */
export function pasteable(...words: readonly string[]): string {
  if (IN_CHECKOUT)
    return ['npm run callboard', ...(words.some((word) => word.startsWith('-')) ? ['--'] : []), ...words].join(' ');
  if (!BY_NPX) return ['npx callboard', ...words].join(' ');
  const source = packageSource();
  // npx takes an absolute path for a command, unless `--package` names it.
  const name = 'path' in source ? source.path : `callboard@${source.version}`;
  return [`npx --package ${name} callboard`, ...words].join(' ');
}
