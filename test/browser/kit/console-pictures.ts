/** Takes the pictures of the console for the documentation. */
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { openConsole } from './console-page.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'docs', 'console');

/**
 * The pictures to take, each with the path and the heading of its page. The picture `call` shows the newest call that
 * ended `outcome_unknown`.
 */
const PICTURES: readonly (readonly [name: string, path: string, heading: string])[] = [
  ['overview', '', 'Overview'],
  ['calls', 'calls', 'Calls'],
  ['call', 'calls?outcome=outcome_unknown', 'Calls'],
];

export type PicturesOf = { readonly url: string; readonly token: string };

/** Writes docs/console/*.png in both themes from a running relay, and resolves with their names. */
export async function takePictures(browser: Browser, { url, token }: PicturesOf): Promise<readonly string[]> {
  const written: string[] = [];
  const { page } = await openConsole(browser, `${url}/console/nowhere`, { token });
  for (const [name, path, heading] of PICTURES) {
    await page.goto(`${url}/console/${path}`);
    await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    if (name === 'call') await page.locator('tbody .id').first().click();
    await page
      .locator({ overview: '.plots', calls: 'tbody tr', call: '.tl li' }[name] ?? 'h1')
      .first()
      .waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}.png`) });
      written.push(`${name}-${colorScheme}.png`);
    }
  }
  await page.context().close();
  return written;
}
