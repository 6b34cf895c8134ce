/** A configured administrator's token. `name` stands in logs and in the principal; null: it has none. */
export type AdminToken = { readonly name: string | null; readonly token: string };

/** The shortest token that may carry a name, in characters. */
export const NAMED_TOKEN_MIN = 16;
/** What follows must be more than the `=` that pads base64, so that a bare token may end with it. */
const NAMED = /^([A-Za-z][A-Za-z0-9_-]{0,63})=(?=.*[^=])(.+)$/s;

/**
 * Reads `name=token` or a bare token. A text is named when letters, digits, `_` and `-` (a letter first, 64 at most) are followed by `=` and
 * something besides `=`. Whatever else holds a `=`, base64 with its padding among it, is a bare token.
 */
export function parseAdminToken(text: string): AdminToken {
  const [, name = null, token = text] = NAMED.exec(text) ?? [];
  return { name, token };
}
