/** The `tracestate` list of W3C Trace Context in the form that OpenTelemetry hands to samplers and exporters. */
import type { TraceStateLike } from './trace-api.ts';

/** Reads a valid list. Immutable: `set` and `unset` return another list, and a set member comes first. */
export function traceStateOf(text: string): TraceStateLike {
  const members = text.split(',');
  const without = (key: string): readonly string[] => members.filter((member) => !member.startsWith(`${key}=`));
  return {
    get: (key) => members.find((member) => member.startsWith(`${key}=`))?.slice(key.length + 1),
    set: (key, value) => traceStateOf([`${key}=${value}`, ...without(key)].join(',')),
    unset: (key) => traceStateOf(without(key).join(',')),
    serialize: () => text,
  };
}
