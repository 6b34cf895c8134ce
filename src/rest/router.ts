import findMyWay from 'find-my-way';
import type { Route } from './compile.ts';
import type { Method } from './directive.ts';

/** The routes of one path, by method. */
export type Resource = { readonly routes: ReadonlyMap<string, Route>; readonly allow: string };
/** Parameters are still percent-encoded. */
export type Match = { readonly resource: Resource; readonly path: Readonly<Record<string, string | undefined>> };

/** Longer than any request line that node:http lets in: length is for the coercers to judge. */
const LONGEST_PARAMETER = 100_000;

/** Finds the resource of a path, whatever the method; null when there is none. */
export function createRouter(routes: readonly Route[], basePath: string): (path: string) => Match | null {
  const router = findMyWay({ maxParamLength: LONGEST_PARAMETER });
  for (const [template, resource] of resourcesOf(routes)) {
    router.on('GET', basePath + template.replaceAll(/\{(\w+)\}/g, ':$1'), () => {}, resource);
  }
  return (path) => {
    // The router would give up on a malformed escape without saying where it is; escaped once more, each reaches its coercer.
    const found = router.find('GET', path.includes('%') ? path.replaceAll('%', '%25') : path);
    if (found === null) return null;
    const resource: Resource = found.store;
    return { resource, path: found.params };
  };
}

function resourcesOf(routes: readonly Route[]): ReadonlyMap<string, Resource> {
  const byPath = Map.groupBy(routes, ({ path }) => path);
  return new Map([...byPath].map(([path, own]) => [path, resourceOf(own)]));
}

function resourceOf(own: readonly Route[]): Resource {
  const routes = new Map<string, Route>(own.map((route) => [route.method, route]));
  const get = routes.get('GET' satisfies Method);
  if (get) routes.set('HEAD', get);
  return { routes, allow: [...routes.keys()].join(', ') };
}
