/** Tracks whether the tab is visible, and the current time while it is. */
import { effect, signal } from '@preact/signals';

export const visible = signal(!document.hidden);
document.addEventListener('visibilitychange', () => (visible.value = !document.hidden));

/** The current time in epoch milliseconds, updated each second. It is not updated while the tab is hidden. */
export const now = signal(Date.now());

effect(() => {
  if (!visible.value) return undefined;
  now.value = Date.now();
  const timer = setInterval(() => (now.value = Date.now()), 1000);
  return () => clearInterval(timer);
});
