/** Limits how V8's space for new objects grows while a relay starts. */
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps V8's space for new objects at its initial size. Nearly everything that a start creates is kept, so V8 would
 * enlarge that space again and again, by 30 MB that an idle relay does not use.
 */
export function holdHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/** Lets the space for new objects grow again, because traffic needs it. The factor 2 is V8's default. */
export function allowHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=2');
}
