/** Keeps the state of a page in the query of its URL. */
import { useLocation, useRoute } from 'preact-iso';

export type Changes = Readonly<Record<string, string | null>>;

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
  // The path and query come from the route. While the next page loads and this one is still shown, the location is
  // already that of the next page.
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
function withSlash(path: string): string {
  return path.endsWith('/console') ? `${path}/` : path;
}

/** Returns the value if it is one of the choices; otherwise null. */
export function oneOf<Choice extends string>(value: string | undefined, choices: readonly Choice[]): Choice | null {
  return choices.find((choice) => choice === value) ?? null;
}
