/** Finds Chromium on this machine and starts it. */
import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Starts a headless Chromium: the program of CALLBOARD_TEST_CHROMIUM, or one in the usual folders. Fails with the
 * command that installs one.
 */
export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env['CALLBOARD_TEST_CHROMIUM'] ?? PLACES.find((place) => existsSync(place));
  if (!executablePath)
    throw new Error('No Chromium: apt-get update && apt-get install -y --no-install-recommends chromium');
  return chromium.launch({ executablePath, args: ARGS });
}
