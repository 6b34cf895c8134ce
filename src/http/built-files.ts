/** Serves built files from a folder, such as the browser builds of the client libraries. */
import { readFile, stat } from 'node:fs/promises';
import { BoundedMap } from '../core/collections.ts';
import { CallboardError } from '../core/errors.ts';
import { PackedText, sendPacked } from '../web/packed-file.ts';
import type { RequestInfo } from './request-info.ts';

/** The maximum number of cached files of one folder. Each build gives its files new names, so old names accumulate. */
const FILES_MAX = 200;

export const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Returns a function that reads a file of the folder on first use, and reads it again when it has changed. */
export function createReader(folder: URL, edit?: (text: string) => string): (name: string) => Promise<PackedText> {
  const loaded = new BoundedMap<string, { readonly stamp: string; readonly text: PackedText }>({ most: FILES_MAX });
  return async (name) => {
    const file = new URL(name, folder);
    const { mtimeMs, size } = await stat(file);
    const stamp = `${mtimeMs}:${size}`;
    const known = loaded.get(name);
    if (known?.stamp === stamp) return known.text;
    const bytes = await readFile(file);
    const text = new PackedText(edit ? edit(bytes.toString()) : bytes);
    loaded.set(name, { stamp, text });
    return text;
  };
}

/** The browser builds that are served. No other file of the folder can be requested. */
export const CLIENT_FILES: readonly string[] = ['runtime.js', 'caller.js', 'enrol.js', 'site.js'];

/** Serves the browser builds of the client libraries from `folder`. */
export function createClientFiles(folder: URL): (info: RequestInfo, name: string) => Promise<void> {
  const read = createReader(folder);
  const headers = { 'content-type': TYPES['js'] ?? '', 'cross-origin-resource-policy': 'cross-origin' };
  return async ({ request, response }, name) => {
    const text = await read(name).catch((cause: unknown) => {
      const detail = `${name} is not built: run "npm run build" on the relay's machine.`;
      throw new CallboardError('not_found', detail, { cause });
    });
    // Pages of any origin may load these libraries.
    if (!response.hasHeader('access-control-allow-origin')) response.setHeader('access-control-allow-origin', '*');
    return sendPacked(request, response, { text, headers });
  };
}
