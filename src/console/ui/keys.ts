/** Handles keyboard shortcuts. All except Ctrl+K are off while the user types and while a dialog is open. */
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { keep, recall } from '../browser-storage.ts';

/** Performs a shortcut. Returns false if the key has no effect now, so that the browser handles it. */
type KeyAct = () => boolean | void;
type KeyMap = Readonly<Record<string, KeyAct>>;

const SWITCH = 'callboard:keys';

/** Whether the shortcuts other than Ctrl+K are on. The choice is stored in the browser. */
export const keysOn = signal(recall('local', SWITCH) !== 'off');

export function switchKeys(on: boolean): void {
  keysOn.value = on;
  keep('local', SWITCH, on ? 'on' : 'off');
}

/** The shortcuts of the components that are shown. If several handle a key, the component that was shown last wins. */
const maps = new Set<() => KeyMap>();
/** The first key of shortcuts with two keys: `g`, and then the key of a page. */
const PREFIX = 'g';
/** The maximum time between the two keys, in milliseconds. */
const PREFIX_MS = 1_200;
let prefixAt = -Infinity;

/**
 * Handles these keys while the component is shown. The name of a shortcut with two keys contains both, such as `'g c'`.
 */
export function useKeys(map: KeyMap): void {
  const current = useRef(map);
  current.current = map;
  // A layout effect, because it runs before the browser paints: a key works as soon as the component is visible.
  useLayoutEffect(() => {
    const read = (): KeyMap => current.current;
    maps.add(read);
    return () => void maps.delete(read);
  }, []);
}

/** Starts to listen for keys. It must be called once. */
export function listenForKeys(): void {
  document.addEventListener('keydown', (event) => {
    const palette = (event.ctrlKey || event.metaKey) && event.key === 'k';
    if (palette) return void (run('Ctrl K') && event.preventDefault());
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (!keysOn.value || isTyping(event.target) || document.querySelector('dialog[open]')) return;
    // The browser handles Enter on a button or link by activating that element.
    if (event.key === 'Enter' && event.target instanceof Element && event.target.closest('a, button, summary')) return;
    const second = event.timeStamp - prefixAt < PREFIX_MS;
    prefixAt = !second && event.key === PREFIX ? event.timeStamp : -Infinity;
    if (run(second ? `${PREFIX} ${event.key}` : event.key)) event.preventDefault();
  });
}

function run(name: string): boolean {
  for (const read of [...maps].reverse()) {
    const act = read()[name];
    if (act && act() !== false) return true;
  }
  return false;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest('input:not([type=radio]), textarea, select') !== null;
