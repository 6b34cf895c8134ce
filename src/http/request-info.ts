/**
 * Reads the target and the peer's address of a request, and removes the base path from its path. No other file handles
 * the base path of a request.
 */
import { addressOf, type ProxyTrust } from '../web/forwarded.ts';
import type { HttpRequest, HttpResponse } from '../web/request.ts';

/** `basePath`: the prefix of all paths of the relay, without a trailing slash; empty if there is none. */
type RequestInfoOptions = { readonly id: string; readonly basePath: string; readonly trustProxy: ProxyTrust };

/** An HTTP request and its response, with the parsed target and the peer's address. */
export type RequestInfo = {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** The id of the request in the log and in `x-request-id`. Created by the relay, and never taken from the request. */
  readonly id: string;
  readonly method: string;
  /**
   * The path below the base path, without the query and still percent-encoded. Null: the request's path is outside the
   * base path, or its target is not a path.
   */
  readonly path: string | null;
  /** The query without the question mark; empty if there is none. */
  readonly query: string;
  /** The address of the peer. It is taken from a proxy's header only with `trustProxy`. */
  readonly address: string;
};

/**
 * Parses the request target, and removes the base path from `request.url`, so that all handlers see paths without it.
 */
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

/** Returns the path of a request below the base path; null if the path is outside of it or the target is not a path. */
export function pathOf(request: HttpRequest, basePath: string): string | null {
  const target = targetOf(request.url ?? '');
  return target === null ? null : below(basePath, target.path);
}

/** Parses a request target in origin form, or in absolute form, which proxies may send. */
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

/**
 * The first part of the path of a resource's metadata. RFC 9728 puts this part before the whole path of the resource,
 * so it comes before the base path.
 */
const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';

function below(basePath: string, path: string): string | null {
  if (basePath === '') return path;
  if (path === basePath) return '/';
  if (path === `${RESOURCE_METADATA}${basePath}/mcp`) return `${RESOURCE_METADATA}/mcp`;
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;
}
