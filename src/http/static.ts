/** Serves the browser builds of the client libraries, and no other file. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { CallboardError } from '../core/errors.ts';
import type { RequestInfo } from './request-info.ts';

/** The browser builds that are served. No other file of the directory can be requested. */
export const CLIENT_FILES: readonly string[] = ['runtime.js', 'caller.js', 'site.js'];

type Loaded = { readonly stamp: string; readonly bytes: Buffer; readonly etag: string };

/**
 * Serves the browser builds of the client libraries from `folder`. A file is read on first use, and again after it
 * changes.
 */
export function createClientFiles(folder: URL): (info: RequestInfo, name: string) => Promise<void> {
  const loaded = new Map<string, Loaded>();
  const load = async (name: string): Promise<Loaded> => {
    const file = new URL(name, folder);
    const { mtimeMs, size } = await stat(file);
    const stamp = `${mtimeMs}:${size}`;
    const known = loaded.get(name);
    if (known?.stamp === stamp) return known;
    const bytes = await readFile(file);
    const fresh = { stamp, bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
    loaded.set(name, fresh);
    return fresh;
  };
  return async ({ request, response }, name) => {
    const file = await load(name).catch((cause: unknown) => {
      const detail = `${name} is not built: run "npm run build" on the relay's machine.`;
      throw new CallboardError('not_found', detail, { cause });
    });
    // Pages of any origin may load the libraries.
    if (!response.hasHeader('access-control-allow-origin')) response.setHeader('access-control-allow-origin', '*');
    response.setHeader('cross-origin-resource-policy', 'cross-origin');
    // Browsers revalidate on each load, which the ETag makes cheap.
    response.setHeader('cache-control', 'no-cache');
    response.setHeader('etag', file.etag);
    if (request.headers['if-none-match'] === file.etag) return void response.writeHead(304).end();
    response.setHeader('content-type', 'text/javascript; charset=utf-8');
    response.setHeader('content-length', file.bytes.length);
    response.writeHead(200).end(file.bytes);
  };
}
