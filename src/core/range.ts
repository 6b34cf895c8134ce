import { invalid } from './errors.ts';

/** A whole number in a range, or its default. Throws `invalid_argument` naming the parameter. */
export function within(
  parameter: string,
  value: number | null | undefined,
  range: { readonly default: number; readonly min: number; readonly max: number },
): number {
  const given = value ?? range.default;
  const good = Number.isInteger(given) && given >= range.min && given <= range.max;
  return good ? given : invalid(parameter, `expected ${range.min} to ${range.max}`);
}
