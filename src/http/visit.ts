import type { IncomingMessage, ServerResponse } from 'node:http';
import { addressOf } from '../gateway/address.ts';

export type VisitOptions = {
  readonly id: string;
  /** Without a slash at its end; empty at the root. */
  readonly basePath: string;
  readonly trustProxy: boolean;
};

/** One request as the front sees it. */
export type Visit = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Made here, never taken from outside; stands in the log and in `x-request-id`. */
  readonly id: string;
  readonly method: string;
  /** Below the base path and without the query, still percent-encoded. Null: not below the base path, or no path at all. */
  readonly path: string | null;
  /** Without its question mark. */
  readonly query: string;
  /** The asker's address; a proxy's word only where a proxy is trusted. */
  readonly address: string;
};

export function visitOf(request: IncomingMessage, response: ServerResponse, options: VisitOptions): Visit {
  const target = targetOf(request.url ?? '');
  return {
    request,
    response,
    id: options.id,
    method: request.method ?? 'GET',
    path: target === null ? null : below(options.basePath, target.path),
    query: target?.query ?? '',
    address: addressOf(request, options.trustProxy),
  };
}

/** Where an upgrade asks to go: the path below the base path, or null. */
export function pathOf(request: IncomingMessage, basePath: string): string | null {
  const target = targetOf(request.url ?? '');
  return target === null ? null : below(basePath, target.path);
}

/** Takes the origin form, and the absolute form that proxies may send. */
function targetOf(url: string): { readonly path: string; readonly query: string } | null {
  const text = url.startsWith('/') ? url : absolute(url);
  if (text === null) return null;
  const cut = text.indexOf('?');
  return cut < 0 ? { path: text, query: '' } : { path: text.slice(0, cut), query: text.slice(cut + 1) };
}

function absolute(url: string): string | null {
  const parsed = /^https?:\/\//i.test(url) ? URL.parse(url) : null;
  return parsed && parsed.pathname + parsed.search;
}

function below(basePath: string, path: string): string | null {
  if (basePath === '') return path;
  if (path === basePath) return '/';
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;
}
