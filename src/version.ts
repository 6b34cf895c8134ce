/** Reads the version of this package. */
import { readFileSync } from 'node:fs';

/** The version of the package, from package.json; `0.0.0` if it has none. */
export const VERSION: string = readVersion();

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const version: unknown = JSON.parse(text).version;
  return typeof version === 'string' ? version : '0.0.0';
}
