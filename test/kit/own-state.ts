/**
 * Gives each test file a state directory of its own, before its tests run. Relays that make their own credentials keep
 * them there, with their data, and not in the home directory of the user.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'callboard-state-'));
process.env['XDG_STATE_HOME'] = folder;
afterAll(() => rmSync(folder, { recursive: true, force: true }));
