/** The number of rows on one page of a list: enough to fill a screen, few enough that the page stays quick. */
export const PAGE_SIZE = 40;
