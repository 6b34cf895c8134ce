/** Creates temporary folders for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a new empty folder, which is removed when the current test finishes. */
export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-own-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
