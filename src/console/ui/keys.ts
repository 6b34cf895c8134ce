/** Handles keyboard shortcuts. All but Ctrl K are off while the user types, and while a dialog is open. */
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { keep, recall } from '../kept-texts.ts';

/** Runs a shortcut. Returns false when the key has no effect now, so that the browser handles it. */
type KeyAct = () => boolean | void;
type KeyMap = Readonly<Record<string, KeyAct>>;

const SWITCH = 'callboard:keys';

/** Whether the shortcuts other than Ctrl K are on. The browser stores the choice. */
export const keysOn = signal(recall('local', SWITCH) !== 'off');

export function switchKeys(on: boolean): void {
  keysOn.value = on;
  keep('local', SWITCH, on ? 'on' : 'off');
}

/** The shortcuts of the components that are shown. When several handle a key, the latest component wins. */
const maps = new Set<() => KeyMap>();
/** The first key of shortcuts with two keys: `g`, then the key of a page. */
const PREFIX = 'g';
/** The time within which the second key of a pair must follow the first one, in milliseconds. */
const PREFIX_MS = 1_200;
let prefixAt = -Infinity;

/** Handles these keys while the component is shown. The name of a pair has both keys, such as `'g c'`. */
export function useKeys(map: KeyMap): void {
  const current = useRef(map);
  current.current = map;
  // A layout effect runs before the browser paints, so a key works as soon as the component is seen.
  useLayoutEffect(() => {
    const read = (): KeyMap => current.current;
    maps.add(read);
    return () => void maps.delete(read);
  }, []);
}

/** Starts to listen for keys. Call it once. */
export function listenForKeys(): void {
  document.addEventListener('keydown', (event) => {
    const palette = (event.ctrlKey || event.metaKey) && event.key === 'k';
    if (palette) return void (run('Ctrl K') && event.preventDefault());
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (!keysOn.value || isTyping(event.target) || document.querySelector('dialog[open]')) return;
    // Enter on a button or a link is left to the browser, which activates the element.
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
