/** Reads the target, address and origin of a request. Only this file takes the base path off a request's path. */
import { addressOf, type ProxyTrust } from '../web/forwarded.ts';
import type { HttpRequest, HttpResponse } from '../web/request.ts';

/** `basePath`: what all paths of the relay begin with, without a trailing slash; empty for the root. */
type RequestInfoOptions = { readonly id: string; readonly basePath: string; readonly trustProxy: ProxyTrust };

/** One HTTP request with its parsed target and the peer's address. */
export type RequestInfo = {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** The id of the request in the log and in `x-request-id`. The relay never takes it from the request. */
  readonly id: string;
  readonly method: string;
  /**
   * The path below the base path, without query, still percent-encoded. Null: the path is outside the base path, or the
   * target is not a path.
   */
  readonly path: string | null;
  /** The query without the question mark; empty if there is none. */
  readonly query: string;
  /** The peer's address; taken from a proxy's header only with `trustProxy`. */
  readonly address: string;
};

/** Reads the request target, and takes the base path off `request.url`: handlers only know paths without it. */
export function requestInfoOf(request: HttpRequest, response: HttpResponse, options: RequestInfoOptions): RequestInfo {
  const { url = '' } = request;
  const target = targetOf(url);
  const path = target === null ? null : below(options.basePath, target.path);
  const query = target?.query ?? '';
  const asWritten = options.basePath === '' && url.startsWith('/');
  if (path !== null && !asWritten) request.url = query === '' ? path : `${path}?${query}`;
  return {
    request,
    response,
    id: options.id,
    method: request.method ?? 'GET',
    path,
    query,
    address: addressOf(request, options.trustProxy),
  };
}

/** Returns the path of a request below the base path, or null. */
export function pathOf(request: HttpRequest, basePath: string): string | null {
  const target = targetOf(request.url ?? '');
  return target === null ? null : below(basePath, target.path);
}

/** Parses the request target: the origin form, and the absolute form that proxies may send. */
function targetOf(url: string): { readonly path: string; readonly query: string } | null {
  const text = originForm(url);
  if (text === null) return null;
  const cut = text.indexOf('?');
  return cut < 0 ? { path: text, query: '' } : { path: text.slice(0, cut), query: text.slice(cut + 1) };
}

function originForm(url: string): string | null {
  if (url.startsWith('/')) return url;
  const parsed = /^https?:\/\//i.test(url) ? URL.parse(url) : null;
  return parsed && parsed.pathname + parsed.search;
}

/** The prefix of the metadata of a resource. RFC 9728 puts it before the whole path, so also before the base path. */
const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';

function below(basePath: string, path: string): string | null {
  if (basePath === '') return path;
  if (path === basePath) return '/';
  if (path === `${RESOURCE_METADATA}${basePath}/mcp`) return `${RESOURCE_METADATA}/mcp`;
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;
}
