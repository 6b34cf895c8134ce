/** Keeps texts in the browser. If the browser blocks that, a text lasts as long as the page. */

type Keeper = 'session' | 'local';

export function recall(keeper: Keeper, key: string): string | null {
  try {
    return storageOf(keeper).getItem(key);
  } catch {
    return null;
  }
}

/** Keeps the text; null removes it. */
export function keep(keeper: Keeper, key: string, value: string | null): void {
  try {
    if (value === null) storageOf(keeper).removeItem(key);
    else storageOf(keeper).setItem(key, value);
  } catch {
    // The browser blocks storage.
  }
}

function storageOf(keeper: Keeper): Storage {
  return keeper === 'session' ? sessionStorage : localStorage;
}
