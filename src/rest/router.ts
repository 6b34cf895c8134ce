/** Finds the route of a path. */
import findMyWay from 'find-my-way';
import type { Route } from './compile.ts';
import type { Method } from './directive.ts';

/**
 * The routes of one path, by method. `allow`: the value of the `Allow` header. `template`: the path with its
 * parameters.
 */
export type Resource = {
  readonly template: string;
  readonly routes: ReadonlyMap<string, Route>;
  readonly allow: string;
};
/** A resource and the path parameters, which are still percent-encoded. */
export type Match = { readonly resource: Resource; readonly path: Readonly<Record<string, string | undefined>> };

/**
 * The most characters of a path parameter. They are more than any request line that node:http accepts, so the router
 * never refuses a parameter for its length: the coercers check it.
 */
const LONGEST_PARAMETER = 100_000;

/**
 * Returns a function that finds the resource of a path, whatever the method; null when no route has the path. No route
 * has a path that ends with a slash.
 */
export function createRouter(routes: readonly Route[]): (path: string) => Match | null {
  const router = findMyWay({ maxParamLength: LONGEST_PARAMETER });
  for (const [template, resource] of resourcesOf(routes)) {
    router.on('GET', template.replaceAll(/\{(\w+)\}/g, ':$1'), () => {}, resource);
  }
  return (path) => {
    // The router would take the end of `/users/` for an empty parameter.
    if (path.endsWith('/')) return null;
    // The router rejects a malformed escape without saying where it is. Escaping every `%` once more lets each
    // parameter reach its coercer.
    const found = router.find('GET', path.includes('%') ? path.replaceAll('%', '%25') : path);
    if (found === null) return null;
    const resource: Resource = found.store;
    return { resource, path: found.params };
  };
}

function resourcesOf(routes: readonly Route[]): ReadonlyMap<string, Resource> {
  const byPath = Map.groupBy(routes, ({ path }) => path);
  return new Map([...byPath].map(([path, routesOfPath]) => [path, resourceOf(path, routesOfPath)]));
}

function resourceOf(template: string, routesOfPath: readonly Route[]): Resource {
  const routes = new Map<string, Route>(routesOfPath.map((route) => [route.method, route]));
  const get = routes.get('GET' satisfies Method);
  if (get) routes.set('HEAD', get);
  return { template, routes, allow: [...routes.keys()].join(', ') };
}
