/** Stores the state of a page in the query of its URL. */
import { useLocation, useRoute } from 'preact-iso';

type Changes = Readonly<Record<string, string | null>>;

export type UrlState = {
  /** The parameters of the query. Absent and empty ones are undefined. */
  readonly values: Readonly<Record<string, string | undefined>>;
  /**
   * Returns the URL of the page with these parameters changed. A parameter whose new value is null is removed. `after`,
   * the position in a list, is removed too, unless `changes` contains it.
   */
  readonly hrefWith: (changes: Changes) => string;
  /** Goes to the URL of `hrefWith`, which adds an entry to the browser's history. */
  readonly change: (changes: Changes) => void;
};

export function useUrlState(): UrlState {
  const { route } = useLocation();
  // `useRoute` returns the URL of the page that is shown. While another page is loading, `useLocation` already returns
  // the URL of that page.
  const { path, query } = useRoute();
  const hrefWith = (changes: Changes): string => {
    const members = new URLSearchParams(query);
    if (!('after' in changes)) members.delete('after');
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '') members.delete(name);
      else members.set(name, value);
    }
    const text = members.toString();
    return text === '' ? withSlash(path) : `${withSlash(path)}?${text}`;
  };
  return { values: query, hrefWith, change: (changes) => route(hrefWith(changes)) };
}

/** Adds the trailing slash of the console's own path, which preact-iso drops. */
const withSlash = (path: string): string => (path.endsWith('/console') ? `${path}/` : path);

/** Returns the name of an enum value for its lower-case form in the URL; null for any other text. */
export function oneOf<Name extends string>(value: string | undefined, names: readonly Name[]): Name | null {
  return names.find((name) => name === value?.toUpperCase()) ?? null;
}
