/** The state of a page in the query of its URL. */
import { useLocation, useRoute } from 'preact-iso';

export type Changes = Readonly<Record<string, string | null>>;

export type UrlState = {
  /** The members of the query; absent and empty ones are undefined. */
  readonly values: Readonly<Record<string, string | undefined>>;
  /**
   * This URL with members set, or removed by null. The position in a list is left out, because it belongs to one
   * filter.
   */
  readonly hrefWith: (changes: Changes) => string;
  /** Goes to that URL, with an entry in the browser's history. */
  readonly change: (changes: Changes) => void;
};

export function useUrlState(): UrlState {
  const { route } = useLocation();
  // Of the route, because the location is that of the next page while this one is still shown and the next one loads.
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

/** preact-iso drops the slash at the end of a path, but the path of the console ends with one. */
function withSlash(path: string): string {
  return path.endsWith('/console') ? `${path}/` : path;
}

/** The value if it is one of the choices. */
export function oneOf<Choice extends string>(value: string | undefined, choices: readonly Choice[]): Choice | null {
  return choices.find((choice) => choice === value) ?? null;
}
