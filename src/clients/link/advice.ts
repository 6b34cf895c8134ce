/** Texts that tell a person why a connection failed and what to do. */

/** Advice for a person about the end of a link, by the reason of the end. */
export type LinkHelp = Readonly<Record<string, string | undefined>>;

/** The end of a link. `said`: the message of the relay or of the token function; null if there is none. */
type LinkDown = {
  readonly url: string;
  readonly reason: string;
  readonly said: string | null;
  /** Whether the relay had accepted the link. */
  readonly accepted: boolean;
  readonly help: LinkHelp | undefined;
};

const TOKEN_REFUSED = 'The relay refused the token. Use a new one: tokens expire, and belong to one relay.';

/** Returns a text that says why a link is down and what to do. */
export function linkAdvice({ url, reason, said, accepted, help }: LinkDown): string {
  const path = url.endsWith('/connect') ? '' : ' Its path ends in /connect.';
  const other = accepted || said !== null ? `The link to ${url} ended: ${reason}.` : unreachable(url) + path;
  const advice = reason === 'unauthenticated' ? TOKEN_REFUSED : help?.[reason];
  return `${advice ?? other}${said === null ? '' : ` (${said})`}${see(reason)}`;
}

/** Returns the text for a relay that cannot be reached. */
export function unreachable(url: string): string {
  return `No relay answers at ${url}. Does it run, and are host, port and path right?${pageHint(url)}`;
}

/**
 * Returns a further hint for a web page of another origin. Browsers do not tell a page why a connection failed, so a
 * relay that refuses the page looks like one that cannot be reached.
 */
export function pageHint(url: string): string {
  const { origin } = typeof location === 'undefined' ? {} : location;
  if (!origin || new URL(url.replace(/^ws/i, 'http')).origin === origin) return '';
  return ` If it runs: this page is of the origin ${origin}, which ALLOWED_ORIGINS of the relay must list.`;
}

/** Returns a reference to the section of the documentation that explains a message. */
export function see(anchor: string): string {
  return ` (docs/troubleshooting.md#${anchor})`;
}

/** Prints a warning on the console. For events about which the program has no callback. */
export function warn(who: string, message: string, ...more: readonly unknown[]): void {
  console.warn(`callboard: ${who}: ${message}`, ...more);
}
