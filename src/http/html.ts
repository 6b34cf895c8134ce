/** Writes HTML: escaped values, and whole pages in the style of the relay's pages. */
import { createHash } from 'node:crypto';
import { PackedText, type PackedFile } from '../web/packed-file.ts';
import { PAGE_STYLE } from '../web/page-look.ts';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a value for use in HTML text and in quoted attributes. Null and undefined become an empty text. */
export function escaped(value: unknown): string {
  return String(value ?? '').replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** Builds a page in the style of the relay's pages. `rules`: additional CSS of this page. `body`: HTML. */
export function htmlPage({ title, rules, body }: Readonly<Record<'title' | 'rules' | 'body', string>>): PackedFile {
  const style = `${PAGE_STYLE}\n${rules}`;
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${style}</style></head>
<body><main class="relay-page">${body}</main></body></html>
`;
  const hash = createHash('sha256').update(style).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; frame-ancestors 'none'`;
  return {
    text: new PackedText(html),
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy },
  };
}
