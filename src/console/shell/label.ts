/** Reads the name of the environment, which the setting CONSOLE_LABEL gives. The relay writes it into the page. */

/** The name of the environment; empty if none is configured. */
export const label: string = document.querySelector<HTMLMetaElement>('meta[name="callboard-label"]')?.content ?? '';
