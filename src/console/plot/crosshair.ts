/** Where the pointer is in the plots: one line in all of them, as a share of the width. */
import { signal } from '@preact/signals';

/** The position of the pointer, from 0 to 1; null while it is in no plot. */
export const crosshair = signal<number | null>(null);
