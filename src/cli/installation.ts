/** Finds out where this program was installed from, so that printed commands and new projects use the same package. */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { isRecord } from '../protocol/json.ts';
import { VERSION } from '../version.ts';

/** The folder of the package, or of the checkout. */
const ROOT = join(import.meta.dirname, '..', '..');

/** Whether this program runs from its TypeScript sources. */
export const IN_CHECKOUT = import.meta.filename.endsWith('.ts');

/** Whether npx runs this program from its cache. The user's folder then has no `callboard` installed. */
const BY_NPX = ROOT.includes(`${sep}_npx${sep}`);

/**
 * Returns the dependency by which a project gets the same package: the path of a tarball or of a checkout, or the
 * version.
 */
export function packageSource(): { readonly path: string } | { readonly version: string } {
  if (IN_CHECKOUT) return { path: ROOT };
  const project = dirname(dirname(ROOT));
  const path = installedFile(project);
  return path === null ? { version: VERSION } : { path: resolve(project, path) };
}

/** Returns the file or folder from which npm installed the package in this project; null if it came from a registry. */
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

/** Returns the shell command that runs `callboard` with these words in the user's folder. */
export function pasteable(...words: readonly string[]): string {
  if (IN_CHECKOUT)
    return ['npm run callboard', ...(words.some((word) => word.startsWith('-')) ? ['--'] : []), ...words].join(' ');
  if (!BY_NPX) return ['npx callboard', ...words].join(' ');
  const source = packageSource();
  // npx would take an absolute path for a command, so the package is named by `--package`.
  const name = 'path' in source ? source.path : `callboard@${source.version}`;
  return [`npx --package ${name} callboard`, ...words].join(' ');
}
