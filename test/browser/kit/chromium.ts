/** Finds Chromium on this machine and starts it. */
import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type BrowserServer } from 'playwright-core';
import { WAIT_MS } from '../../kit/patience.ts';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const SHELLS = ['/usr/bin/chromium-headless-shell'];
/**
 * Features of Chromium that are off. Those of the first line are pages of its own, of the address bar that nobody sees: a
 * window would load two of them, which takes longer than the console. The others are those that Playwright turns off for
 * the pages of a test. They are named again because the last list of the command line counts.
 */
const FEATURES_OFF = [
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'WebUIOmniboxFullPopup'],
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'AvoidCorsURLLoaderRestartOnRedirect'],
  ...['HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable', 'ThirdPartyStoragePartitioning', 'PaintHolding'],
  ...[
    'LensOverlay',
    'MediaRouter',
    'OptimizationHints',
    'NetworkTimeServiceQuerying',
    'AimEnabled',
    'PreconnectToSearch',
  ],
];
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--disable-features=${FEATURES_OFF.join(',')}`,
];

/** The variable with the address that answers with the endpoint of the browser that the tests of a run share. */
export const SHARED_BROWSER = 'CALLBOARD_TEST_SHARED_BROWSER';

/** Starts a headless Chromium that several processes may use. */
export function launchServer(): Promise<BrowserServer> {
  return chromium.launchServer({ executablePath: findShell(), args: ARGS, timeout: WAIT_MS });
}

/**
 * Returns a headless Chromium. In a run of tests it is the one that they share, and closing it closes the contexts of
 * the caller only.
 */
export async function launchChromium(): Promise<Browser> {
  const shared = process.env[SHARED_BROWSER];
  if (shared === undefined)
    return bounded(await chromium.launch({ executablePath: findShell(), args: ARGS, timeout: WAIT_MS }));
  const answer = await fetch(shared);
  const endpoint = await answer.text();
  if (!answer.ok) throw new Error(endpoint);
  return bounded(await chromium.connect(endpoint, { timeout: WAIT_MS }));
}

/** Starts a headless Chromium that keeps the pages that the user leaves, as in everyday use. */
export async function launchKeepingPages(): Promise<Browser> {
  const ignoreDefaultArgs = ['--disable-back-forward-cache'];
  return bounded(
    await chromium.launch({ executablePath: findChromium(), args: ARGS, ignoreDefaultArgs, timeout: WAIT_MS }),
  );
}

/** Gives waits a bound below that of a test, so that a failure names what the test waited for. */
function bounded(browser: Browser): Browser {
  browser.on('context', (context) => context.setDefaultTimeout(WAIT_MS));
  return browser;
}

/** Starts a headless Chromium with the unpacked extension of this folder. */
export async function launchExtension(folder: string): Promise<BrowserContext> {
  const context = await chromium.launchPersistentContext('', {
    executablePath: findChromium(),
    timeout: WAIT_MS,
    ignoreDefaultArgs: ['--disable-extensions'],
    args: [...ARGS, `--disable-extensions-except=${folder}`, `--load-extension=${folder}`],
  });
  context.setDefaultTimeout(WAIT_MS);
  return context;
}

/** The program without windows if there is one, which takes less time, and Chromium otherwise. */
function findShell(): string {
  return process.env['CALLBOARD_TEST_CHROMIUM'] ?? SHELLS.find((place) => existsSync(place)) ?? findChromium();
}

/** The program of CALLBOARD_TEST_CHROMIUM, or one in the usual folders. Fails with the command that installs one. */
function findChromium(): string {
  const path = process.env['CALLBOARD_TEST_CHROMIUM'] ?? PLACES.find((place) => existsSync(place));
  if (!path) throw new Error('No Chromium: apt-get update && apt-get install -y --no-install-recommends chromium');
  return path;
}
