/** What helps when a connection fails. */

/** What a person does about the end of a link, by its reason. */
export type LinkHelp = Readonly<Record<string, string | undefined>>;

/** The end of a link. `said`: what the relay, or the token function, said about it; null if nothing. */
type LinkDown = {
  readonly url: string;
  readonly reason: string;
  readonly said: string | null;
  /** Whether the relay had accepted the link. */
  readonly accepted: boolean;
  readonly help: LinkHelp | undefined;
};

const TOKEN_REFUSED = 'The relay refused the token. Use a new one: tokens expire, and belong to one relay.';

/** Returns why a link is down, and what helps. */
export function linkAdvice({ url, reason, said, accepted, help }: LinkDown): string {
  const path = url.endsWith('/connect') ? '' : ' Its path ends in /connect.';
  const other = accepted || said !== null ? `The link to ${url} ended: ${reason}.` : unreachable(url) + path;
  const advice = reason === 'unauthenticated' ? TOKEN_REFUSED : help?.[reason];
  return `${advice ?? other}${said === null ? '' : ` (${said})`}${see(reason)}`;
}

/** Returns the advice for a relay that does not answer. */
export function unreachable(url: string): string {
  return `No relay answers at ${url}. Does it run, and are host, port and path right?${pageHint(url)}`;
}

/**
 * Returns what else may be wrong in a page of another origin. Browsers do not tell a page why a connection failed, so a
 * relay that refuses the page looks like one that is not there.
 */
export function pageHint(url: string): string {
  const { origin } = typeof location === 'undefined' ? {} : location;
  if (!origin || new URL(url.replace(/^ws/i, 'http')).origin === origin) return '';
  return ` If it runs: this page is of the origin ${origin}, which ALLOWED_ORIGINS of the relay must list.`;
}

/** Returns where a message is explained. */
export function see(anchor: string): string {
  return ` (docs/troubleshooting.md#${anchor})`;
}

/** Prints on the console what no callback of the program receives. */
export function warn(who: string, message: string, ...more: readonly unknown[]): void {
  console.warn(`callboard: ${who}: ${message}`, ...more);
}
