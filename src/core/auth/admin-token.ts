/** Parses the configured tokens of administrators, which may have names. Does not compare tokens. */

/** A configured token of an administrator. `name`: its name in logs and in the principal; null if it has none. */
export type AdminToken = { readonly name: string | null; readonly token: string };

/** The fewest characters of a named token, not counting its name. */
export const NAMED_TOKEN_MIN = 16;
/**
 * Matches `name=token`. The token must contain a character other than `=`. Otherwise a bare token with base64 padding
 * would be read as a name.
 */
const NAMED = /^([A-Za-z][A-Za-z0-9_-]{0,63})=(?=.*[^=])(.+)$/s;

/**
 * Parses `name=token` or a bare token. A name is a letter, followed by up to 63 letters, digits, `_` and `-`. After the
 * name come `=` and a token that does not consist of `=` only. Any other text is a bare token, even if it contains a
 * `=`, as padded base64 does.
 */
export function parseAdminToken(text: string): AdminToken {
  const [, name = null, token = text] = NAMED.exec(text) ?? [];
  return { name, token };
}
