/** Finds Chromium on this machine and starts it. */
import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext } from 'playwright-core';
import { WAIT_MS } from '../../kit/patience.ts';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
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

/**
 * Starts a headless Chromium: the program of CALLBOARD_TEST_CHROMIUM, or one in the usual folders. Fails with the
 * command that installs one. `backForwardCache`: pages that the user leaves are kept, as in everyday use.
 */
export async function launchChromium({ backForwardCache = false } = {}): Promise<Browser> {
  const ignoreDefaultArgs = backForwardCache ? ['--disable-back-forward-cache'] : [];
  const browser = await chromium.launch({
    ...{ executablePath: findChromium(), args: ARGS, ignoreDefaultArgs, timeout: WAIT_MS },
  });
  // The bound is below that of a test, so that a failure names what the test waited for.
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

function findChromium(): string {
  const path = process.env['CALLBOARD_TEST_CHROMIUM'] ?? PLACES.find((place) => existsSync(place));
  if (!path) throw new Error('No Chromium: apt-get update && apt-get install -y --no-install-recommends chromium');
  return path;
}
