/** Stores texts in the browser's storage. If the browser blocks storage, a text lasts only as long as the page. */

type Keeper = 'session' | 'local';

export function recall(keeper: Keeper, key: string): string | null {
  try {
    return storageOf(keeper).getItem(key);
  } catch {
    return null;
  }
}

/** Stores a text; null removes the stored one. */
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
