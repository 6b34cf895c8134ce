/** Checks integers against their declared ranges. */
import { invalid } from './errors.ts';

type Range = { readonly default: number; readonly min: number; readonly max: number };

/** Whether the value is absent, or an integer in the range. */
export function isWithin(value: number | null | undefined, { min, max }: Range): boolean {
  return value === null || value === undefined || (Number.isInteger(value) && value >= min && value <= max);
}

/**
 * Returns the value, or the default if it is absent. Throws `invalid_argument` naming the parameter if the value is not
 * an integer in the range.
 */
export function within(parameter: string, value: number | null | undefined, range: Range): number {
  return isWithin(value, range)
    ? (value ?? range.default)
    : invalid(parameter, `expected ${range.min} to ${range.max}`);
}
