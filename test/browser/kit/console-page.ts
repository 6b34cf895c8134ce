/** Opens pages of the console in a browser, and looks for faults in them. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * A page of the console. `faults` collects every violation of its content security policy and every error that it
 * threw.
 */
export type ConsolePage = { readonly page: Page; readonly faults: string[] };

export type Opening = { readonly token?: string; readonly scheme?: 'light' | 'dark'; readonly width?: number };

/** Opens a path of the console in a new browser session, signed in with the token if there is one. */
export async function openConsole(
  browser: Browser,
  address: string,
  { token, scheme = 'light', width = 1280 }: Opening = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({
    colorScheme: scheme,
    viewport: { width, height: 900 },
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => void faults.push(error.message));
  page.on(
    'console',
    (line) => void (/Content.Security.Policy|TrustedHTML|TrustedScript/i.test(line.text()) && faults.push(line.text())),
  );
  await context.exposeFunction('policyViolated', (text: string) => void faults.push(text));
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      Reflect.get(window, 'policyViolated')(`${violatedDirective} ${blockedURI}`);
    });
  });
  if (token) await context.addInitScript((given) => sessionStorage.setItem('callboard:token', given), token);
  await page.goto(address);
  return { page, faults };
}

/** Goes to a path of the console inside the open page, as a link does, without loading the page again. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate((href) => {
    const link = document.createElement('a');
    link.href = href;
    document.body.append(link);
    link.click();
    link.remove();
  }, `/console/${path}`);
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
/** The rules among them that look at colours. */
const RULES_OF_COLOURS = ['color-contrast', 'link-in-text-block'];

/**
 * Returns the violations that axe-core finds in the page, with their elements. axe is loaded outside the page's content
 * security policy. `scheme`: `dark` asks about colours only, because the test has looked at the same elements in the
 * light theme, and the two themes of the console differ in their colours alone.
 */
export async function axeViolations(page: Page, scheme: 'light' | 'dark' = 'light'): Promise<readonly string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  return page.evaluate(
    async (runOnly) => {
      const { violations } = await Reflect.get(window, 'axe').run(document, { runOnly });
      type Found = {
        readonly id: string;
        readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
      };
      return violations.flatMap(({ id, nodes }: Found) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 200)}`),
      );
    },
    scheme === 'dark' ? RULES_OF_COLOURS : RULES,
  );
}

export function expectClean({ faults }: ConsolePage): void {
  expect(faults).toEqual([]);
}
