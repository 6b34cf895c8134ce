/** The growth of V8's space of new objects while a relay starts. */
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the space of new objects at its first size. Nearly everything that a start creates stays, so V8 would grow that
 * space again and again: 30 MB that an idle relay does not use.
 */
export function holdHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/** Lets the space of new objects grow again, as traffic needs it. 2 is V8's default. */
export function allowHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=2');
}
