/** Tests the sizes of the files that the console loads. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { buildConsole, firstLoad } from '../../scripts/bundles.ts';

/**
 * The maximum size of the files that the page itself names, compressed, in bytes. A browser loads them before it shows
 * the first page.
 */
const FIRST_LOAD_BYTES = 80_000;
/** The maximum size of the forms library, compressed, in bytes. It is loaded when an action with a schema is opened. */
const FORM_BYTES = 120_000;

it('the first load and the form stay within their budgets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'callboard-console-'));
  try {
    const files = await buildConsole(`${folder}/`);
    const first = await firstLoad(folder);
    const sum = files.filter(({ file }) => first.includes(file)).reduce((all, { gzipBytes }) => all + gzipBytes, 0);
    expect(first.length).toBeGreaterThan(1);
    expect(sum).toBeLessThan(FIRST_LOAD_BYTES);
    const [form] = files.filter(({ file }) => file.startsWith('assets/form-'));
    expect(form?.gzipBytes).toBeLessThan(FORM_BYTES);
    expect(first).not.toContain(form?.file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
