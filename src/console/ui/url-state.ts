/** Keeps the state of a page in the query of its URL. */
import { useLocation, useRoute } from 'preact-iso';

type Changes = Readonly<Record<string, string | null>>;

export type UrlState = {
  /** The members of the query; absent and empty ones are undefined. */
  readonly values: Readonly<Record<string, string | undefined>>;
  /**
   * Returns the URL of the page with these members of the query set. A member whose new value is null is removed. So is
   * `after`, the position in a list, unless `changes` contains it.
   */
  readonly hrefWith: (changes: Changes) => string;
  /** Goes to the URL of `hrefWith`, with an entry in the browser's history. */
  readonly change: (changes: Changes) => void;
};

export function useUrlState(): UrlState {
  const { route } = useLocation();
  // The route is that of the page that is shown. While another page loads, `useLocation` has the URL of that one.
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

/** Adds the slash at the end of the console's own path, which preact-iso drops. */
const withSlash = (path: string): string => (path.endsWith('/console') ? `${path}/` : path);

/** Returns the name of an enum that the URL has in lower case; null for any other text. */
export function oneOf<Name extends string>(value: string | undefined, names: readonly Name[]): Name | null {
  return names.find((name) => name === value?.toUpperCase()) ?? null;
}
