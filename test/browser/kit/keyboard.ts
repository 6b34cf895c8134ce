/** Moves through a page as a person without a mouse does. */
import type { Locator } from 'playwright-core';

/** The maximum number of Tab presses. Each page of the console has fewer elements that take the focus. */
const MOST_STEPS = 150;

/** Presses Tab until the element has the focus. Fails when Tab does not reach it. */
export async function tabTo(target: Locator): Promise<void> {
  await target.waitFor();
  const { keyboard } = target.page();
  for (let step = 0; step < MOST_STEPS; step++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await keyboard.press('Tab');
  }
  throw new Error(`Tab does not reach ${String(target)}`);
}

/** Reaches a button or a link by Tab, and presses Enter. */
export async function tabAndEnter(target: Locator): Promise<void> {
  await tabTo(target);
  await target.page().keyboard.press('Enter');
}

/** Reaches a field by Tab, and types. */
export async function tabAndType(target: Locator, text: string): Promise<void> {
  await tabTo(target);
  const { keyboard } = target.page();
  await keyboard.press('ControlOrMeta+a');
  await keyboard.type(text);
}
