/**
 * Keeps the reader's place: names the page in the tab's title and for screen readers, moves the focus into a page that
 * a link or a key opened, and restores scroll position and focus on Back, Forward and reload.
 */
import { useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { visibleText } from '../../protocol/visible-text.ts';
import { keep, recall } from '../session.ts';
import { label, pageTitle } from '../ui/page.tsx';
import { longWaitCount } from './facts.tsx';

/** Names the page: in the title of the tab after the number of long waits, and in a live region. */
export function PageName() {
  const title = pageTitle.value;
  const count = longWaitCount.value;
  useEffect(() => {
    const badge = count > 0 ? `(${count}) ` : '';
    document.title = badge + visibleText([title, label, 'Callboard'].filter((part) => part !== '').join(' · '));
  }, [title, count]);
  return (
    <p class="sr" aria-live="polite">
      {title !== '' && `Page ${title}`}
    </p>
  );
}

/** Where the reader was on a page. `focus`: the address of the link that had the focus; null for anything else. */
type Place = { readonly y: number; readonly focus: string | null };

const PLACES = 'callboard:places';
/** The maximum number of entries of the browser's history whose places are kept. */
const PLACES_MAX = 100;
/** The time for which a page may load until its place is restored, in milliseconds. */
const LOADING_MS = 3_000;

/** The places by the id that each entry of the browser's history has as its state. */
const places = new Map<string, Place>(storedPlaces());

/** Restores the reader's place when the address changes, and records it until then. Renders nothing. */
export function KeepPlace() {
  const { url, path } = useLocation();
  const entry = useRef('');
  const shown = useRef(path);
  useLayoutEffect(() => {
    history.scrollRestoration = 'manual';
    const record = (): void => {
      if (!isRestoring) setPlace(entry.current, { y: scrollY, focus: focusedLink() });
    };
    const store = (): void => keep('session', PLACES, JSON.stringify([...places]));
    addEventListener('scroll', record, { passive: true });
    addEventListener('focusin', record);
    addEventListener('pagehide', store);
    return () => {
      removeEventListener('scroll', record);
      removeEventListener('focusin', record);
      removeEventListener('pagehide', store);
    };
  }, []);
  useLayoutEffect(() => {
    entry.current = entryId();
    // An entry that a link has just added has no place yet.
    const place = places.get(entry.current);
    const isOther = shown.current !== path;
    shown.current = path;
    if (place) return whileLoading(() => restore(place));
    return isOther ? whileLoading(focusPage) : undefined;
  }, [url]);
  return null;
}

/** Whether a place is being restored, so that the page moves by itself. */
let isRestoring = false;

/** Calls `act` now and whenever the page changes, until it has had time to load or the user does something. */
function whileLoading(act: () => void): () => void {
  const main = document.querySelector('#main');
  const observer = new MutationObserver(act);
  const stop = (): void => {
    isRestoring = false;
    observer.disconnect();
    clearTimeout(timer);
    for (const name of USER_EVENTS) removeEventListener(name, stop, true);
  };
  const timer = setTimeout(stop, LOADING_MS);
  for (const name of USER_EVENTS) addEventListener(name, stop, true);
  if (main) observer.observe(main, { childList: true, subtree: true });
  isRestoring = true;
  act();
  return stop;
}

const USER_EVENTS = ['wheel', 'touchmove', 'keydown', 'pointerdown'] as const;

/** Scrolls to the place as soon as the page is long enough, and gives its link the focus. */
function restore({ y, focus }: Place): void {
  if (scrollY !== y && document.documentElement.scrollHeight - innerHeight >= y) scrollTo(0, y);
  if (focus === null) return focusPage();
  if (focusedLink() === focus) return;
  const links = document.querySelectorAll<HTMLElement>('#main a');
  [...links].find((link) => link.getAttribute('href') === focus)?.focus({ preventScroll: true });
}

/** Moves the focus into the page if nothing else has it, because what had it belonged to the former page. */
function focusPage(): void {
  const { activeElement } = document;
  if (activeElement && activeElement !== document.body) return;
  document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true });
}

function focusedLink(): string | null {
  return document.activeElement?.closest('#main a')?.getAttribute('href') ?? null;
}

let entries = 0;

/** Returns the id of the present entry of the browser's history. An entry without an id gets one. */
function entryId(): string {
  const state: unknown = history.state;
  if (typeof state === 'string') return state;
  const id = `${Date.now()}-${++entries}`;
  history.replaceState(id, '');
  return id;
}

function setPlace(id: string, place: Place): void {
  places.delete(id);
  places.set(id, place);
  const [oldest] = places.keys();
  if (places.size > PLACES_MAX && oldest !== undefined) places.delete(oldest);
}

/** Returns the places that were stored before the page was loaded again. */
function storedPlaces(): readonly (readonly [string, Place])[] {
  try {
    const stored: unknown = JSON.parse(recall('session', PLACES) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isEntry(value: unknown): value is readonly [string, Place] {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1]?.y === 'number';
}
