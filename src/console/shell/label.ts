/** The name of the environment, as the setting CONSOLE_LABEL says. The relay writes it into the page. */

/** The name; empty if none is configured. */
export const label: string = document.querySelector<HTMLMetaElement>('meta[name="callboard-label"]')?.content ?? '';
