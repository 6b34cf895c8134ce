/** Keeps the latest value of an answer, so that an update of the page never takes away what a person works on. */
import { useRef } from 'preact/hooks';

/** Returns the latest value that was not null or undefined; null before the first one. */
export function useLatest<Value>(value: Value | null | undefined): Value | null {
  const latest = useRef<Value | null>(null);
  if (value !== null && value !== undefined) latest.current = value;
  return latest.current;
}
