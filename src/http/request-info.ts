/** Parses the target of a request and removes the base path. No other file may know the base path of a request. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { addressOf } from '../gateway/address.ts';

export type RequestInfoOptions = {
  readonly id: string;
  /** The path that all paths of the relay begin with, without a trailing slash; empty for the root. */
  readonly basePath: string;
  readonly trustProxy: boolean;
};

/** One HTTP request with its parsed target and the peer's address. */
export type RequestInfo = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /**
   * The id of the request. The relay generates it and never takes it from the request. It appears in the log and in
   * `x-request-id`.
   */
  readonly id: string;
  readonly method: string;
  /**
   * The path below the base path, without the query, still percent-encoded. Null: outside the base path, or not a path.
   */
  readonly path: string | null;
  /** The query without the question mark; empty if there is none. */
  readonly query: string;
  /** The peer's address; taken from the proxy's header only with `trustProxy`. */
  readonly address: string;
};

/**
 * Reads the request target. Removes the base path from `request.url` and converts it to origin form. Handlers and
 * routes only know paths without the base path.
 */
export function requestInfoOf(
  request: IncomingMessage,
  response: ServerResponse,
  options: RequestInfoOptions,
): RequestInfo {
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
export function pathOf(request: IncomingMessage, basePath: string): string | null {
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

function below(basePath: string, path: string): string | null {
  if (basePath === '') return path;
  if (path === basePath) return '/';
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;
}
