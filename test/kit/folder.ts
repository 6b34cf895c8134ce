import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A new and empty folder, for as long as the test lasts that asks for it. */
export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-own-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
