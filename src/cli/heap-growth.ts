/** Limits how the heap of the process grows. */
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps V8's space for new objects at its initial size. Nearly all objects that are created at the start stay in use,
 * so V8 would enlarge this space repeatedly, by 30 MB in total, which an idle relay does not need.
 */
export function holdHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/** Lets the space for new objects grow again, because traffic needs it. The factor 2 is V8's default. */
export function allowHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=2');
}
