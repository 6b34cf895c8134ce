import { invalid } from './errors.ts';

/**
 * Returns the value, or the default if it is absent. Throws `invalid_argument` naming the parameter unless it is an
 * integer in the range.
 */
export function within(
  parameter: string,
  value: number | null | undefined,
  range: { readonly default: number; readonly min: number; readonly max: number },
): number {
  const given = value ?? range.default;
  const good = Number.isInteger(given) && given >= range.min && given <= range.max;
  return good ? given : invalid(parameter, `expected ${range.min} to ${range.max}`);
}
