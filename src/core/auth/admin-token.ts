/** Parses the configured tokens of administrators, which may have names. It does not compare or verify tokens. */

/**
 * The configured token of an administrator. `name` appears in logs and in the principal; null: the token has no name.
 */
export type AdminToken = { readonly name: string | null; readonly token: string };

/** The minimum length of a named token, in characters, without its name. */
export const NAMED_TOKEN_MIN = 16;
/**
 * Matches `name=token`. The token must hold a character other than `=`, so that a bare token with base64 padding is not
 * read as a name.
 */
const NAMED = /^([A-Za-z][A-Za-z0-9_-]{0,63})=(?=.*[^=])(.+)$/s;

/**
 * Parses `name=token` or a bare token. A name is a letter and up to 63 letters, digits, `_` and `-`, followed by `=`
 * and a token that does not consist of `=` alone. Any other text is a bare token, even if it holds a `=`, as padded
 * base64 does.
 */
export function parseAdminToken(text: string): AdminToken {
  const [, name = null, token = text] = NAMED.exec(text) ?? [];
  return { name, token };
}
